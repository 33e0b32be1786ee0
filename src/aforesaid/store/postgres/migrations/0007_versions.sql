-- A message can be a new version of an earlier one. Older versions stay; only the newest is shown and found.
ALTER TABLE log ADD COLUMN replaces bigint;
ALTER TABLE log ADD COLUMN replaced boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX log_by_replaces ON log (space, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX log_replaced ON log (space, owner, seq) WHERE replaced;
