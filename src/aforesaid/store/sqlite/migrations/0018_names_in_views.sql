-- Names as in the documents: the id of a Discord guild without the platform before it, and the name of somebody on a
-- Mumble server (`name-Ann@localhost:64738`) without the server.
CREATE INDEX person_by_shown_name ON person (
           CASE WHEN substr(name, 1, 5) = 'name-' AND instr(name, '@')
                THEN substr(rtrim(name, replace(name, '@', '')), 6, length(rtrim(name, replace(name, '@', ''))) - 6)
                ELSE name END
);
DROP VIEW user_facts;
CREATE VIEW user_facts AS
    SELECT CASE WHEN substr(p.space, 1, 8) = 'discord:' THEN substr(p.space, 9) ELSE p.space END AS guild_id,
           p.name AS user_id,
           f.text AS memory_blob,
           strftime('%Y-%m-%d %H:%M:%f', f.created_at / 1000000.0, 'unixepoch') AS updated_at
      FROM facts f JOIN person p ON p.id = f.owner
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.owner = f.owner);
DROP VIEW chat_history;
CREATE VIEW chat_history AS
    SELECT CASE WHEN substr(o.space, 1, 8) = 'discord:' THEN substr(o.space, 9) ELSE o.space END AS guild_id,
           t.name AS channel_id,
           coalesce(l.given_id, '#' || l.seq) AS message_id,
           o.name AS user_id,
           l.text AS message_text,
           strftime('%Y-%m-%d %H:%M:%f', l.at / 1000000.0, 'unixepoch') AS timestamp
      FROM log l JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread WHERE l.author = l.owner
    UNION ALL
    SELECT CASE WHEN substr(a.space, 1, 8) = 'discord:' THEN substr(a.space, 9) ELSE a.space END,
           t.name, coalesce(l.given_id, '#' || l.seq), a.name, l.text,
           strftime('%Y-%m-%d %H:%M:%f', l.at / 1000000.0, 'unixepoch')
      FROM log l JOIN person a ON a.id = l.author JOIN thread t ON t.id = l.thread WHERE l.author != l.owner;
DROP VIEW conversation_sessions;
CREATE VIEW conversation_sessions AS
    SELECT s.id AS id,
           CASE WHEN substr(p.name, 1, 5) = 'name-' AND instr(p.name, '@')
                THEN substr(rtrim(p.name, replace(p.name, '@', '')), 6, length(rtrim(p.name, replace(p.name, '@', ''))) - 6)
                ELSE p.name END AS user_name,
           s.name AS session_id,
           strftime('%Y-%m-%d %H:%M:%f', s.started_at / 1000000.0, 'unixepoch') AS started_at,
           strftime('%Y-%m-%d %H:%M:%f', s.last_at / 1000000.0, 'unixepoch') AS last_activity,
           -- in days since the Julian epoch, because older tools know no finer clock
           CASE WHEN (julianday('now') - 2440587.5) * 86400000000 - s.last_at >= s.timeout THEN 'closed'
                WHEN ((julianday('now') - 2440587.5) * 86400000000 - s.last_at) * 3 >= s.timeout THEN 'idle'
                ELSE 'active' END AS state,
           s.messages AS message_count,
           p.space AS space
      FROM session s JOIN person p ON p.id = s.opened_by;
DROP VIEW conversation_history;
CREATE VIEW conversation_history AS
    SELECT l.seq AS id,
           CASE WHEN substr(p.name, 1, 5) = 'name-' AND instr(p.name, '@')
                THEN substr(rtrim(p.name, replace(p.name, '@', '')), 6, length(rtrim(p.name, replace(p.name, '@', ''))) - 6)
                ELSE p.name END AS user_name,
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
DROP VIEW active_memories;
DROP VIEW persistent_memories;
CREATE VIEW persistent_memories AS
    SELECT m.id AS id,
           CASE WHEN substr(p.name, 1, 5) = 'name-' AND instr(p.name, '@')
                THEN substr(rtrim(p.name, replace(p.name, '@', '')), 6, length(rtrim(p.name, replace(p.name, '@', ''))) - 6)
                ELSE p.name END AS user_name,
           m.category AS category,
           m.text AS content,
           strftime('%Y-%m-%d %H:%M:%f', m.created_at / 1000000.0, 'unixepoch') AS extracted_at,
           (SELECT s.name FROM memory_source ms JOIN log l ON l.seq = ms.seq JOIN session s ON s.id = l.session
             WHERE ms.memory = m.id ORDER BY ms.seq LIMIT 1) AS session_id,
           m.importance AS importance,
           m.tags AS tags,
           m.active AS active,
           p.space AS space
      FROM memory m JOIN person p ON p.id = m.owner;
CREATE VIEW active_memories AS SELECT * FROM persistent_memories WHERE active = 1;
