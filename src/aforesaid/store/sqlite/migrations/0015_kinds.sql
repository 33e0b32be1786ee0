-- What a memory is (its kind), whom it is about, when it was first said, its language, and how sure its extractor is
-- (in hundredths). Older memories named some kinds, and the person, by a tag.
ALTER TABLE memory ADD COLUMN kind TEXT NOT NULL DEFAULT 'fact';
ALTER TABLE memory ADD COLUMN about TEXT;                                   -- NULL: the owner
ALTER TABLE memory ADD COLUMN said_at INTEGER;
ALTER TABLE memory ADD COLUMN language TEXT;
ALTER TABLE memory ADD COLUMN confidence INTEGER;
UPDATE memory SET
    kind = CASE WHEN category NOT IN ('fact', 'other', 'preference') THEN category
                WHEN EXISTS (SELECT 1 FROM json_each(tags) WHERE value = 'event') THEN 'event'
                WHEN EXISTS (SELECT 1 FROM json_each(tags) WHERE value = 'relationship') THEN 'relationship'
                WHEN EXISTS (SELECT 1 FROM json_each(tags) WHERE value = 'instruction') THEN 'instruction'
                WHEN category NOT IN ('fact', 'other') THEN category
                WHEN event_start IS NOT NULL THEN 'event'
                WHEN subject = 'marital' OR subject LIKE '%: name' THEN 'relationship'
                ELSE 'fact' END,
    about = (SELECT substr(value, 7) FROM json_each(tags) WHERE value LIKE 'about %' ORDER BY key LIMIT 1),
    said_at = valid_from;
UPDATE memory SET checksum = CASE WHEN checksum = row_checksum(owner, created_at, revision, category, text, importance,
    tags, active, state, priority, speaker, subject, event_start, event_end, event_timed, remind_at, delivered_at,
    expires_at, valid_from, valid_to, superseded_by, extractor, trust, reason, times, seen_at)
    THEN row_checksum(owner, created_at, revision, category, text, importance, tags, active, state, priority, speaker,
    subject, event_start, event_end, event_timed, remind_at, delivered_at, expires_at, valid_from, valid_to,
    superseded_by, extractor, trust, reason, times, seen_at, kind, about, said_at, language, confidence) END;
