-- needs 10
-- A checksum of the columns that hold what people said, what is known about them, or when something is due. `verify`
-- compares it with them (see store/checksums.py). Processes of earlier versions would not write it.
ALTER TABLE person ADD COLUMN checksum bigint;
ALTER TABLE thread ADD COLUMN checksum bigint;
ALTER TABLE session ADD COLUMN checksum bigint;
ALTER TABLE summary ADD COLUMN checksum bigint;
ALTER TABLE summary_source ADD COLUMN checksum bigint;
ALTER TABLE memory ADD COLUMN checksum bigint;
ALTER TABLE memory_source ADD COLUMN checksum bigint;
ALTER TABLE memory_version ADD COLUMN checksum bigint;
ALTER TABLE facts ADD COLUMN checksum bigint;
ALTER TABLE forgotten ADD COLUMN checksum bigint;
ALTER TABLE derived ADD COLUMN checksum bigint;
ALTER TABLE setting ADD COLUMN checksum bigint;
ALTER TABLE audit ADD COLUMN checksum bigint;
ALTER TABLE spending ADD COLUMN checksum bigint;
ALTER TABLE walk ADD COLUMN checksum bigint;
ALTER TABLE agenda ADD COLUMN checksum bigint;
ALTER TABLE mark ADD COLUMN checksum bigint;
SET LOCAL aforesaid.reach = 'all';
UPDATE person SET checksum = hash_array_extended(ARRAY[(space)::text, (name)::text, (owner)::text, (created_at)::text,
    (last_chunk)::text, (extracted)::text] COLLATE "C", 0);
UPDATE thread SET checksum = hash_array_extended(ARRAY[(space)::text, (name)::text] COLLATE "C", 0);
UPDATE session SET checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (thread)::text, (name)::text,
    (automatic)::text, (opened_by)::text, (timeout)::text] COLLATE "C", 0);
UPDATE summary SET checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text, (thread)::text,
    (kind)::text, (level)::text, (text)::text, hash_array_extended(chunks, 0)::text, (reach)::text, (first_seq)::text,
    (last_seq)::text, (fresh_seq)::text, (messages)::text, (began_at)::text, (ended_at)::text, (day)::text,
    (version)::text, (replaces)::text, (replaced)::text, (model)::text, (prompt)::text, (edited_by)::text,
    (details)::text, (quality)::text, (created_at)::text, (active)::text, (rolled_back)::text] COLLATE "C", 0);
UPDATE summary_source SET checksum = hash_array_extended(ARRAY[(space)::text, (summary)::text, (source)::text] COLLATE
    "C", 0);
UPDATE memory SET checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text, (created_at)::text,
    (revision)::text, (category)::text, (text)::text, (importance)::text, hash_array_extended(tags COLLATE "C",
    0)::text, (active)::text, (state)::text, (priority)::text, (speaker)::text, (subject)::text, (event_start)::text,
    (event_end)::text, (event_timed)::text, (remind_at)::text, (delivered_at)::text, (expires_at)::text,
    (valid_from)::text, (valid_to)::text, (superseded_by)::text, (extractor)::text, (trust)::text, (reason)::text,
    (times)::text, (seen_at)::text] COLLATE "C", 0);
UPDATE memory_source SET checksum = hash_array_extended(ARRAY[(space)::text, (memory)::text, (seq)::text] COLLATE "C",
    0);
UPDATE memory_version SET checksum = hash_array_extended(ARRAY[(space)::text, (memory)::text, (revision)::text,
    (at)::text, (actor)::text, (action)::text, (was)::text] COLLATE "C", 0);
UPDATE facts SET checksum = hash_array_extended(ARRAY[(space)::text, (owner)::text, (version)::text, (text)::text,
    (cause)::text, (created_at)::text] COLLATE "C", 0);
UPDATE forgotten SET checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text, (words)::text,
    (up_to)::text, (at)::text] COLLATE "C", 0);
UPDATE derived SET checksum = hash_array_extended(ARRAY[(space)::text, (owner)::text, (kind)::text, (key)::text,
    (value)::text, (at)::text] COLLATE "C", 0);
UPDATE setting SET checksum = hash_array_extended(ARRAY[(space)::text, (owner)::text, (key)::text, (value)::text,
    (updated_at)::text] COLLATE "C", 0);
UPDATE audit SET checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (at)::text, (owner)::text,
    (actor)::text, (action)::text, (subject)::text] COLLATE "C", 0);
UPDATE spending SET checksum = hash_array_extended(ARRAY[(space)::text, (day)::text, (owner)::text, (tokens)::text]
    COLLATE "C", 0);
UPDATE walk SET checksum = hash_array_extended(ARRAY[(space)::text, (policy)::text, (up_to)::text] COLLATE "C", 0);
UPDATE agenda SET checksum = hash_array_extended(ARRAY[(space)::text, (policy)::text, (owner)::text, (thread)::text,
    (day)::text, (messages)::text, (characters)::text, (waiting)::text, (last_seq)::text, (due_at)::text,
    (done_at)::text, (done_seq)::text, (failures)::text, (error)::text] COLLATE "C", 0);
UPDATE mark SET checksum = hash_array_extended(ARRAY[(space)::text, (name)::text, (value)::text] COLLATE "C", 0);
