-- needs 11
-- What a memory is (its kind), whom it is about, when it was first said, its language, and how sure its extractor is
-- (in hundredths). Older memories named some kinds, and the person, by a tag. Processes of earlier versions would write
-- other checksums.
ALTER TABLE memory ADD COLUMN kind text NOT NULL DEFAULT 'fact';
ALTER TABLE memory ADD COLUMN about text;
ALTER TABLE memory ADD COLUMN said_at bigint;
ALTER TABLE memory ADD COLUMN language text;
ALTER TABLE memory ADD COLUMN confidence integer;
SET LOCAL aforesaid.reach = 'all';
UPDATE memory SET
    kind = CASE WHEN category NOT IN ('fact', 'other', 'preference') THEN category
                WHEN 'event' = ANY(tags) THEN 'event'
                WHEN 'relationship' = ANY(tags) THEN 'relationship'
                WHEN 'instruction' = ANY(tags) THEN 'instruction'
                WHEN category NOT IN ('fact', 'other') THEN category
                WHEN event_start IS NOT NULL THEN 'event'
                WHEN subject = 'marital' OR subject LIKE '%: name' THEN 'relationship'
                ELSE 'fact' END,
    about = CASE WHEN tags[1] LIKE 'about %' THEN substr(tags[1], 7)
                 WHEN tags[2] LIKE 'about %' THEN substr(tags[2], 7)
                 WHEN tags[3] LIKE 'about %' THEN substr(tags[3], 7) END,
    said_at = valid_from;
UPDATE memory SET checksum = CASE WHEN checksum = hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text,
    (created_at)::text, (revision)::text, (category)::text, (text)::text, (importance)::text, hash_array_extended(tags
    COLLATE "C", 0)::text, (active)::text, (state)::text, (priority)::text, (speaker)::text, (subject)::text,
    (event_start)::text, (event_end)::text, (event_timed)::text, (remind_at)::text, (delivered_at)::text,
    (expires_at)::text, (valid_from)::text, (valid_to)::text, (superseded_by)::text, (extractor)::text, (trust)::text,
    (reason)::text, (times)::text, (seen_at)::text] COLLATE "C", 0)
    THEN hash_array_extended(ARRAY[(space)::text, (id)::text, (owner)::text, (created_at)::text, (revision)::text,
    (category)::text, (text)::text, (importance)::text, hash_array_extended(tags COLLATE "C", 0)::text,
    (active)::text, (state)::text, (priority)::text, (speaker)::text, (subject)::text, (event_start)::text,
    (event_end)::text, (event_timed)::text, (remind_at)::text, (delivered_at)::text, (expires_at)::text,
    (valid_from)::text, (valid_to)::text, (superseded_by)::text, (extractor)::text, (trust)::text, (reason)::text,
    (times)::text, (seen_at)::text, (kind)::text, (about)::text, (said_at)::text, (language)::text,
    (confidence)::text] COLLATE "C", 0) END;
