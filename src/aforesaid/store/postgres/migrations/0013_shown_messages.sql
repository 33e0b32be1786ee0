-- needs 13
-- How many messages a summary was made from: of each the newest version, and none that was taken back. The column
-- `messages` counts all rows of the log that it covers. NULL: as many. Processes of earlier versions would write
-- other checksums.
ALTER TABLE summary ADD COLUMN shown bigint;
SET LOCAL aforesaid.reach = 'all';
UPDATE summary SET checksum = CASE WHEN checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text,
    (thread)::text, (kind)::text, (level)::text, (text)::text, hash_array_extended(chunks, 0)::text, (reach)::text,
    (first_seq)::text, (last_seq)::text, (fresh_seq)::text, (messages)::text, (began_at)::text, (ended_at)::text,
    (day)::text, (version)::text, (replaces)::text, (replaced)::text, (model)::text, (prompt)::text, (edited_by)::text,
    (details)::text, (quality)::text, (created_at)::text, (active)::text, (rolled_back)::text] COLLATE "C", 0) THEN
    hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text, (thread)::text, (kind)::text, (level)::text,
    (text)::text, hash_array_extended(chunks, 0)::text, (reach)::text, (first_seq)::text, (last_seq)::text,
    (fresh_seq)::text, (messages)::text, (began_at)::text, (ended_at)::text, (day)::text, (version)::text,
    (replaces)::text, (replaced)::text, (model)::text, (prompt)::text, (edited_by)::text, (details)::text,
    (quality)::text, (created_at)::text, (active)::text, (rolled_back)::text, (shown)::text] COLLATE "C", 0) END;
