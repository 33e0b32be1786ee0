-- A checksum of the columns that hold what people said, what is known about them, or when something is due. `verify`
-- compares it with them (see store/checksums.py). It is not shown in the documented views.
ALTER TABLE person ADD COLUMN checksum INTEGER;
ALTER TABLE thread ADD COLUMN checksum INTEGER;
ALTER TABLE session ADD COLUMN checksum INTEGER;
ALTER TABLE summary ADD COLUMN checksum INTEGER;
ALTER TABLE summary_source ADD COLUMN checksum INTEGER;
ALTER TABLE memory ADD COLUMN checksum INTEGER;
ALTER TABLE memory_source ADD COLUMN checksum INTEGER;
ALTER TABLE memory_version ADD COLUMN checksum INTEGER;
ALTER TABLE facts ADD COLUMN checksum INTEGER;
ALTER TABLE forgotten ADD COLUMN checksum INTEGER;
ALTER TABLE derived ADD COLUMN checksum INTEGER;
ALTER TABLE setting ADD COLUMN checksum INTEGER;
ALTER TABLE audit ADD COLUMN checksum INTEGER;
ALTER TABLE spending ADD COLUMN checksum INTEGER;
ALTER TABLE walk ADD COLUMN checksum INTEGER;
ALTER TABLE agenda ADD COLUMN checksum INTEGER;
ALTER TABLE mark ADD COLUMN checksum INTEGER;
UPDATE person SET checksum = row_checksum(space, name, owner, created_at, last_chunk, extracted);
UPDATE thread SET checksum = row_checksum(space, name);
UPDATE session SET checksum = row_checksum(thread, name, automatic, opened_by, timeout);
UPDATE summary SET checksum = row_checksum(owner, thread, kind, level, text, chunks, reach, first_seq, last_seq,
    fresh_seq, messages, began_at, ended_at, day, version, replaces, replaced, model, prompt, edited_by, details,
    quality, created_at, active, rolled_back);
UPDATE summary_source SET checksum = row_checksum(summary, source);
UPDATE memory SET checksum = row_checksum(owner, created_at, revision, category, text, importance, tags, active,
    state, priority, speaker, subject, event_start, event_end, event_timed, remind_at, delivered_at, expires_at,
    valid_from, valid_to, superseded_by, extractor, trust, reason, times, seen_at);
UPDATE memory_source SET checksum = row_checksum(memory, seq);
UPDATE memory_version SET checksum = row_checksum(memory, revision, at, actor, action, was);
UPDATE facts SET checksum = row_checksum(owner, version, text, cause, created_at);
UPDATE forgotten SET checksum = row_checksum(id, owner, words, up_to, at);
UPDATE derived SET checksum = row_checksum(owner, kind, key, value, at);
UPDATE setting SET checksum = row_checksum(owner, key, value, updated_at);
UPDATE audit SET checksum = row_checksum(space, id, at, user, actor, action, subject);
UPDATE spending SET checksum = row_checksum(space, day, user, tokens);
UPDATE walk SET checksum = row_checksum(policy, up_to);
UPDATE agenda SET checksum = row_checksum(space, policy, user, thread, day, messages, characters, waiting, last_seq,
    due_at, done_at, done_seq, failures, error);
UPDATE mark SET checksum = row_checksum(name, value);
