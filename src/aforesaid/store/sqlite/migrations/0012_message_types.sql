-- The type of a message, as far as what is stored shows it: bots name spoken messages `voice:…`, answers to them
-- `re:voice:…`, and list what was attached in lines such as `[attached: photo]`.
DROP VIEW conversation_history;
CREATE VIEW conversation_history AS
    SELECT l.seq AS id,
           p.name AS user_name,
           l.session AS user_session,
           s.name AS session_id,
           CASE WHEN l.role NOT IN ('user', 'assistant') THEN 'system'
                WHEN l.given_id LIKE 'voice:%' OR l.given_id LIKE 're:voice:%' THEN 'voice'
                WHEN l.text LIKE '%[attached: voice message%' THEN 'voice'
                WHEN l.text LIKE '%[attached: photo]%' OR l.text LIKE '%[attached: picture]%'
                     OR l.text LIKE '%[attached: %.jpg%' OR l.text LIKE '%[attached: %.jpeg%'
                     OR l.text LIKE '%[attached: %.png%' OR l.text LIKE '%[attached: %.gif%'
                     OR l.text LIKE '%[attached: %.webp%' OR l.text LIKE '%[attached: %.heic%' THEN 'image'
                WHEN l.text LIKE '%[attached: video%' OR l.text LIKE '%[attached: animation%'
                     OR l.text LIKE '%[attached: %.mp4%' OR l.text LIKE '%[attached: %.mov%'
                     OR l.text LIKE '%[attached: %.webm%' THEN 'video'
                WHEN l.text LIKE '%[attached: audio%' OR l.text LIKE '%[attached: %.mp3%'
                     OR l.text LIKE '%[attached: %.ogg%' OR l.text LIKE '%[attached: %.wav%'
                     OR l.text LIKE '%[attached: %.m4a%' THEN 'audio'
                WHEN l.text LIKE '%[attached: sticker%' THEN 'sticker'
                WHEN l.text LIKE '%[attached: location %' THEN 'location'
                WHEN l.text LIKE '%[attached: contact %' THEN 'contact'
                WHEN l.text LIKE '%[attached: poll: %' THEN 'poll'
                WHEN l.text LIKE '%[attached: %' THEN 'file'
                WHEN l.role = 'user' AND l.text GLOB '/[A-Za-z]*'
                     AND substr(l.text, 2, instr(l.text || ' ', ' ') - 2) NOT LIKE '%/%' THEN 'command'
                ELSE 'text' END AS message_type,
           l.role AS role,
           l.text AS message,
           NULL AS embedding,
           0.5 AS importance_score,
           strftime('%Y-%m-%d %H:%M:%f', l.at / 1000000.0, 'unixepoch') AS timestamp,
           p.space AS space
      FROM log l JOIN person p ON p.id = l.owner
      -- The thread and the times say nothing new, but they let an index find a session's messages.
      JOIN session s ON s.id = l.session AND s.thread = l.thread AND l.at BETWEEN s.started_at AND s.last_at;
