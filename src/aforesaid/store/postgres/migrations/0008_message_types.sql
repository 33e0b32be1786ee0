-- The type of a message, as far as what is stored shows it: bots name spoken messages `voice:…`, answers to them
-- `re:voice:…`, and list what was attached in lines such as `[attached: photo]`.
CREATE OR REPLACE VIEW conversation_history WITH (security_invoker = true) AS
    SELECT l.seq AS id,
           l.owner AS user_name,
           l.session AS user_session,
           s.name AS session_id,
           CASE WHEN l.role NOT IN ('user', 'assistant') THEN 'system'
                WHEN l.given_id LIKE 'voice:%' OR l.given_id LIKE 're:voice:%' THEN 'voice'
                WHEN l.text LIKE '%[attached: voice message%' THEN 'voice'
                WHEN l.text ~* '\[attached: ((photo|picture)\]|[^]]*\.(jpg|jpeg|png|gif|webp|heic))' THEN 'image'
                WHEN l.text ~* '\[attached: (video|animation|[^]]*\.(mp4|mov|webm))' THEN 'video'
                WHEN l.text ~* '\[attached: (audio|[^]]*\.(mp3|ogg|wav|m4a))' THEN 'audio'
                WHEN l.text LIKE '%[attached: sticker%' THEN 'sticker'
                WHEN l.text LIKE '%[attached: location %' THEN 'location'
                WHEN l.text LIKE '%[attached: contact %' THEN 'contact'
                WHEN l.text LIKE '%[attached: poll: %' THEN 'poll'
                WHEN l.text LIKE '%[attached: %' THEN 'file'
                WHEN l.role = 'user' AND l.text ~ '^/[A-Za-z][^/ ]*( |$)' THEN 'command'
                ELSE 'text' END AS message_type,
           l.role AS role,
           l.text AS message,
           (SELECT v.value FROM meaning v WHERE v.space = l.space AND v.seq = l.seq ORDER BY v.embedder LIMIT 1) AS embedding,
           0.5 AS importance_score,
           said_at(l.at) AS "timestamp",
           l.space AS space
      FROM log l JOIN session s ON s.space = l.space AND s.id = l.session;
