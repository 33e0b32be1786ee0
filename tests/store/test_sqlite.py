"""What only a file can do: survive, be damaged and be looked after."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from aforesaid.domain.checks import moment
from aforesaid.domain.hit import MessageFilter, VectorRow
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.errors import NotFound, StoreDamaged
from aforesaid.store import Store, open_store, vector_matrix
from aforesaid.store.agenda import Advance
from aforesaid.store.messages import MessageById, Messages, Sessions, UserLedger
from aforesaid.store.people import PutSetting, Settings
from aforesaid.store.searches import AddVectors, MatchText, SearchText, SearchVector
from aforesaid.store.sqlite import SqliteStore, connection, search
from aforesaid.store.sqlite.connection import answered, migrations
from aforesaid.store.sqlite.writer import ChangeSet
from aforesaid.store.summaries import Summaries
from making import add, adding, archive, minutes
from store.processes import KILLED, run_program

ANN = Scope.of("ann")


@pytest.mark.req("A1", "E1")
async def test_messages_settings_and_counters_resume_after_a_restart(path: Path) -> None:
    store = await open_store(path)
    messages = await add(store, ANN, "one", "two", "three")
    await archive(store, ANN, messages[:2])
    await store.apply([PutSetting(ANN, "summary_every_n", 15)])
    before = (
        await store.read(Messages(ANN)),
        await store.read(Settings(ANN)),
        await store.read(UserLedger(ANN)),
        await store.read(Sessions(ANN)),
    )
    await store.close()
    store = await open_store(path)
    assert (
        await store.read(Messages(ANN)),
        await store.read(Settings(ANN)),
        await store.read(UserLedger(ANN)),
        await store.read(Sessions(ANN)),
    ) == before
    assert (await store.read(UserLedger(ANN))).open_turns == 1
    (next_message,) = await add(store, ANN, "four")
    assert next_message.seq == messages[-1].seq + 1
    assert [message.text for message in await store.read(Messages(ANN))] == ["one", "two", "three", "four"]
    await store.close()


@pytest.mark.req("A1")
async def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = await open_store(path)
    assert [message.text for message in await store.read(Messages(ANN))] == [f"message {number}" for number in range(5)]
    assert (await store.verify()).ok
    await store.close()


async def test_one_unexpected_error_does_not_stop_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path)
    for broken in ("commit", "checkpoint_when_due"):

        def fail(*_args: object, **_kwargs: object) -> None:
            raise MemoryError("injected")

        with monkeypatch.context() as patch:
            patch.setattr(store._engine.writer, broken, fail)
            try:
                await asyncio.wait_for(add(store, ANN, f"while {broken} is broken"), 60)
            except MemoryError:
                assert broken == "commit"
        await asyncio.wait_for(add(store, ANN, f"after {broken}"), 60)
    texts = [message.text for message in await store.read(Messages(ANN))]
    assert texts == ["after commit", "while checkpoint_when_due is broken", "after checkpoint_when_due"]
    await store.close()


async def test_a_cancelled_caller_does_not_take_its_message_back(path: Path) -> None:
    store = await open_store(path)
    task = asyncio.create_task(store.apply([adding(ANN, "sent and left")]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await add(store, ANN, "next")
    assert [message.text for message in await store.read(Messages(ANN))] == ["sent and left", "next"]
    await store.close()


async def test_a_cancelled_dump_ends_when_its_page_was_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path)
    await add(store, ANN, "one", "two")
    begun, read = threading.Event(), SqliteStore._page

    def slowly(store: SqliteStore, reader: apsw.Connection, *values: Any) -> object:  # noqa: ANN401
        begun.set()
        reader.execute(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000000) SELECT sum(x) FROM n"
        )
        return read(store, reader, *values)

    monkeypatch.setattr(SqliteStore, "_page", slowly)

    async def dump() -> None:
        async for _ in store.dump():
            pass

    dumping = asyncio.create_task(dump())
    await asyncio.to_thread(begun.wait)
    dumping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dumping
    await store.close()


async def test_closing_finishes_what_was_handed_in(path: Path) -> None:
    store = await open_store(path)
    for turn in range(6):
        waiting = [asyncio.create_task(store.apply([adding(ANN, f"message {number}")])) for number in range(50)]
        for _ in range(turn % 3 + 1):
            await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*waiting)
        store = await open_store(path)
        assert (await store.read(UserLedger(ANN))).messages == 50 * (turn + 1)
    await store.close()


BAD_SYNC = """
import asyncio, os, sys
from pathlib import Path
import apsw
from making import add
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreError
from aforesaid.store.sqlite import Options, SqliteStore

failing = False

class File(apsw.VFSFile):
    def __init__(self, name, flags):
        super().__init__("unix", name, flags)
    def xSync(self, flags):
        global failing
        if failing:
            failing = False
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)

class Disk(apsw.VFS):
    def __init__(self):
        super().__init__("bad", "unix")
    def xOpen(self, name, flags):
        return File(name, flags)

disk = Disk()

async def main():
    global failing
    store = await SqliteStore.open(Path(sys.argv[1]), Options(vfs="bad"))
    await add(store, Scope.of("ann"), "before")
    failing = True
    try:
        await add(store, Scope.of("ann"), "refused")
    except StoreError as error:
        assert "disk failed" in str(error)
        os._exit(9)

asyncio.run(main())
"""


async def test_a_refused_message_does_not_come_back_when_the_process_dies(path: Path) -> None:
    died = await run_program(BAD_SYNC, path)
    assert died.returncode == 9, died.stderr
    store = await open_store(path)
    assert [message.text for message in await store.read(Messages(ANN))] == ["before"]
    assert (await store.verify()).ok
    await store.close()


async def damage(path: Path, sql: str) -> None:
    """Change a row behind the back of the store."""

    def change() -> None:
        with closing(apsw.Connection(str(path))) as database:
            database.execute(sql)

    await asyncio.to_thread(change)


@pytest.mark.parametrize(
    ("sql", "check"),
    [
        ("UPDATE log SET text = 'two!' WHERE seq = 2", "hashes"),
        ("UPDATE log SET at = at + 1 WHERE seq = 2", "hashes"),
        ("UPDATE log SET owner = (SELECT id FROM person WHERE name = 'bob') WHERE seq = 2", "hashes"),
        ("DELETE FROM log WHERE seq = 2", "counts"),
        ("UPDATE person SET open_turns = open_turns + 1 WHERE name = 'ann'", "counts"),
        ("UPDATE session SET messages = 7", "counts"),
        ("UPDATE log SET active = 1 WHERE seq = 1", "archives"),
        ("DELETE FROM summary", "archives"),
        ("UPDATE log SET active = 0, chunk = 1 WHERE seq = 3", "archives"),
        ("UPDATE log SET session = 99 WHERE seq = 2", "references"),
        ("INSERT INTO log_index (log_index, rowid, terms) VALUES ('delete', 3, 'u1.three')", "index"),
        ("INSERT INTO log_index (rowid, terms) VALUES (77, 'u1.ghost')", "index"),
    ],
)
async def test_verify_finds_silent_damage(path: Path, sql: str, check: str) -> None:
    store = await open_store(path)
    messages = await add(store, ANN, "one", "two", "three")
    await add(store, Scope.of("bob"), "me too")
    await archive(store, ANN, messages[:1])
    assert (await store.verify()).ok
    await damage(path, sql)
    report = await store.verify()
    assert not report.ok
    found = {finding.name: finding.detail for finding in report.checks if not finding.ok}
    assert check in found
    assert found[check] != "ok"
    await store.close()


async def test_verify_survives_text_that_is_no_text(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "one", "two", "three")
    await damage(path, "UPDATE log SET text = CAST(x'ff00fe' AS TEXT) WHERE seq = 2")
    report = await store.verify()
    found = {check.name: check.detail for check in report.checks if not check.ok}
    assert found["hashes"] == "#2 is not what was stored"
    with pytest.raises(StoreDamaged, match="not valid Unicode"):
        await store.read(Messages(ANN))
    await store.close()


async def test_verify_reports_its_progress(path: Path) -> None:
    store = await open_store(path)
    await add(store, ANN, "one", "two")
    seen: list[tuple[str, int, int]] = []
    await store.verify(lambda what, done, total: seen.append((what, done, total)))
    assert seen == [("hashes", 2, 2)]
    await store.close()


@pytest.mark.req("D12")
async def test_many_callers_share_few_commits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path)
    commits = 0
    commit = store._engine.writer.commit

    def counted(change_sets: Sequence[ChangeSet]) -> list[Receipt | Exception]:
        nonlocal commits
        commits += 1
        return commit(change_sets)

    monkeypatch.setattr(store._engine.writer, "commit", counted)
    await asyncio.gather(*[store.apply([adding(ANN, f"message {number}")]) for number in range(200)])
    assert commits <= 3
    await store.close()


async def test_old_pages_are_copied_back_while_writing_goes_on(path: Path) -> None:
    store = await open_store(path)
    for _ in range(60):
        await asyncio.gather(*[store.apply([adding(ANN, "x " * 5_000)]) for _ in range(20)])
    assert path.with_name("memory.db-wal").stat().st_size < 64 * 1024 * 1024
    await store.close()
    assert not path.with_name("memory.db-wal").exists()


async def test_reads_cannot_change_anything(path: Path) -> None:
    store = await SqliteStore.open(path)
    with pytest.raises(Exception, match=r"readonly|read-only"):
        await store._engine.read(lambda reader: reader.execute("DELETE FROM log"))
    await store.close()


async def test_a_store_is_a_store(path: Path) -> None:
    store: Store = await SqliteStore.open(path)
    await store.close()


async def test_a_message_is_found_by_its_id_without_reading_the_other_messages_of_its_owner(path: Path) -> None:
    elsewhere = Scope.of("ann", thread="another thread")
    store = await open_store(path)
    await store.apply([adding(ANN, f"message {number}") for number in range(2_000)])
    named = (await store.apply([adding(elsewhere, "the one", id="given")])).message
    await store.apply([adding(ANN, f"later message {number}") for number in range(2_000)])
    with closing(apsw.Connection(str(path))) as connection:
        steps = 0

        def count() -> bool:
            nonlocal steps
            steps += 1
            return False

        connection.set_progress_handler(count, 100)
        assert answered(connection, MessageById(ANN, "given").answer()).seq == named.seq
        with pytest.raises(NotFound):
            answered(connection, MessageById(ANN, "unknown").answer())
    assert steps < 20  # a hundred instructions each; two thousand messages need thousands
    await store.close()


async def test_vectors_that_are_not_held_in_memory_are_read_from_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(1).standard_normal((60, 64)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    store = await open_store(path)
    messages = await add(store, ANN, *[f"text {number}" for number in range(60)])
    rows = [VectorRow(each.seq, each.text, values[at].astype(np.float16).tobytes()) for at, each in enumerate(messages)]
    # Two come late.
    await store.apply([AddVectors("m", (*rows[:7], *rows[8:39], *rows[40:]), rows[-1].seq)])
    asked = [SearchVector(ANN, "m", values[at], limit=5, also=[3]) for at in (7, 20, 39, 59)]
    filtered = [replace(each, where=MessageFilter(role="user")) for each in asked]

    async def answers() -> list[tuple[list[int], list[float]]]:
        found = [await store.read(each) for each in (*asked, *filtered)]
        return [(each.seqs.tolist(), each.scores.round(4).tolist()) for each in found if each is not None]

    before = await answers()
    await store.apply([AddVectors("m", (rows[7], rows[39]), rows[-1].seq)])
    after = await answers()
    assert [seqs[0] for seqs, _ in after[:4]] == [8, 21, 40, 60]
    await store.close()
    for name, number in (("EXACT", 10), ("SAMPLE", 20)):
        monkeypatch.setattr(vector_matrix, name, number)
    monkeypatch.setattr(search, "_HELD", 20)
    monkeypatch.setattr(search, "_BLOCK", 8)
    store = await open_store(path)
    for (seqs, scores), (_, exact) in zip(await answers(), after, strict=True):
        assert scores[:5] == exact[:5], seqs
    await store.erase(ANN, [8])
    assert all(8 not in seqs for seqs, _ in await answers())
    assert before != after
    await store.close()


async def test_columns_that_are_read_in_several_blocks_have_every_message_in_its_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_BLOCK", 2)
    names = ['Ann "the baker"', "Bob, junior", "Cem\nand Ayşe", 'Ann "the baker"', "123"]
    store = await open_store(path)
    for number, name in enumerate(names):
        role = "assistant" if number == 1 else "user"
        await store.apply([adding(ANN, f"tea {number}", role=role, name=name, at=minutes(number))])
    columns = (await store.read(MatchText(ANN, "tea"))).columns
    assert columns.seq.tolist() == [1, 2, 3, 4, 5]
    assert [columns.speakers[place] for place in columns.speaker.tolist()] == names
    assert columns.assistant.tolist() == [False, True, False, False, False]
    assert (np.diff(columns.at) > 0).all()
    await store.close()


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


async def damaged(path: Path) -> SqliteStore:
    """Return an open store whose index has been overwritten."""
    store = await SqliteStore.open(path)
    for number in range(50):
        await add(store, ANN, f"tea number {number}")
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE log_index_data SET block = zeroblob(length(block)) WHERE id > 10")
    return await SqliteStore.open(path)


@pytest.mark.req("C8")
async def test_a_search_makes_a_damaged_index_again(path: Path) -> None:
    store = await damaged(path)
    assert len(await store.read(SearchText(ANN, "tea", limit=100))) == 50
    assert "index rebuilt" in dict((await store.health()).facts)
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.req("C8")
async def test_a_message_is_stored_although_the_index_is_damaged(path: Path) -> None:
    store = await damaged(path)
    for number in range(200):
        await add(store, ANN, f"more tea number {number}")
    assert len(await store.read(SearchText(ANN, "tea", limit=1000))) == 250
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.parametrize("column", ["text", "owner"])
async def test_values_of_the_wrong_types_are_found_and_stop_no_check(path: Path, column: str) -> None:
    store = await SqliteStore.open(path)
    await add(store, ANN, "tea")
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("ignore_check_constraints", 1)
        connection.execute(f"UPDATE log SET {column} = x'00ff' WHERE seq = 1")
    store = await SqliteStore.open(path)
    report = await store.verify()
    assert not report.ok
    assert any("the keyword index does not match the messages" in check.detail for check in report.checks)
    await store.close()
