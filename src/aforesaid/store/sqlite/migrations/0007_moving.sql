-- What comes back from a dump is looked for first, so that nothing is stored twice: by when it was made.
CREATE INDEX memory_by_creation ON memory (owner, created_at);
CREATE INDEX audit_by_time ON audit (space, user, at);
CREATE INDEX summary_rolled_back ON summary (owner, first_seq) WHERE rolled_back = 1;
