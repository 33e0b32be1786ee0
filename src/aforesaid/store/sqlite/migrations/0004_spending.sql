-- What models were paid, in tokens, per user and day. The row without names is what all spent together.
CREATE TABLE spending (
    day TEXT NOT NULL,
    space TEXT NOT NULL,
    user TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (day, space, user)
) WITHOUT ROWID;
