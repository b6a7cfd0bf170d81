"""The tables of a store, by the version that brought them."""

from __future__ import annotations

#: Version of a store that is made now.
SCHEMA_VERSION = 2
#: "psyp" in ASCII: tells a store from any other SQLite file.
APPLICATION_ID = 0x70737970

#: What each version added.
TABLES = {
    1: """
CREATE TABLE content (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, json TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE question (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, stimulus TEXT NOT NULL, reference TEXT NOT NULL,
    display TEXT NOT NULL, observer TEXT NOT NULL, version TEXT NOT NULL
);
CREATE TABLE response (
    question INTEGER NOT NULL REFERENCES question (id), layer TEXT NOT NULL, measure TEXT NOT NULL,
    value REAL NOT NULL, PRIMARY KEY (question, layer, measure)
) WITHOUT ROWID;
CREATE TABLE run (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, record TEXT NOT NULL,
    started TEXT NOT NULL, finished TEXT
);
""",
    2: """
CREATE TABLE answer (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, shown TEXT NOT NULL, prompt TEXT NOT NULL,
    decoding TEXT NOT NULL, observer TEXT NOT NULL, version TEXT NOT NULL, answered TEXT NOT NULL, json TEXT NOT NULL
);
CREATE TABLE trial (
    run TEXT NOT NULL, number INTEGER NOT NULL, shown TEXT NOT NULL, key TEXT NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
""",
}
