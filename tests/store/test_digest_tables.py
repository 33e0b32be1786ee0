"""What the SQLite store keeps for summaries: brought up to date from earlier versions, and verified."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from aforesaid.domain.checks import moment
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.store.agenda import Advance
from aforesaid.store.sqlite import SqliteStore, connection
from aforesaid.store.sqlite.connection import migrations
from aforesaid.store.summaries import Summaries
from making import add

ANN = Scope.of("ann")


async def test_a_wrong_count_on_the_agenda_is_found(path: Path) -> None:
    store = await SqliteStore.open(path)
    await add(store, ANN, "one", "two")
    touch = Touch(Subject("rolling", "default", "ann", "direct:ann"), 1, 3, 2, 5)
    await store.apply([Advance("rolling", 0, 2, (touch,))])
    report = await store.verify()
    assert "the messages counted for the summaries of default/ann/direct:ann are wrong" in str(report)
    await store.close()


async def test_summaries_of_an_earlier_version_learn_when_their_messages_were_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(connection, "migrations", lambda: migrations()[:4])
        old = apsw.Connection(str(path))
        old.create_scalar_function("index_terms", lambda *_: "")
        connection.migrate(old, path)
        old.execute(
            """
            INSERT INTO person (space, name, owner, created_at, messages, archived, turns, words, last_seq, last_at,
                                last_chunk) VALUES ('default', 'ann', 1, 1, 2, 2, 2, 2, 2, 70, 1);
            INSERT INTO thread (space, name) VALUES ('default', 'direct:ann');
            INSERT INTO session (thread, name, automatic, opened_by, started_at, last_at, first_seq, last_seq, messages,
                                 timeout) VALUES (1, 's-1', 1, 1, 50, 70, 1, 2, 2, 9);
            INSERT INTO log (owner, thread, shared, session, author, role, text, at, stored_at, active, chunk, words,
                             hash)
            VALUES (1, 1, 0, 1, 1, 'user', 'one', 70, 70, 0, 1, 1, x''),
                   (1, 1, 0, 1, 1, 'user', 'two', 50, 50, 0, 1, 1, x'');
            INSERT INTO summary (owner, thread, kind, level, text, chunks, first_seq, last_seq, messages, prompt,
                                 created_at) VALUES (1, 1, 'tree', 1, 'Both.', '[1]', 1, 2, 2, '', 99)
            """
        )
        old.close()
    store = await SqliteStore.open(path)
    (summary,) = await store.read(Summaries(ANN))
    assert (summary.began_at, summary.ended_at, summary.fresh) == (moment(50), moment(70), 1)
    assert (summary.version, summary.reach, summary.replaced, summary.quality) == (1, "chunks", False, None)
    await store.close()
