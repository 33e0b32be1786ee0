-- How many messages a summary was made from: of each the newest version, and none that was taken back. The column
-- `messages` counts all rows of the log that it covers. NULL: as many.
ALTER TABLE summary ADD COLUMN shown INTEGER;
UPDATE summary SET checksum = CASE WHEN checksum = row_checksum(owner, thread, kind, level, text, chunks, reach,
    first_seq, last_seq, fresh_seq, messages, began_at, ended_at, day, version, replaces, replaced, model, prompt,
    edited_by, details, quality, created_at, active, rolled_back) THEN row_checksum(owner, thread, kind, level, text,
    chunks, reach, first_seq, last_seq, fresh_seq, messages, began_at, ended_at, day, version, replaces, replaced,
    model, prompt, edited_by, details, quality, created_at, active, rolled_back, shown) END;
