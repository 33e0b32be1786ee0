-- Ranges of messages that the keyword index does not hold yet: a batch is stored first and indexed afterwards, step by
-- step. All messages of a range have the same owner and thread. A step removes from the range what it has indexed.
CREATE TABLE unindexed (
    first_seq INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    thread INTEGER NOT NULL
);
DROP VIEW log_index_content;
CREATE VIEW log_index_content AS
    SELECT seq, index_terms(owner, thread, shared, text) AS terms FROM log
     WHERE seq > coalesce(
               (SELECT last_seq FROM unindexed WHERE first_seq <= log.seq ORDER BY first_seq DESC LIMIT 1), 0);
