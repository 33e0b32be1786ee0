-- Which matter of a person a memory is, and the value of it in the person's own words. NULL: a note.
ALTER TABLE memory ADD COLUMN matter TEXT;
ALTER TABLE memory ADD COLUMN value TEXT;
UPDATE memory SET checksum = CASE WHEN checksum = row_checksum(owner, created_at, revision, category, text,
    importance, tags, active, state, priority, speaker, subject, event_start, event_end, event_timed, remind_at,
    delivered_at, expires_at, valid_from, valid_to, superseded_by, extractor, trust, reason, times, seen_at, kind,
    about, said_at, language, confidence) THEN row_checksum(owner, created_at, revision, category, text, importance,
    tags, active, state, priority, speaker, subject, event_start, event_end, event_timed, remind_at, delivered_at,
    expires_at, valid_from, valid_to, superseded_by, extractor, trust, reason, times, seen_at, kind, about, said_at,
    language, confidence, matter, value) END;
CREATE INDEX memory_of_matter ON memory (owner, importance, id) WHERE active = 1 AND matter IS NOT NULL;
