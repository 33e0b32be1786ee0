-- The built-in encoder reads Devanagari in Latin letters from here on. What it made of such texts before says nothing,
-- and is made anew. Where there is any, it goes through the log once more; all other vectors stay.
DELETE FROM vector WHERE embedder IN (SELECT id FROM embedder WHERE name LIKE 'use-multilingual-3%')
    AND seq IN (SELECT seq FROM log WHERE text GLOB '*[' || char(0x900) || '-' || char(0x97f) || ']*');
UPDATE embedder SET up_to = 0, summaries_up_to = 0, memories_up_to = 0
 WHERE name LIKE 'use-multilingual-3%' AND changes() > 0;
DELETE FROM note_vector WHERE embedder IN (SELECT id FROM embedder WHERE name LIKE 'use-multilingual-3%') AND note IN (
    SELECT 2 * id FROM summary WHERE text GLOB '*[' || char(0x900) || '-' || char(0x97f) || ']*'
    UNION ALL SELECT 2 * id + 1 FROM memory WHERE text GLOB '*[' || char(0x900) || '-' || char(0x97f) || ']*');
