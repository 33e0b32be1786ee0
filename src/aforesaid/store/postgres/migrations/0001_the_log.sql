-- Times are microseconds since 1970 in UTC. Every key begins with the space, and nothing is numbered or unique across
-- spaces, so that the tables can be spread over machines by space as they are. Names are compared byte by byte
-- (COLLATE "C"), like everywhere else in Aforesaid.

CREATE EXTENSION IF NOT EXISTS vector;

-- In two parts, because an interval is multiplied in floating point, which knows no microseconds after the year 2255.
CREATE FUNCTION said_at(microseconds bigint) RETURNS timestamp
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT timestamp '1970-01-01' + (microseconds / 1000000) * interval '1 second'
                 + (microseconds % 1000000) * interval '1 microsecond' $$;

-- Whoever writes in a space holds its row until the commit. So numbers become visible in the order in which they are
-- given, and what was checked before a change still holds when it is made.
CREATE TABLE space (
    space text COLLATE "C" PRIMARY KEY,
    last_seq bigint NOT NULL DEFAULT 0,
    last_session bigint NOT NULL DEFAULT 0,
    last_summary bigint NOT NULL DEFAULT 0,
    last_memory bigint NOT NULL DEFAULT 0,
    last_forgotten bigint NOT NULL DEFAULT 0,
    last_audit bigint NOT NULL DEFAULT 0,
    purges bigint NOT NULL DEFAULT 0           -- how often somebody was erased
) WITH (fillfactor = 50);

-- The last transaction of each process in a space. A process that lost its connection while it committed finds out here
-- whether it did.
CREATE TABLE writer (
    space text COLLATE "C" NOT NULL,
    writer text COLLATE "C" NOT NULL,
    batch bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space, writer)
) WITH (fillfactor = 50);

CREATE TABLE person (
    space text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    owner boolean NOT NULL DEFAULT false,      -- true once something belongs to them; authors need not own anything
    created_at bigint NOT NULL,
    messages bigint NOT NULL DEFAULT 0,        -- the counts below are kept by the writer and checked by verify
    archived bigint NOT NULL DEFAULT 0,
    turns bigint NOT NULL DEFAULT 0,
    open_turns bigint NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    last_seq bigint NOT NULL DEFAULT 0,
    last_at bigint,
    last_chunk bigint NOT NULL DEFAULT 0,
    extracted bigint NOT NULL DEFAULT 0,       -- up to where their messages were looked through for something to remember
    revision bigint NOT NULL DEFAULT 0,        -- grows when stored messages were regrouped: whoever has columns reads again.
                                               -- Starts at purges << 32: one who comes back is not taken for who went
    PRIMARY KEY (space, name)
) WITH (fillfactor = 80);
-- The documents look users up by their id alone.
CREATE INDEX person_by_name ON person (name);
CREATE INDEX person_to_extract ON person (space, name) WHERE last_seq > extracted;

CREATE TABLE thread (
    space text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    messages bigint NOT NULL DEFAULT 0,        -- counted for shared threads alone; in a direct chat the owner's counts do
    words bigint NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (space, name)
) WITH (fillfactor = 80);

CREATE TABLE session (
    space text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    thread text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    automatic boolean NOT NULL,
    opened_by text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    last_at bigint NOT NULL,
    first_seq bigint NOT NULL,                 -- its messages are found in its thread, between these two
    last_seq bigint NOT NULL,
    messages bigint NOT NULL,
    timeout bigint NOT NULL,
    PRIMARY KEY (space, id)
) WITH (fillfactor = 80);
-- A hash, because three long names do not fit into one entry of an index.
CREATE UNIQUE INDEX session_by_name ON session (space, name, md5(thread));
CREATE INDEX session_by_start ON session (space, thread, started_at) WHERE automatic;

CREATE TABLE log (
    space text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    thread text COLLATE "C" NOT NULL,
    shared boolean NOT NULL,                   -- false in a direct chat, where thread and owner say the same
    session bigint NOT NULL,
    author text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    name text,
    text text NOT NULL,
    at bigint NOT NULL,
    stored_at bigint NOT NULL,
    given_id text COLLATE "C",
    active boolean NOT NULL DEFAULT true,
    chunk bigint,
    words integer NOT NULL,
    terms bytea NOT NULL,                      -- eight bytes for each word, by which it is found; see terms in store/hashed.py
    hash bytea NOT NULL,
    PRIMARY KEY (space, seq)
);
CREATE INDEX log_by_owner ON log (space, owner, seq);
CREATE INDEX log_active_by_owner ON log (space, owner, seq) WHERE active;
CREATE INDEX log_by_thread ON log (space, thread, seq) WHERE shared;
CREATE INDEX log_by_time ON log (space, thread, at);
CREATE INDEX log_by_author ON log (space, author, said_at(at));
CREATE INDEX log_by_chunk ON log (space, owner, chunk) WHERE chunk IS NOT NULL;
CREATE UNIQUE INDEX log_by_given_id ON log (space, given_id, md5(thread)) WHERE given_id IS NOT NULL;

CREATE TABLE summary (
    space text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    thread text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    level integer NOT NULL,
    text text NOT NULL,
    chunks bigint[] NOT NULL DEFAULT '{}',
    reach text NOT NULL DEFAULT 'chunks',      -- what it covers: 'chunks'; what the owner has from first_seq to last_seq in its 'thread' or as a 'user'; what its 'sources' cover
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    fresh_seq bigint NOT NULL,                 -- the first message that the summaries it continues do not cover
    messages bigint NOT NULL,
    began_at bigint NOT NULL,                  -- when the first and the last of its messages were said
    ended_at bigint NOT NULL,
    day text COLLATE "C" NOT NULL DEFAULT '',  -- the day that it is about, or the last of several
    version integer NOT NULL DEFAULT 1,
    replaces bigint,
    replaced boolean NOT NULL DEFAULT false,   -- true once a newer version is there
    model text,
    prompt text COLLATE "C" NOT NULL,
    edited_by text,
    details json,
    quality json,
    created_at bigint NOT NULL,
    active boolean NOT NULL DEFAULT true,
    rolled_back boolean NOT NULL DEFAULT false,
    terms bytea NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX summary_by_owner ON summary (space, owner, active, level, id);
CREATE UNIQUE INDEX summary_happens_once
    ON summary (space, owner, md5(thread), kind, level, first_seq, last_seq, md5(prompt), day, version) WHERE NOT rolled_back;
CREATE INDEX summary_current ON summary (space, owner, kind, level, day) WHERE active;
CREATE INDEX summary_without_model ON summary (kind, id) WHERE active AND model IS NULL AND edited_by IS NULL;

CREATE TABLE summary_source (
    space text COLLATE "C" NOT NULL,
    summary bigint NOT NULL,
    source bigint NOT NULL,
    PRIMARY KEY (space, summary, source),
    FOREIGN KEY (space, summary) REFERENCES summary (space, id),
    FOREIGN KEY (space, source) REFERENCES summary (space, id)
);
CREATE INDEX summary_source_by_source ON summary_source (space, source);

CREATE TABLE memory (
    space text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    category text NOT NULL,
    text text NOT NULL,
    importance integer NOT NULL,
    tags text[] NOT NULL,
    active boolean NOT NULL,
    state text NOT NULL,
    priority integer NOT NULL,
    speaker text,                              -- NULL: the owner
    subject text,
    event_start bigint,
    event_end bigint,
    event_timed boolean NOT NULL,
    remind_at bigint,
    delivered_at bigint,
    expires_at bigint,
    valid_from bigint NOT NULL,
    valid_to bigint,
    superseded_by bigint,
    extractor text NOT NULL,
    trust text NOT NULL,
    reason text NOT NULL,
    times bigint NOT NULL,
    seen_at bigint NOT NULL,
    terms bytea NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX memory_by_owner ON memory (space, owner, active, importance, id);
CREATE INDEX memory_to_expire ON memory (expires_at) WHERE active AND expires_at IS NOT NULL;
CREATE INDEX memory_to_remind ON memory (remind_at) WHERE active AND remind_at IS NOT NULL AND delivered_at IS NULL;

CREATE TABLE memory_source (
    space text COLLATE "C" NOT NULL,
    memory bigint NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (space, memory, seq),
    FOREIGN KEY (space, memory) REFERENCES memory (space, id),
    FOREIGN KEY (space, seq) REFERENCES log (space, seq)
);
CREATE INDEX memory_source_by_seq ON memory_source (space, seq);

CREATE TABLE memory_version (
    space text COLLATE "C" NOT NULL,
    memory bigint NOT NULL,
    revision bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    was json NOT NULL,                         -- the columns that can change
    PRIMARY KEY (space, memory, revision),
    FOREIGN KEY (space, memory) REFERENCES memory (space, id)
);

CREATE TABLE facts (
    space text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    text text NOT NULL,
    cause text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (space, owner, version)
);

-- What people asked to forget: it is not learned again from what had been said until then.
CREATE TABLE forgotten (
    space text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    words text NOT NULL,
    up_to bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX forgotten_by_owner ON forgotten (space, owner, id);

-- What was worked out from other things, one of each kind for each user: the portrait, the habits.
CREATE TABLE derived (
    space text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (space, owner, kind)
);

CREATE TABLE setting (
    space text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value json NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (space, owner, key)
);

CREATE TABLE audit (
    space text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    at bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX audit_by_owner ON audit (space, owner, id);

-- What models were paid, in tokens, per user and day. The row without a user is what all of the space spent together.
CREATE TABLE spending (
    space text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (space, day, owner)
);
CREATE INDEX spending_of_all ON spending (day) WHERE owner = '';

-- How far each policy has walked along the log, and what it has to look at because of what it saw there. Both change in
-- one step, so that nothing is forgotten when a process dies. A name is empty where it plays no part.
CREATE TABLE walk (
    space text COLLATE "C" NOT NULL,
    policy text COLLATE "C" NOT NULL,
    up_to bigint NOT NULL,
    PRIMARY KEY (space, policy)
);

CREATE TABLE agenda (
    space text COLLATE "C" NOT NULL,
    policy text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    thread text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    messages bigint NOT NULL,                  -- all that were walked past
    characters bigint NOT NULL,
    waiting bigint NOT NULL,                   -- those since it was last looked at
    last_seq bigint NOT NULL,
    due_at bigint,                             -- when to look at it; NULL: not before something new is said
    done_at bigint,                            -- when it was last done, and with which message as the last
    done_seq bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,        -- in a row
    error text,
    PRIMARY KEY (space, policy, owner, thread, day)
) WITH (fillfactor = 80);
CREATE INDEX agenda_due ON agenda (policy, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_failing ON agenda (policy, due_at) WHERE failures > 0;

-- The meaning of messages and notes. Every embedder has its own vectors, and marks up to which it has seen a space.
CREATE TABLE embedder (
    space text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    up_to bigint NOT NULL DEFAULT 0,
    summaries_up_to bigint NOT NULL DEFAULT 0,
    memories_up_to bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (space, name)
) WITH (fillfactor = 80);

CREATE TABLE meaning (
    space text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    embedder text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    content bigint NOT NULL,                   -- a hash of the text: the same text is not embedded twice
    value halfvec NOT NULL,
    PRIMARY KEY (space, seq, embedder)
);
CREATE INDEX meaning_by_owner ON meaning (space, owner, embedder, seq);
CREATE INDEX meaning_by_content ON meaning (space, content);

-- A summary has the even number 2 * id here, a memory the odd number 2 * id + 1.
CREATE TABLE note_meaning (
    space text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    note bigint NOT NULL,
    embedder text COLLATE "C" NOT NULL,
    value halfvec NOT NULL,
    PRIMARY KEY (space, owner, note, embedder)
);

-- What is kept in mind about the store itself, under the space without a name.
CREATE TABLE mark (
    space text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (space, name)
);
-- Archives whose messages have been there for long enough are found without looking at the others.
CREATE INDEX summary_of_archive ON summary (ended_at) WHERE level = 1 AND reach = 'chunks' AND NOT rolled_back AND NOT replaced;
CREATE INDEX memory_unseen ON memory (seen_at) WHERE active;
