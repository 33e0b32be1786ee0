-- Receipts of contexts: what was sent to a model, by the numbers of messages, memories and summaries. No text. The id
-- begins with the time, so that the key lists a user's receipts in order.
CREATE TABLE receipt (
    owner INTEGER NOT NULL REFERENCES person (id),
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    reply INTEGER,                          -- the number of the message that it led to; it may have been erased since
    details TEXT NOT NULL,                  -- a JSON object
    checksum INTEGER,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX receipt_by_reply ON receipt (owner, reply) WHERE reply IS NOT NULL;
CREATE INDEX receipt_by_time ON receipt (at);
