-- needs 19
-- Which matter of a person a memory is, and the value of it in the person's own words. NULL: a note.
-- Processes of earlier versions would write other checksums.
ALTER TABLE memory ADD COLUMN matter text;
ALTER TABLE memory ADD COLUMN value text;
SET LOCAL aforesaid.reach = 'all';
UPDATE memory SET checksum = CASE WHEN checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text,
    (created_at)::text, (revision)::text, (category)::text, (text)::text, (importance)::text, hash_array_extended(tags
    COLLATE "C", 0)::text, (active)::text, (state)::text, (priority)::text, (speaker)::text, (subject)::text,
    (event_start)::text, (event_end)::text, (event_timed)::text, (remind_at)::text, (delivered_at)::text,
    (expires_at)::text, (valid_from)::text, (valid_to)::text, (superseded_by)::text, (extractor)::text, (trust)::text,
    (reason)::text, (times)::text, (seen_at)::text, (kind)::text, (about)::text, (said_at)::text, (language)::text,
    (confidence)::text] COLLATE "C", 0) THEN hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text,
    (created_at)::text, (revision)::text, (category)::text, (text)::text, (importance)::text, hash_array_extended(tags
    COLLATE "C", 0)::text, (active)::text, (state)::text, (priority)::text, (speaker)::text, (subject)::text,
    (event_start)::text, (event_end)::text, (event_timed)::text, (remind_at)::text, (delivered_at)::text,
    (expires_at)::text, (valid_from)::text, (valid_to)::text, (superseded_by)::text, (extractor)::text, (trust)::text,
    (reason)::text, (times)::text, (seen_at)::text, (kind)::text, (about)::text, (said_at)::text, (language)::text,
    (confidence)::text, (matter)::text, (value)::text] COLLATE "C", 0) END;
CREATE INDEX memory_of_matter ON memory (space, owner, importance, id) WHERE active AND matter IS NOT NULL;
