-- Chats and their messages, which form a tree: a message's parent is older than itself.

CREATE TABLE conversation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    active INTEGER,
    draft TEXT NOT NULL DEFAULT '',
    system TEXT,
    deleted_at REAL,
    FOREIGN KEY (id, active) REFERENCES node (conversation, id) DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX conversation_by_time ON conversation (updated DESC, id DESC) WHERE deleted_at IS NULL;

-- figures and runs are JSON.
CREATE TABLE node (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    parent INTEGER CHECK (parent < id),
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    created REAL NOT NULL,
    state TEXT NOT NULL,
    problem TEXT NOT NULL,
    remedy TEXT NOT NULL,
    thinking INTEGER NOT NULL,
    thought_s REAL,
    text TEXT NOT NULL,
    thought TEXT NOT NULL,
    figures TEXT,
    runs TEXT,
    FOREIGN KEY (conversation, parent) REFERENCES node (conversation, id) DEFERRABLE INITIALLY DEFERRED
);

CREATE UNIQUE INDEX node_by_conversation ON node (conversation, id);
CREATE INDEX node_by_parent ON node (conversation, parent);

-- One row for a text that belongs to no chat, such as the draft of a chat that is not yet made.
CREATE TABLE note (name TEXT PRIMARY KEY, text TEXT NOT NULL);

-- Pieces of one, two and three characters that stand in a message; see tandem.chat.search. It can be made again.
CREATE VIRTUAL TABLE gram USING fts5 (grams, content = '', columnsize = 0, detail = none, tokenize = 'ascii');

-- Messages that are not in `gram`: still streaming, or very long and put off.
CREATE TABLE unindexed (node INTEGER PRIMARY KEY REFERENCES node (id) ON DELETE CASCADE);
