-- Names as in the documents: the id of a Discord guild without the platform before it, and the name of somebody on a
-- Mumble server (`name-Ann@localhost:64738`) without the server. The names are looked up among the spaces and people,
-- which are few, and their messages then through an index.
CREATE OR REPLACE VIEW user_facts WITH (security_invoker = true) AS
    SELECT CASE WHEN f.space LIKE 'discord:%' THEN substr(f.space, 9) ELSE f.space END AS guild_id,
           f.owner AS user_id, f.text AS memory_blob, said_at(f.created_at) AS updated_at
      FROM facts f
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.space = f.space AND newer.owner = f.owner);

CREATE OR REPLACE VIEW chat_history WITH (security_invoker = true) AS
    SELECT CASE WHEN s.space LIKE 'discord:%' THEN substr(s.space, 9) ELSE s.space END AS guild_id,
           l.thread AS channel_id, coalesce(l.given_id, '#' || l.seq) AS message_id, l.author AS user_id,
           l.text AS message_text, said_at(l.at) AS "timestamp"
      FROM log l JOIN space s ON s.space = l.space;

CREATE OR REPLACE VIEW conversation_sessions WITH (security_invoker = true) AS
    SELECT s.id AS id,
           CASE WHEN p.name LIKE 'name-%@%' THEN substring(p.name FROM '^name-(.*)@') ELSE p.name END AS user_name,
           s.name AS session_id,
           said_at(s.started_at) AS started_at,
           said_at(s.last_at) AS last_activity,
           CASE WHEN extract(epoch FROM now()) * 1000000 - s.last_at >= s.timeout THEN 'closed'
                WHEN (extract(epoch FROM now()) * 1000000 - s.last_at) * 3 >= s.timeout THEN 'idle'
                ELSE 'active' END AS state,
           s.messages AS message_count,
           s.space AS space
      FROM session s JOIN person p ON p.space = s.space AND p.name = s.opened_by;

CREATE OR REPLACE VIEW conversation_history WITH (security_invoker = true) AS
    SELECT l.seq AS id,
           CASE WHEN p.name LIKE 'name-%@%' THEN substring(p.name FROM '^name-(.*)@') ELSE p.name END AS user_name,
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
      FROM log l JOIN person p ON p.space = l.space AND p.name = l.owner
      JOIN session s ON s.space = l.space AND s.id = l.session;

CREATE OR REPLACE VIEW persistent_memories WITH (security_invoker = true) AS
    SELECT m.id AS id,
           CASE WHEN p.name LIKE 'name-%@%' THEN substring(p.name FROM '^name-(.*)@') ELSE p.name END AS user_name,
           m.category AS category,
           m.text AS content,
           said_at(m.created_at) AS extracted_at,
           (SELECT s.name FROM memory_source ms JOIN log l ON l.space = ms.space AND l.seq = ms.seq
              JOIN session s ON s.space = l.space AND s.id = l.session
             WHERE ms.space = m.space AND ms.memory = m.id ORDER BY ms.seq LIMIT 1) AS session_id,
           m.importance AS importance,
           m.tags AS tags,
           m.active AS active,
           m.space AS space
      FROM memory m JOIN person p ON p.space = m.space AND p.name = m.owner;
