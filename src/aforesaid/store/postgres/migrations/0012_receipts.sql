-- needs 12
-- Receipts of contexts: what was sent to a model, by the numbers of messages, memories and summaries. No text. The id
-- begins with the time, so that the key lists a user's receipts in order. Processes of earlier versions would not erase
-- them with their user.
CREATE TABLE receipt (
    space text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    reply bigint,                              -- the number of the message that it led to; it may have been erased since
    details json NOT NULL,
    checksum bigint,
    PRIMARY KEY (space, owner, id)
);
CREATE INDEX receipt_by_reply ON receipt (space, owner, reply) WHERE reply IS NOT NULL;
CREATE INDEX receipt_by_time ON receipt (space, at);
ALTER TABLE receipt ENABLE ROW LEVEL SECURITY;
ALTER TABLE receipt FORCE ROW LEVEL SECURITY;
CREATE POLICY wall ON receipt USING (current_setting('aforesaid.space', true) = space
    OR current_setting('aforesaid.reach', true) = 'all');
