-- Times are microseconds since 1970 in UTC. People and threads are written once and referred to by number, which keeps
-- the indexes of the log small. Numbers are never used twice (AUTOINCREMENT), so a cached one cannot come to mean
-- somebody else.

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
    last_chunk INTEGER NOT NULL DEFAULT 0,
    UNIQUE (space, name)
);
-- The documents look users up by their id alone.
CREATE INDEX person_by_name ON person (name);

CREATE TABLE thread (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,       -- counted for shared threads alone; in a direct chat the owner's counts do
    words INTEGER NOT NULL DEFAULT 0,
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
    timeout INTEGER NOT NULL,
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
);
-- Every index is a page that each message dirties, so there are as few as possible.
CREATE INDEX log_by_owner ON log (owner, seq);
CREATE INDEX log_active_by_owner ON log (owner, seq) WHERE active = 1;
CREATE INDEX log_by_thread ON log (thread, seq) WHERE shared = 1;
CREATE INDEX log_by_time ON log (thread, at);
CREATE INDEX log_by_other_author ON log (author, at) WHERE author != owner;
CREATE INDEX log_by_chunk ON log (chunk, owner) WHERE chunk IS NOT NULL;
CREATE UNIQUE INDEX log_by_given_id ON log (given_id, thread) WHERE given_id IS NOT NULL;

-- The keyword index. A term is written with the number of its owner (and of its thread, where others can read along)
-- in front, so that a search touches the posting lists of its own scope and no others. index_terms() is the
-- application's own function; what it returns for a row is what the index must hold, and verify compares the two.
CREATE VIEW log_index_content AS
    SELECT seq, index_terms(owner, thread, shared, text) AS terms FROM log;
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
);
CREATE INDEX summary_by_owner ON summary (owner, active, level, id);
CREATE UNIQUE INDEX summary_happens_once ON summary (owner, thread, kind, level, first_seq, last_seq, prompt) WHERE rolled_back = 0;

CREATE TABLE summary_source (
    summary INTEGER NOT NULL REFERENCES summary (id),
    source INTEGER NOT NULL REFERENCES summary (id),
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
);
CREATE INDEX memory_by_owner ON memory (owner, active, importance, id);

CREATE TABLE memory_source (
    memory INTEGER NOT NULL REFERENCES memory (id),
    seq INTEGER NOT NULL REFERENCES log (seq),
    PRIMARY KEY (memory, seq)
) WITHOUT ROWID;
CREATE INDEX memory_source_by_seq ON memory_source (seq);

CREATE TABLE facts (
    owner INTEGER NOT NULL REFERENCES person (id),
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    cause TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, version)
) WITHOUT ROWID;

CREATE TABLE setting (
    owner INTEGER NOT NULL REFERENCES person (id),
    key TEXT NOT NULL,
    value TEXT NOT NULL,                       -- JSON
    updated_at INTEGER NOT NULL,
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
);
CREATE INDEX audit_by_user ON audit (space, user, id);

-- What follows is for people with any SQLite tool: the documented names and columns, read from the tables above.

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

CREATE VIEW user_facts AS
    SELECT p.space AS guild_id,
           p.name AS user_id,
           f.text AS memory_blob,
           strftime('%Y-%m-%d %H:%M:%f', f.created_at / 1000000.0, 'unixepoch') AS updated_at
      FROM facts f JOIN person p ON p.id = f.owner
     WHERE f.version = (SELECT max(newer.version) FROM facts newer WHERE newer.owner = f.owner);

-- In two parts, because two indexes find them: what people said themselves, and what was said in their thread by others.
CREATE VIEW chat_history AS
    SELECT o.space AS guild_id,
           t.name AS channel_id,
           coalesce(l.given_id, '#' || l.seq) AS message_id,
           o.name AS user_id,
           l.text AS message_text,
           strftime('%Y-%m-%d %H:%M:%f', l.at / 1000000.0, 'unixepoch') AS timestamp
      FROM log l JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread WHERE l.author = l.owner
    UNION ALL
    SELECT a.space, t.name, coalesce(l.given_id, '#' || l.seq), a.name, l.text,
           strftime('%Y-%m-%d %H:%M:%f', l.at / 1000000.0, 'unixepoch')
      FROM log l JOIN person a ON a.id = l.author JOIN thread t ON t.id = l.thread WHERE l.author != l.owner;

CREATE VIEW conversation_sessions AS
    SELECT s.id AS id,
           p.name AS user_name,
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
           p.name AS user_name,
           l.session AS user_session,
           s.name AS session_id,
           'text' AS message_type,
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
           p.name AS user_name,
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
