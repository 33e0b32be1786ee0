-- Searches keep columns of messages in memory. This number grows when stored messages were regrouped (two sessions became
-- one), which tells those who have columns to read them again.
ALTER TABLE person ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE thread ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

-- Summaries and memories are found like messages: by their words and by their meaning. A summary has the even number
-- 2 * id here, a memory the odd number 2 * id + 1.
CREATE VIEW note_index_content AS
    SELECT 2 * id AS note, index_terms(owner, 0, 0, text) AS terms FROM summary
    UNION ALL SELECT 2 * id + 1, index_terms(owner, 0, 0, text) FROM memory;
CREATE VIRTUAL TABLE note_index USING fts5(
    terms, content = 'note_index_content', content_rowid = 'note', columnsize = 0, tokenize = "ascii tokenchars '._'"
);
CREATE VIRTUAL TABLE note_posting USING fts5vocab('note_index', 'instance');
INSERT INTO note_index (note_index) VALUES ('rebuild');

CREATE TABLE note_vector (
    embedder INTEGER NOT NULL REFERENCES embedder (id),
    owner INTEGER NOT NULL REFERENCES person (id),
    note INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (embedder, owner, note)
) WITHOUT ROWID;
ALTER TABLE embedder ADD COLUMN summaries_up_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE embedder ADD COLUMN memories_up_to INTEGER NOT NULL DEFAULT 0;
