-- Summaries beyond archives: views of a stretch of the log that hide nothing, versions that people edited, and what is
-- known about how good a summary is.
ALTER TABLE summary ADD COLUMN reach TEXT NOT NULL DEFAULT 'chunks';   -- what it covers: 'chunks'; what the owner has from first_seq to last_seq in its 'thread' or as a 'user'; what its 'sources' cover
ALTER TABLE summary ADD COLUMN fresh_seq INTEGER NOT NULL DEFAULT 0;   -- the first message that the summaries it continues do not cover
ALTER TABLE summary ADD COLUMN began_at INTEGER NOT NULL DEFAULT 0;    -- when the first and the last of its messages were said
ALTER TABLE summary ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summary ADD COLUMN day TEXT NOT NULL DEFAULT '';           -- the day that it is about, or the last of several
ALTER TABLE summary ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE summary ADD COLUMN replaces INTEGER REFERENCES summary (id);
ALTER TABLE summary ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0;    -- 1 once a newer version is there
ALTER TABLE summary ADD COLUMN edited_by TEXT;
ALTER TABLE summary ADD COLUMN details TEXT;                           -- JSON
ALTER TABLE summary ADD COLUMN quality TEXT;                           -- JSON
UPDATE summary SET fresh_seq = first_seq,
       began_at = coalesce((SELECT min(l.at) FROM log l, json_each(summary.chunks) c WHERE l.chunk = c.value AND l.owner = summary.owner), created_at),
       ended_at = coalesce((SELECT max(l.at) FROM log l, json_each(summary.chunks) c WHERE l.chunk = c.value AND l.owner = summary.owner), created_at);

DROP INDEX summary_happens_once;
CREATE UNIQUE INDEX summary_happens_once ON summary (owner, thread, kind, level, first_seq, last_seq, prompt, day, version)
    WHERE rolled_back = 0;
CREATE INDEX summary_current ON summary (owner, kind, level, day, thread) WHERE active = 1;
CREATE INDEX summary_without_model ON summary (kind, id) WHERE active = 1 AND model IS NULL AND edited_by IS NULL;
CREATE INDEX summary_by_successor ON summary (replaces) WHERE replaces IS NOT NULL;

-- How far each policy has walked along the log, and what it has to look at because of what it saw there. Both change in
-- one step, so that nothing is forgotten when a process dies. A name is empty where it plays no part.
CREATE TABLE walk (
    policy TEXT PRIMARY KEY,
    up_to INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE agenda (
    policy TEXT NOT NULL,
    space TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT NOT NULL,
    day TEXT NOT NULL,
    messages INTEGER NOT NULL,                 -- all that were walked past
    characters INTEGER NOT NULL,
    waiting INTEGER NOT NULL,                  -- those since it was last looked at
    last_seq INTEGER NOT NULL,
    due_at INTEGER,                            -- when to look at it; NULL: not before something new is said
    done_at INTEGER,                           -- when it was last done, and with which message as the last
    done_seq INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,       -- in a row
    error TEXT,
    PRIMARY KEY (policy, space, user, thread, day)
) WITHOUT ROWID;
CREATE INDEX agenda_due ON agenda (policy, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_failing ON agenda (policy, due_at) WHERE failures > 0;
