-- What is kept in mind about the store itself: when it was last cleaned up, how large it was on a day.
CREATE TABLE mark (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Archives whose messages have been there for long enough are found without looking at the others.
CREATE INDEX summary_of_archive ON summary (ended_at) WHERE level = 1 AND reach = 'chunks' AND rolled_back = 0 AND replaced = 0;

-- The other way round: a message that is removed is asked for by its number alone.
DROP INDEX vector_once;
CREATE UNIQUE INDEX vector_once ON vector (seq, embedder);
