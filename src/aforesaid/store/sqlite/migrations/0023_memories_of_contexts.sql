-- What a context shows of a person's memories is found without looking at all of them: standing requests, reminders that
-- wait, and what happened in a time.
CREATE INDEX memory_of_request ON memory (owner, id) WHERE active = 1 AND kind = 'instruction' AND speaker IS NULL;
CREATE INDEX memory_to_deliver ON memory (owner, id)
 WHERE active = 1 AND delivered_at IS NULL AND (remind_at IS NOT NULL OR category = 'reminder');
CREATE INDEX memory_by_event ON memory (owner, coalesce(event_start, said_at, valid_from))
 WHERE kind != 'reminder' AND (kind = 'event' OR event_start IS NOT NULL);
