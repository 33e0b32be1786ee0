-- schema 26
-- The sum of the steps in migrations/ up to this number, for files that are created. tools/sqlite_schema.py writes it.
CREATE TABLE person (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    owner INTEGER NOT NULL DEFAULT 0,          -- 1 once something belongs to them; authors need not own anything
    created_at INTEGER NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,       -- the counts below are kept by the writer and checked by verify
    archived INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    open_turns INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER,
    last_chunk INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0, extracted INTEGER NOT NULL DEFAULT 0, checksum INTEGER,
    UNIQUE (space, name)
);
CREATE INDEX person_by_name ON person (name);
CREATE TABLE thread (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,       -- counted for shared threads alone; in a direct chat the owner's counts do
    words INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0, checksum INTEGER,
    UNIQUE (space, name)
);
CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    thread INTEGER NOT NULL REFERENCES thread (id),
    name TEXT NOT NULL,
    automatic INTEGER NOT NULL,
    opened_by INTEGER NOT NULL REFERENCES person (id),
    started_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,                -- its messages are found in its thread, between these two
    last_seq INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    timeout INTEGER NOT NULL, checksum INTEGER,
    UNIQUE (thread, name)
);
CREATE INDEX session_by_start ON session (thread, automatic, started_at);
CREATE INDEX session_by_name ON session (name);
CREATE INDEX session_by_person ON session (opened_by);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES person (id),
    thread INTEGER NOT NULL REFERENCES thread (id),
    shared INTEGER NOT NULL,                   -- 0 in a direct chat, where thread and owner say the same
    session INTEGER NOT NULL,                  -- of table session; checked by verify, as sessions merge and go
    author INTEGER NOT NULL REFERENCES person (id),
    role TEXT NOT NULL,
    name TEXT,
    text TEXT NOT NULL,
    at INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    given_id TEXT,
    active INTEGER NOT NULL DEFAULT 1,
    chunk INTEGER,
    words INTEGER NOT NULL,
    hash BLOB NOT NULL
, replaces INTEGER REFERENCES log (seq), replaced INTEGER NOT NULL DEFAULT 0, details TEXT);
CREATE INDEX log_by_owner ON log (owner, seq);
CREATE INDEX log_active_by_owner ON log (owner, seq) WHERE active = 1;
CREATE INDEX log_by_thread ON log (thread, seq) WHERE shared = 1;
CREATE INDEX log_by_time ON log (thread, at);
CREATE INDEX log_by_other_author ON log (author, at) WHERE author != owner;
CREATE INDEX log_by_chunk ON log (chunk, owner) WHERE chunk IS NOT NULL;
CREATE UNIQUE INDEX log_by_given_id ON log (given_id, thread) WHERE given_id IS NOT NULL;
CREATE VIRTUAL TABLE log_index USING fts5(
    terms, content = 'log_index_content', content_rowid = 'seq', columnsize = 0, tokenize = "ascii tokenchars '._'"
);
CREATE VIRTUAL TABLE log_posting USING fts5vocab('log_index', 'instance');
CREATE TABLE summary (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES person (id),
    thread INTEGER NOT NULL REFERENCES thread (id),
    kind TEXT NOT NULL,
    level INTEGER NOT NULL,
    text TEXT NOT NULL,
    chunks TEXT NOT NULL,                      -- a JSON array
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    model TEXT,
    prompt TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    active INTEGER NOT NULL DEFAULT 1,
    rolled_back INTEGER NOT NULL DEFAULT 0
, reach TEXT NOT NULL DEFAULT 'chunks', fresh_seq INTEGER NOT NULL DEFAULT 0, began_at INTEGER NOT NULL DEFAULT 0, ended_at INTEGER NOT NULL DEFAULT 0, day TEXT NOT NULL DEFAULT '', version INTEGER NOT NULL DEFAULT 1, replaces INTEGER REFERENCES summary (id), replaced INTEGER NOT NULL DEFAULT 0, edited_by TEXT, details TEXT, quality TEXT, checksum INTEGER, shown INTEGER);
CREATE INDEX summary_by_owner ON summary (owner, active, level, id);
CREATE TABLE summary_source (
    summary INTEGER NOT NULL REFERENCES summary (id),
    source INTEGER NOT NULL REFERENCES summary (id), checksum INTEGER,
    PRIMARY KEY (summary, source)
) WITHOUT ROWID;
CREATE INDEX summary_source_by_source ON summary_source (source);
CREATE TABLE memory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES person (id),
    category TEXT NOT NULL,
    text TEXT NOT NULL,
    importance INTEGER NOT NULL,
    tags TEXT NOT NULL,                        -- a JSON array
    created_at INTEGER NOT NULL,
    active INTEGER NOT NULL DEFAULT 1
, state TEXT NOT NULL DEFAULT 'active', priority INTEGER NOT NULL DEFAULT 3, speaker INTEGER REFERENCES person (id), subject TEXT, event_start INTEGER, event_end INTEGER, event_timed INTEGER NOT NULL DEFAULT 0, remind_at INTEGER, delivered_at INTEGER, expires_at INTEGER, valid_from INTEGER NOT NULL DEFAULT 0, valid_to INTEGER, superseded_by INTEGER REFERENCES memory (id), extractor TEXT NOT NULL DEFAULT 'hand', trust TEXT NOT NULL DEFAULT 'stated', reason TEXT NOT NULL DEFAULT '', times INTEGER NOT NULL DEFAULT 1, seen_at INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 1, checksum INTEGER, kind TEXT NOT NULL DEFAULT 'fact', about TEXT, said_at INTEGER, language TEXT, confidence INTEGER, matter TEXT, value TEXT);
CREATE INDEX memory_by_owner ON memory (owner, active, importance, id);
CREATE TABLE memory_source (
    memory INTEGER NOT NULL REFERENCES memory (id),
    seq INTEGER NOT NULL REFERENCES log (seq), checksum INTEGER,
    PRIMARY KEY (memory, seq)
) WITHOUT ROWID;
CREATE INDEX memory_source_by_seq ON memory_source (seq);
CREATE TABLE setting (
    owner INTEGER NOT NULL REFERENCES person (id),
    key TEXT NOT NULL,
    value TEXT NOT NULL,                       -- JSON
    updated_at INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    space TEXT NOT NULL,
    user TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL
, checksum INTEGER);
CREATE INDEX audit_by_user ON audit (space, user, id);
CREATE VIEW users AS
    SELECT p.name AS user_id,
           'sqlite' AS storage_type,
           coalesce((SELECT json_extract(s.value, '$') FROM setting s WHERE s.owner = p.id AND s.key = 'summary_every_n'), 10)
               AS summary_every_n,
           coalesce((SELECT json_extract(s.value, '$') FROM setting s WHERE s.owner = p.id AND s.key = 'memory_enabled'), 0)
               AS memory_enabled,
           strftime('%Y-%m-%d %H:%M:%f', p.created_at / 1000000.0, 'unixepoch') AS created_at,
           strftime('%Y-%m-%d %H:%M:%f',
                    max(p.created_at, coalesce((SELECT max(s.updated_at) FROM setting s WHERE s.owner = p.id), 0)) / 1000000.0,
                    'unixepoch') AS updated_at,
           p.space AS space
      FROM person p WHERE p.owner = 1;
CREATE VIEW messages AS
    SELECT l.seq AS id,
           p.name AS user_id,
           l.role AS role,
           l.text AS content,
           strftime('%Y-%m-%d %H:%M:%f', l.at / 1000000.0, 'unixepoch') AS created_at,
           l.active AS is_active,
           l.chunk AS chunk_id,
           p.space AS space
      FROM log l JOIN person p ON p.id = l.owner;
CREATE VIEW summaries AS
    SELECT s.id AS id,
           p.name AS user_id,
           s.text AS summary_text,
           strftime('%Y-%m-%d %H:%M:%f', s.created_at / 1000000.0, 'unixepoch') AS created_at,
           s.level AS level,
           s.chunks AS source_chunk_ids,
           s.active AS is_active,
           p.space AS space
      FROM summary s JOIN person p ON p.id = s.owner;
CREATE TABLE embedder (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    dimensions INTEGER NOT NULL,
    up_to INTEGER NOT NULL DEFAULT 0
, summaries_up_to INTEGER NOT NULL DEFAULT 0, memories_up_to INTEGER NOT NULL DEFAULT 0);
CREATE TABLE vector (
    n INTEGER PRIMARY KEY AUTOINCREMENT,       -- grows with every vector, so that a cache can ask for what is new
    embedder INTEGER NOT NULL REFERENCES embedder (id),
    owner INTEGER NOT NULL REFERENCES person (id),
    seq INTEGER NOT NULL REFERENCES log (seq),
    content INTEGER NOT NULL,                  -- a hash of the text: the same text is not embedded twice
    value BLOB NOT NULL
);
CREATE INDEX vector_by_owner ON vector (embedder, owner);
CREATE INDEX vector_by_content ON vector (embedder, content);
CREATE VIEW note_index_content AS
    SELECT 2 * id AS note, index_terms(owner, 0, 0, text) AS terms FROM summary
    UNION ALL SELECT 2 * id + 1, index_terms(owner, 0, 0, text) FROM memory;
CREATE VIRTUAL TABLE note_index USING fts5(
    terms, content = 'note_index_content', content_rowid = 'note', columnsize = 0, tokenize = "ascii tokenchars '._'"
);
CREATE VIRTUAL TABLE note_posting USING fts5vocab('note_index', 'instance');
CREATE TABLE note_vector (
    embedder INTEGER NOT NULL REFERENCES embedder (id),
    owner INTEGER NOT NULL REFERENCES person (id),
    note INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (embedder, owner, note)
) WITHOUT ROWID;
CREATE TABLE spending (
    day TEXT NOT NULL,
    space TEXT NOT NULL,
    user TEXT NOT NULL,
    tokens INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (day, space, user)
) WITHOUT ROWID;
CREATE UNIQUE INDEX summary_happens_once ON summary (owner, thread, kind, level, first_seq, last_seq, prompt, day, version)
    WHERE rolled_back = 0;
CREATE INDEX summary_current ON summary (owner, kind, level, day, thread) WHERE active = 1;
CREATE INDEX summary_without_model ON summary (kind, id) WHERE active = 1 AND model IS NULL AND edited_by IS NULL;
CREATE INDEX summary_by_successor ON summary (replaces) WHERE replaces IS NOT NULL;
CREATE TABLE "cursor" (
    policy TEXT PRIMARY KEY,
    up_to INTEGER NOT NULL
, checksum INTEGER) WITHOUT ROWID;
CREATE TABLE agenda (
    policy TEXT NOT NULL,
    space TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT NOT NULL,
    day TEXT NOT NULL,
    messages INTEGER NOT NULL,                 -- all that were walked past
    characters INTEGER NOT NULL,
    waiting INTEGER NOT NULL,                  -- those since it was last looked at
    last_seq INTEGER NOT NULL,
    due_at INTEGER,                            -- when to look at it; NULL: not before something new is said
    done_at INTEGER,                           -- when it was last done, and with which message as the last
    done_seq INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,       -- in a row
    error TEXT, checksum INTEGER,
    PRIMARY KEY (policy, space, user, thread, day)
) WITHOUT ROWID;
CREATE INDEX agenda_due ON agenda (policy, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_failing ON agenda (policy, due_at) WHERE failures > 0;
CREATE INDEX memory_to_expire ON memory (expires_at) WHERE active = 1 AND expires_at IS NOT NULL;
CREATE INDEX memory_to_remind ON memory (remind_at) WHERE active = 1 AND remind_at IS NOT NULL AND delivered_at IS NULL;
CREATE INDEX memory_by_successor ON memory (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE TABLE memory_version (
    memory INTEGER NOT NULL REFERENCES memory (id),
    revision INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    was TEXT NOT NULL, checksum INTEGER,                         -- a JSON object of the columns that can change
    PRIMARY KEY (memory, revision)
) WITHOUT ROWID;
CREATE TABLE "tombstone" (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES person (id),
    words TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    at INTEGER NOT NULL
, checksum INTEGER);
CREATE TABLE derived (
    owner INTEGER NOT NULL REFERENCES person (id),
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    at INTEGER NOT NULL, checksum INTEGER,
    PRIMARY KEY (owner, kind)
) WITHOUT ROWID;
CREATE INDEX person_to_extract ON person (id) WHERE last_seq > extracted;
CREATE INDEX memory_by_creation ON memory (owner, created_at);
CREATE INDEX audit_by_time ON audit (space, user, at);
CREATE INDEX summary_rolled_back ON summary (owner, first_seq) WHERE rolled_back = 1;
CREATE TABLE "metadata" (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
, checksum INTEGER) WITHOUT ROWID;
CREATE INDEX summary_of_archive ON summary (ended_at) WHERE level = 1 AND reach = 'chunks' AND rolled_back = 0 AND replaced = 0;
CREATE UNIQUE INDEX vector_once ON vector (seq, embedder);
CREATE INDEX log_by_name ON log (author, at) WHERE name IS NOT NULL;
CREATE INDEX log_by_owner_time ON log (owner, at);
CREATE UNIQUE INDEX log_by_replaces ON log (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX log_replaced ON log (owner) WHERE replaced = 1;
CREATE INDEX log_with_details ON log (owner, seq) WHERE details IS NOT NULL;
CREATE TABLE unindexed (
    first_seq INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    thread INTEGER NOT NULL
);
CREATE VIEW log_index_content AS
    SELECT seq, index_terms(owner, thread, shared, text) AS terms FROM log
     WHERE seq > coalesce(
               (SELECT last_seq FROM unindexed WHERE first_seq <= log.seq ORDER BY first_seq DESC LIMIT 1), 0);
CREATE TABLE receipt (
    owner INTEGER NOT NULL REFERENCES person (id),
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    reply INTEGER,                          -- the number of the message that it led to; it may have been erased since
    details TEXT NOT NULL,                  -- a JSON object
    checksum INTEGER,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX receipt_by_reply ON receipt (owner, reply) WHERE reply IS NOT NULL;
CREATE INDEX receipt_by_time ON receipt (at);
CREATE INDEX person_by_shown_name ON person (
           CASE WHEN substr(name, 1, 5) = 'name-' AND instr(name, '@')
                THEN substr(rtrim(name, replace(name, '@', '')), 6, length(rtrim(name, replace(name, '@', ''))) - 6)
                ELSE name END
);
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
CREATE INDEX log_by_response ON log (json_extract(details, '$.metadata.response'))
 WHERE details IS NOT NULL AND substr(given_id, 1, 6) = 'reply:';
CREATE INDEX tombstone_by_owner ON tombstone (owner, id);
CREATE INDEX memory_of_request ON memory (owner, id) WHERE active = 1 AND kind = 'instruction' AND speaker IS NULL;
CREATE INDEX memory_to_deliver ON memory (owner, id)
 WHERE active = 1 AND delivered_at IS NULL AND (remind_at IS NOT NULL OR category = 'reminder');
CREATE INDEX memory_by_event ON memory (owner, coalesce(event_start, said_at, valid_from))
 WHERE kind != 'reminder' AND (kind = 'event' OR event_start IS NOT NULL);
CREATE INDEX memory_of_matter ON memory (owner, importance, id) WHERE active = 1 AND matter IS NOT NULL;
CREATE TABLE fact (
    owner INTEGER NOT NULL REFERENCES person (id),
    number INTEGER NOT NULL,                   -- its place in the text
    text TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,                             -- NULL: it is in the newest version
    checksum INTEGER,
    PRIMARY KEY (owner, number)
) WITHOUT ROWID;
CREATE TABLE facts (
    owner INTEGER NOT NULL REFERENCES person (id),
    version INTEGER NOT NULL,
    text TEXT,
    cause TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (owner, version)
) WITHOUT ROWID;
CREATE VIEW user_facts AS
    SELECT CASE WHEN substr(p.space, 1, 8) = 'discord:' THEN substr(p.space, 9) ELSE p.space END AS guild_id,
           p.name AS user_id,
           coalesce(f.text, (SELECT group_concat(line, char(10)) FROM (
               SELECT l.text AS line FROM fact l WHERE l.owner = f.owner AND l.until IS NULL ORDER BY l.number)), '') AS memory_blob,
           strftime('%Y-%m-%d %H:%M:%f', f.created_at / 1000000.0, 'unixepoch') AS updated_at
      FROM facts f JOIN person p ON p.id = f.owner
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.owner = f.owner);
