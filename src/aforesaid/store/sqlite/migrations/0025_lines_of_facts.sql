-- The lines of the facts, each with the version that it came with and the first one without it: a statement that is
-- added or taken out stores one line, and not the whole text again. `facts.text` is NULL for a version that is made of
-- lines; those of earlier processes stay whole.
CREATE TABLE fact (
    owner INTEGER NOT NULL REFERENCES person (id),
    number INTEGER NOT NULL,                   -- its place in the text
    text TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,                             -- NULL: it is in the newest version
    checksum INTEGER,
    PRIMARY KEY (owner, number)
) WITHOUT ROWID;
DROP VIEW user_facts;
ALTER TABLE facts RENAME TO whole_facts;
CREATE TABLE facts (
    owner INTEGER NOT NULL REFERENCES person (id),
    version INTEGER NOT NULL,
    text TEXT,
    cause TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (owner, version)
) WITHOUT ROWID;
INSERT INTO facts (owner, version, text, cause, created_at, checksum)
SELECT owner, version, text, cause, created_at, checksum FROM whole_facts;
DROP TABLE whole_facts;
CREATE VIEW user_facts AS
    SELECT CASE WHEN substr(p.space, 1, 8) = 'discord:' THEN substr(p.space, 9) ELSE p.space END AS guild_id,
           p.name AS user_id,
           coalesce(f.text, (SELECT group_concat(line, char(10)) FROM (
               SELECT l.text AS line FROM fact l WHERE l.owner = f.owner AND l.until IS NULL ORDER BY l.number)), '') AS memory_blob,
           strftime('%Y-%m-%d %H:%M:%f', f.created_at / 1000000.0, 'unixepoch') AS updated_at
      FROM facts f JOIN person p ON p.id = f.owner
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.owner = f.owner);
