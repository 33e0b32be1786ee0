-- needs 16
-- Token vectors have a column of their own: only sentence vectors are compared by the database, which needs numbers of
-- half precision for that. Earlier ones are in `value`, until embedders have gone through the log once more and stored
-- them in the new form; no text is embedded again.
ALTER TABLE meaning RENAME TO embedding;
ALTER INDEX meaning_pkey RENAME TO embedding_pkey;
ALTER INDEX meaning_by_owner RENAME TO embedding_by_owner;
ALTER INDEX meaning_by_content RENAME TO embedding_by_content;
ALTER TABLE note_meaning RENAME TO note_embedding;
ALTER INDEX note_meaning_pkey RENAME TO note_embedding_pkey;
ALTER TABLE embedding ALTER COLUMN value DROP NOT NULL;
ALTER TABLE embedding ADD COLUMN tokens bytea;
UPDATE embedder SET up_to = 0 WHERE name LIKE '%/ranker-%';
