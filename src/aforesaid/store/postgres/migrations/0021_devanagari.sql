-- The built-in encoder reads Devanagari in Latin letters from here on. What it made of such texts before says nothing,
-- and is made anew. Where there is any, it goes through the log once more; all other vectors stay.
SET LOCAL aforesaid.reach = 'all';
UPDATE embedder SET up_to = 0, summaries_up_to = 0, memories_up_to = 0 WHERE name LIKE 'use-multilingual-3%'
    AND EXISTS (SELECT 1 FROM log WHERE log.space = embedder.space AND text ~ '[\u0900-\u097F]');
DELETE FROM embedding v USING log WHERE v.embedder LIKE 'use-multilingual-3%'
    AND log.space = v.space AND log.seq = v.seq AND log.text ~ '[\u0900-\u097F]';
DELETE FROM note_embedding v USING summary n WHERE v.embedder LIKE 'use-multilingual-3%'
    AND n.space = v.space AND v.note = 2 * n.id AND n.text ~ '[\u0900-\u097F]';
DELETE FROM note_embedding v USING memory n WHERE v.embedder LIKE 'use-multilingual-3%'
    AND n.space = v.space AND v.note = 2 * n.id + 1 AND n.text ~ '[\u0900-\u097F]';
