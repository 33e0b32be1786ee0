-- Tables are named for what they hold. Processes of earlier versions would look for the old names.
ALTER TABLE walk RENAME TO cursor;
ALTER TABLE mark RENAME TO metadata;
ALTER TABLE forgotten RENAME TO tombstone;
DROP INDEX forgotten_by_owner;
CREATE INDEX tombstone_by_owner ON tombstone (owner, id);
