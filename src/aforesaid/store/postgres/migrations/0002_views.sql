-- For people with any PostgreSQL tool: the documented names and columns, read from the tables.

CREATE VIEW users WITH (security_invoker = true) AS
    SELECT p.name AS user_id,
           'postgresql' AS storage_type,
           coalesce((SELECT s.value #>> '{}' FROM setting s WHERE s.space = p.space AND s.owner = p.name
                        AND s.key = 'summary_every_n')::integer, 10) AS summary_every_n,
           coalesce((SELECT s.value #>> '{}' FROM setting s WHERE s.space = p.space AND s.owner = p.name
                        AND s.key = 'memory_enabled')::boolean, false) AS memory_enabled,
           said_at(p.created_at) AS created_at,
           said_at(greatest(p.created_at, (SELECT max(s.updated_at) FROM setting s WHERE s.space = p.space AND s.owner = p.name)))
               AS updated_at,
           p.space AS space
      FROM person p WHERE p.owner;

CREATE VIEW messages WITH (security_invoker = true) AS
    SELECT seq AS id, owner AS user_id, role, text AS content, said_at(at) AS created_at, active AS is_active,
           chunk AS chunk_id, space
      FROM log;

CREATE VIEW summaries WITH (security_invoker = true) AS
    SELECT id, owner AS user_id, text AS summary_text, said_at(created_at) AS created_at, level,
           to_json(chunks)::text AS source_chunk_ids, active AS is_active, space
      FROM summary;

CREATE VIEW user_facts WITH (security_invoker = true) AS
    SELECT f.space AS guild_id, f.owner AS user_id, f.text AS memory_blob, said_at(f.created_at) AS updated_at
      FROM facts f
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.space = f.space AND newer.owner = f.owner);

CREATE VIEW chat_history WITH (security_invoker = true) AS
    SELECT space AS guild_id, thread AS channel_id, coalesce(given_id, '#' || seq) AS message_id, author AS user_id,
           text AS message_text, said_at(at) AS "timestamp"
      FROM log;

CREATE VIEW conversation_sessions WITH (security_invoker = true) AS
    SELECT s.id AS id,
           s.opened_by AS user_name,
           s.name AS session_id,
           said_at(s.started_at) AS started_at,
           said_at(s.last_at) AS last_activity,
           CASE WHEN extract(epoch FROM now()) * 1000000 - s.last_at >= s.timeout THEN 'closed'
                WHEN (extract(epoch FROM now()) * 1000000 - s.last_at) * 3 >= s.timeout THEN 'idle'
                ELSE 'active' END AS state,
           s.messages AS message_count,
           s.space AS space
      FROM session s;

CREATE VIEW conversation_history WITH (security_invoker = true) AS
    SELECT l.seq AS id,
           l.owner AS user_name,
           l.session AS user_session,
           s.name AS session_id,
           'text' AS message_type,
           l.role AS role,
           l.text AS message,
           (SELECT v.value FROM meaning v WHERE v.space = l.space AND v.seq = l.seq ORDER BY v.embedder LIMIT 1) AS embedding,
           0.5 AS importance_score,
           said_at(l.at) AS "timestamp",
           l.space AS space
      FROM log l JOIN session s ON s.space = l.space AND s.id = l.session;

CREATE VIEW persistent_memories WITH (security_invoker = true) AS
    SELECT m.id AS id,
           m.owner AS user_name,
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
      FROM memory m;

CREATE VIEW active_memories WITH (security_invoker = true) AS SELECT * FROM persistent_memories WHERE active;
