-- The meaning of messages, as vectors of half-precision numbers. Every embedder has its own, and a mark up to which
-- it has seen the log; what lies beyond is still to do.
CREATE TABLE embedder (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    dimensions INTEGER NOT NULL,
    up_to INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE vector (
    n INTEGER PRIMARY KEY AUTOINCREMENT,       -- grows with every vector, so that a cache can ask for what is new
    embedder INTEGER NOT NULL REFERENCES embedder (id),
    owner INTEGER NOT NULL REFERENCES person (id),
    seq INTEGER NOT NULL REFERENCES log (seq),
    content INTEGER NOT NULL,                  -- a hash of the text: the same text is not embedded twice
    value BLOB NOT NULL
);
CREATE UNIQUE INDEX vector_once ON vector (embedder, seq);
CREATE INDEX vector_by_owner ON vector (embedder, owner);
CREATE INDEX vector_by_content ON vector (embedder, content);

-- Words are stored by their stems from here on.
INSERT INTO log_index (log_index) VALUES ('rebuild');
