-- What is known about people changes: a memory has a state, a time in which it held, and what took its place.
-- `active` says whether its state is 'active', and stays for those who read it.
ALTER TABLE memory ADD COLUMN state TEXT NOT NULL DEFAULT 'active';
ALTER TABLE memory ADD COLUMN priority INTEGER NOT NULL DEFAULT 3;
ALTER TABLE memory ADD COLUMN speaker INTEGER REFERENCES person (id);        -- NULL: the owner
ALTER TABLE memory ADD COLUMN subject TEXT;
ALTER TABLE memory ADD COLUMN event_start INTEGER;
ALTER TABLE memory ADD COLUMN event_end INTEGER;
ALTER TABLE memory ADD COLUMN event_timed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory ADD COLUMN remind_at INTEGER;
ALTER TABLE memory ADD COLUMN delivered_at INTEGER;
ALTER TABLE memory ADD COLUMN expires_at INTEGER;
ALTER TABLE memory ADD COLUMN valid_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory ADD COLUMN valid_to INTEGER;
ALTER TABLE memory ADD COLUMN superseded_by INTEGER REFERENCES memory (id);
ALTER TABLE memory ADD COLUMN extractor TEXT NOT NULL DEFAULT 'hand';
ALTER TABLE memory ADD COLUMN trust TEXT NOT NULL DEFAULT 'stated';
ALTER TABLE memory ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE memory ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
ALTER TABLE memory ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
UPDATE memory SET state = iif(active, 'active', 'deactivated'), valid_from = created_at, seen_at = created_at;

-- What is due is found without looking at what is not.
CREATE INDEX memory_to_expire ON memory (expires_at) WHERE active = 1 AND expires_at IS NOT NULL;
CREATE INDEX memory_to_remind ON memory (remind_at) WHERE active = 1 AND remind_at IS NOT NULL AND delivered_at IS NULL;
CREATE INDEX memory_by_successor ON memory (superseded_by) WHERE superseded_by IS NOT NULL;

-- A memory as it was before each of its changes, so that every change can be taken back.
CREATE TABLE memory_version (
    memory INTEGER NOT NULL REFERENCES memory (id),
    revision INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    was TEXT NOT NULL,                         -- a JSON object of the columns that can change
    PRIMARY KEY (memory, revision)
) WITHOUT ROWID;

-- What people asked to forget: it is not learned again from what had been said until then.
CREATE TABLE forgotten (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES person (id),
    words TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX forgotten_by_owner ON forgotten (owner, id);

-- What was worked out from other things, one of each kind for each user: the portrait, the habits.
CREATE TABLE derived (
    owner INTEGER NOT NULL REFERENCES person (id),
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (owner, kind)
) WITHOUT ROWID;

-- Up to where each user's messages were looked through for something to remember.
ALTER TABLE person ADD COLUMN extracted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX person_to_extract ON person (id) WHERE last_seq > extracted;
