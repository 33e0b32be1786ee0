-- The latest display name of everybody is found without reading the log.
CREATE INDEX log_by_name ON log (author, at) WHERE name IS NOT NULL;
