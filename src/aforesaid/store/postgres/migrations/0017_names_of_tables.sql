-- needs 17
-- Tables are named for what they hold. Processes of earlier versions would look for the old names.
ALTER TABLE walk RENAME TO cursor;
ALTER INDEX walk_pkey RENAME TO cursor_pkey;
ALTER TABLE mark RENAME TO metadata;
ALTER INDEX mark_pkey RENAME TO metadata_pkey;
ALTER TABLE forgotten RENAME TO tombstone;
ALTER INDEX forgotten_pkey RENAME TO tombstone_pkey;
ALTER INDEX forgotten_by_owner RENAME TO tombstone_by_owner;
ALTER TABLE space RENAME COLUMN last_forgotten TO last_tombstone;
