-- A message can have parts, tool calls, metadata and more beside its text: one JSON text, NULL for plain messages.
ALTER TABLE log ADD COLUMN details text;
CREATE INDEX log_with_details ON log (space, owner, seq) WHERE details IS NOT NULL;
