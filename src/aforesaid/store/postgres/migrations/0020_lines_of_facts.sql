-- needs 20
-- The lines of the facts, each with the version that it came with and the first one without it: a statement that is
-- added or taken out stores one line, and not the whole text again. `facts.text` is NULL for a version that is made of
-- lines; those of earlier processes stay whole. Processes of earlier versions would not find them.
CREATE TABLE fact (
    space text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    number bigint NOT NULL,                    -- its place in the text
    text text NOT NULL,
    since bigint NOT NULL,
    until bigint,                              -- NULL: it is in the newest version
    checksum bigint,
    PRIMARY KEY (space, owner, number)
);
ALTER TABLE fact ENABLE ROW LEVEL SECURITY;
ALTER TABLE fact FORCE ROW LEVEL SECURITY;
CREATE POLICY wall ON fact USING (current_setting('aforesaid.space', true) = space
    OR current_setting('aforesaid.reach', true) = 'all');
ALTER TABLE facts ALTER COLUMN text DROP NOT NULL;
CREATE OR REPLACE VIEW user_facts WITH (security_invoker = true) AS
    SELECT CASE WHEN f.space LIKE 'discord:%' THEN substr(f.space, 9) ELSE f.space END AS guild_id,
           f.owner AS user_id,
           coalesce(f.text, (SELECT string_agg(l.text, E'\n' ORDER BY l.number) FROM fact l
                              WHERE l.space = f.space AND l.owner = f.owner AND l.until IS NULL), '') AS memory_blob,
           said_at(f.created_at) AS updated_at
      FROM facts f
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.space = f.space AND newer.owner = f.owner);
