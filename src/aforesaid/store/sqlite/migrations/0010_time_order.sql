-- What a user reads is ordered by when it was said; a thread's order is in log_by_time.
CREATE INDEX log_by_owner_time ON log (owner, at);
