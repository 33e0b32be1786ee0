"""A batch in SQLite is stored first and indexed afterwards; nobody notices, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw
import pytest

from aforesaid.domain.message import Message, edited, tombstone
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreFailed
from aforesaid.store.messages import AddMessage, AddMessages, MessagesByNumber
from aforesaid.store.searches import SearchText
from aforesaid.store.sqlite import SqliteStore, append, engine
from aforesaid.store.sqlite.writer import Writer
from making import add, adding
from store.processes import run_program

ANN, BOB = Scope.of("ann"), Scope.of("bob")
MANY: Final = 2_500
_IMPORTS: Final = """
import asyncio, os, signal, sys
import aforesaid
from aforesaid.store.sqlite import append, engine
"""
_BATCH: Final = """
async def main():
    async with aforesaid.connect(sys.argv[1], embedder="none", settings={"background": False}) as memory:
        await memory.user("ann").add_many([{"role": "user", "text": f"tea number{n}"} for n in range(2_500)])
        THEN
asyncio.run(main())
"""
KILLED_BEFORE: Final = f"""
{_IMPORTS}
engine._PAUSE_SECONDS = engine._MOST_SECONDS_WITHOUT_INDEXING = 3600
{_BATCH.replace("THEN", "os.kill(os.getpid(), signal.SIGKILL)")}
"""
KILLED_HALF_WAY: Final = f"""
{_IMPORTS}
steps, index = [], append._index
def index_once(*args):
    part = index(*args)
    steps.append(args)
    if len(steps) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return part
append._index = index_once
{_BATCH.replace("THEN", "await memory.user('ann').search('number7', arms='keyword')")}
"""
CLOSED: Final = _IMPORTS + _BATCH.replace("THEN", "pass")


def batch(scope: Scope, count: int = MANY) -> AddMessages:
    return AddMessages([adding(scope, f"tea number{place}").draft for place in range(count)])


async def found(store: SqliteStore, words: str, scope: Scope = ANN, **more: str) -> list[str]:
    hits = await store.read(SearchText(scope, words, limit=5_000, **more))  # type: ignore[arg-type]
    return [hit.text for hit in hits]


def waiting(path: Path) -> int:
    """Return the number of messages that are not indexed."""
    with closing(apsw.Connection(str(path))) as connection:
        total = connection.execute("SELECT coalesce(sum(last_seq - first_seq + 1), 0) FROM unindexed").get
        return int(total)


@pytest.fixture
async def store(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    """A store with a batch that is not indexed until somebody searches."""
    monkeypatch.setattr(engine, "_PAUSE_SECONDS", 3_600)
    monkeypatch.setattr(engine, "_MOST_SECONDS_WITHOUT_INDEXING", 3_600)
    store = await SqliteStore.open(path)
    await store.apply(batch(ANN))
    assert waiting(path) == MANY
    yield store
    assert (await store.verify()).ok
    await store.close()


async def first(store: SqliteStore) -> Message:
    return (await store.read(MessagesByNumber(ANN, [1])))[0]


async def test_a_search_finds_every_message_of_a_batch_that_was_just_stored(store: SqliteStore, path: Path) -> None:
    assert len(await found(store, "tea")) == MANY
    assert await found(store, "number2499") == ["tea number2499"]
    assert waiting(path) == 0


async def test_searches_at_once_share_the_work(store: SqliteStore, path: Path) -> None:
    answers = await asyncio.gather(*(found(store, f"number{place}") for place in range(0, MANY, 250)))
    assert [len(answer) for answer in answers] == [1] * 10
    assert waiting(path) == 0


async def test_a_search_of_somebody_else_does_not_wait_for_the_batch(store: SqliteStore, path: Path) -> None:
    await add(store, BOB, "coffee")
    assert await found(store, "coffee", BOB) == ["coffee"]
    assert waiting(path) == MANY


async def test_whoever_reads_the_thread_finds_a_batch_of_another_member(store: SqliteStore) -> None:
    await store.apply(batch(Scope.of("bob", thread="kitchen"), 300))
    assert await found(store, "number299", Scope.of("carl", thread="kitchen"), within="thread") == ["tea number299"]
    assert await found(store, "number299", Scope.of("carl")) == []


async def test_messages_added_after_a_batch_are_found_with_it(store: SqliteStore) -> None:
    await add(store, ANN, "the last tea")
    assert len(await found(store, "tea")) == MANY + 1


async def test_the_writer_indexes_a_batch_when_it_has_nothing_else_to_do(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, loop, index_next = asyncio.Event(), asyncio.get_running_loop(), Writer.index_next

    def watched(writer: Writer) -> None:
        index_next(writer)
        if not writer.index_is_incomplete:
            loop.call_soon_threadsafe(done.set)

    monkeypatch.setattr(Writer, "index_next", watched)
    monkeypatch.setattr(engine, "_PAUSE_SECONDS", 0)
    store = await SqliteStore.open(path)
    await store.apply(batch(ANN))
    await done.wait()
    assert waiting(path) == 0
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.parametrize(
    ("program", "left"), [(KILLED_BEFORE, 2_500), (KILLED_HALF_WAY, 1_500)], ids=["before", "half"]
)
async def test_a_batch_whose_program_was_killed_is_indexed_after_the_next_opening(
    path: Path, program: str, left: int
) -> None:
    died = await run_program(program, path)
    assert died.returncode == -9, died.stderr.decode()
    assert waiting(path) == left
    store = await SqliteStore.open(path)
    assert len(await found(store, "tea")) == MANY
    assert (waiting(path), (await store.verify()).ok) == (0, True)
    await store.close()


async def test_a_batch_of_another_process_is_indexed_by_a_search(path: Path) -> None:
    store = await SqliteStore.open(path)
    await add(store, ANN, "tea")
    done = await run_program(CLOSED, path)
    assert done.returncode == 0, done.stderr.decode()
    assert len(await found(store, "tea")) == MANY + 1
    assert (await store.verify()).ok
    await store.close()


async def test_a_message_can_be_taken_back_before_it_is_indexed(store: SqliteStore) -> None:
    await store.apply([AddMessage(tombstone(await first(store)))])
    assert await found(store, "number0") == []
    assert len(await found(store, "tea")) == MANY - 1


async def test_a_message_can_be_edited_before_it_is_indexed(store: SqliteStore) -> None:
    before = await first(store)
    await store.apply([adding(ANN, edited(before, "coffee", {}), replaces=before)])
    assert (await found(store, "number0"), await found(store, "coffee")) == ([], ["coffee"])


async def test_messages_can_be_erased_before_they_are_indexed(store: SqliteStore) -> None:
    await store.erase(ANN, [1, 1_000, 1_001, MANY])
    assert (await store.verify()).ok
    assert len(await found(store, "tea")) == MANY - 4
    assert await found(store, "number0 number2499") == []


async def test_a_user_can_be_purged_before_their_batch_is_indexed(store: SqliteStore, path: Path) -> None:
    await store.apply(batch(BOB, 300))
    assert (await store.purge(ANN)).messages == MANY
    assert await found(store, "tea") == []
    assert len(await found(store, "tea", BOB)) == 300
    assert b"number2499" not in path.read_bytes()


async def test_verify_knows_what_is_not_indexed_yet_and_misses_nothing_else(store: SqliteStore, path: Path) -> None:
    assert (await store.verify()).ok
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE unindexed SET first_seq = 2")
    report = await store.verify()
    assert [check.detail for check in report.checks if not check.ok] == [
        "the keyword index does not match the messages"
    ]
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE unindexed SET first_seq = 1")


async def test_a_backup_is_complete_although_a_batch_is_not_indexed(store: SqliteStore, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    await store.backup(target)
    copy = await SqliteStore.open(target)
    assert (await copy.verify()).ok
    assert len(await found(copy, "tea")) == MANY
    await copy.close()


async def test_a_dump_is_complete_although_a_batch_is_not_indexed(store: SqliteStore) -> None:
    rows = [row async for page in store.dump() for row in page]
    assert sum(isinstance(row, Message) for row in rows) == MANY


async def test_a_damaged_index_is_made_again_while_a_batch_waits(store: SqliteStore, path: Path) -> None:
    assert len(await found(store, "tea")) == MANY
    await store.apply(batch(ANN, 300))
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE log_index_data SET block = zeroblob(length(block)) WHERE id > 10")
    assert len(await found(store, "tea")) == MANY + 300


async def test_a_step_that_fails_leaves_the_rest_for_the_next_search(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as failing:
        failing.setattr(append, "_index", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await found(store, "tea")
        assert waiting(path) == MANY
    assert len(await found(store, "tea")) == MANY


async def test_a_search_is_answered_while_batches_of_the_same_person_keep_coming(store: SqliteStore) -> None:
    async def import_forever() -> None:
        while True:
            await store.apply(batch(ANN, 200))

    importers = [asyncio.create_task(import_forever()) for _ in range(3)]
    async with asyncio.timeout(120):
        assert await found(store, "number2499") == ["tea number2499"]
    for importer in importers:
        importer.cancel()
    await asyncio.gather(*importers, return_exceptions=True)


async def test_batches_are_indexed_although_somebody_always_writes(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MOST_SECONDS_WITHOUT_INDEXING", 0.01)
    async with asyncio.timeout(120):
        while waiting(path):
            await add(store, BOB, "one more")


async def test_a_step_takes_few_of_very_long_messages(path: Path, store: SqliteStore) -> None:
    assert len(await found(store, "tea")) == MANY
    long = "word " * 10_000
    await store.apply(AddMessages([adding(ANN, f"{long}{place}").draft for place in range(250)]))
    with closing(apsw.Connection(str(path))) as connection:
        assert append.index_step(connection)
    assert 240 <= waiting(path) < 250
    assert len(await found(store, "249")) == 1


async def test_no_more_is_indexed_in_a_write_ahead_log_that_was_removed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_PAUSE_SECONDS", 3_600)
    monkeypatch.setattr(engine, "_MOST_SECONDS_WITHOUT_INDEXING", 3_600)
    store = await SqliteStore.open(path)
    await store.apply(batch(ANN))
    path.with_name(path.name + "-wal").unlink()
    opened = store._engine
    for _ in range(2):
        with pytest.raises(StoreFailed, match="removed or replaced"):
            await opened.alone(lambda _: opened.writer.index_step())
    await store.close()
