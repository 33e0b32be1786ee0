-- A message can have parts, tool calls, metadata and more beside its text: one JSON text, NULL for plain messages.
ALTER TABLE log ADD COLUMN details TEXT;
CREATE INDEX log_with_details ON log (owner, seq) WHERE details IS NOT NULL;
