-- A message can be a new version of an earlier one. Older versions stay; only the newest is shown and found.
ALTER TABLE log ADD COLUMN replaces INTEGER REFERENCES log (seq);
ALTER TABLE log ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX log_by_replaces ON log (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX log_replaced ON log (owner) WHERE replaced = 1;
