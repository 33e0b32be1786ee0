"""The connection that writes: when the log is copied back, who else writes, and what becomes of a failed commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import apsw
import pytest

from making import adding
from recollect.domain.receipt import Receipt
from recollect.domain.scope import Scope
from recollect.errors import NotFound, StoreBusy, StoreError
from recollect.store import open_store
from recollect.store.sqlite import Options
from recollect.store.sqlite.transaction import prepare
from recollect.store.sqlite.writer import CHECKPOINT_PAGES, OVERDUE_PAGES, Writer

ANN = Scope.of("ann")
PAGE = 4096


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    writer = Writer(path, Options(busy_seconds=10))
    writer.alone(lambda it: it.execute("CREATE TABLE ballast (bytes)"))
    copy_back(writer)
    yield writer
    writer.close()


def say(writer: Writer, text: str) -> Receipt | Exception:
    (outcome,) = writer.commit([prepare([adding(ANN, text)])])
    return outcome


def fill(writer: Writer, pages: int) -> None:
    """Write until the log has at least so many pages, and at most a few more."""
    missing = pages - writer.wal_pages
    writer.alone(lambda it: it.execute("INSERT INTO ballast VALUES (zeroblob(?))", (missing * PAGE,)))
    assert pages <= writer.wal_pages < pages + 100


def fill_exactly(writer: Writer, pages: int) -> None:
    """Write until the log has so many pages: a row in place is written once for each commit."""
    if writer.wal_pages < pages - 200:
        fill(writer, pages - 150)
    while writer.wal_pages < pages:
        writer.alone(lambda it: it.pragma("user_version", it.pragma("user_version")))
    assert writer.wal_pages == pages


def copy_back(writer: Writer) -> None:
    writer.alone(lambda it: it.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART))
    writer.wal_pages = 0


def kept_away(writer: Writer, *, waiting: bool = True) -> bool:
    """Copy the log back if that is due, and tell whether the readers were kept away for it."""
    times = []

    @contextmanager
    def quiet() -> Iterator[None]:
        times.append(True)
        yield

    writer.checkpoint_when_due(waiting=waiting, quiet=quiet)
    return bool(times)


def copied(writer: Writer, path: Path, *, waiting: bool) -> tuple[bool, bool]:
    """Tell whether the log is copied back now, and whether the readers were kept away for it."""
    before, pages = path.stat().st_size, writer.wal_pages
    away = kept_away(writer, waiting=waiting)
    grown = path.stat().st_size > before
    assert writer.wal_pages == (0 if grown else pages)
    return grown, away


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


@contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """Somebody who looks at the file as it is now, and goes on doing so."""
    with closing(apsw.Connection(str(path))) as reader:
        reader.execute("BEGIN; SELECT count(*) FROM ballast")
        yield reader


def test_a_short_log_is_not_copied_back(writer: Writer, path: Path) -> None:
    fill_exactly(writer, CHECKPOINT_PAGES - 1)
    assert copied(writer, path, waiting=False) == (False, False)


def test_a_long_log_is_copied_back_when_nobody_waits(writer: Writer, path: Path) -> None:
    fill_exactly(writer, CHECKPOINT_PAGES)
    assert copied(writer, path, waiting=True) == (False, False)
    assert copied(writer, path, waiting=False) == (True, False)


def test_an_overdue_log_is_copied_back_while_others_wait_and_then_starts_anew(writer: Writer, path: Path) -> None:
    fill_exactly(writer, OVERDUE_PAGES - 1)
    assert copied(writer, path, waiting=True) == (False, False)
    fill_exactly(writer, OVERDUE_PAGES)
    assert copied(writer, path, waiting=True) == (True, True)
    length = log_of(path).stat().st_size
    assert isinstance(say(writer, "tea"), Receipt)
    assert writer.wal_pages < 50
    assert log_of(path).stat().st_size == length, "written over what was copied back"


def test_readers_in_the_way_are_asked_again_only_after_a_while(writer: Writer, path: Path) -> None:
    with reading(path):
        fill_exactly(writer, OVERDUE_PAGES)
        assert kept_away(writer)
        assert writer.wal_pages == OVERDUE_PAGES, "somebody still reads the old pages"
        assert not kept_away(writer)
        fill_exactly(writer, OVERDUE_PAGES + 499)
        assert not kept_away(writer)
        fill_exactly(writer, OVERDUE_PAGES + 500)
        assert kept_away(writer)
    fill_exactly(writer, OVERDUE_PAGES + 1000)
    assert kept_away(writer)
    assert writer.wal_pages == 0
    # What was in the way before does not make the next log longer.
    assert not kept_away(writer)
    fill_exactly(writer, OVERDUE_PAGES)
    assert kept_away(writer)
    assert writer.wal_pages == 0


def test_a_log_of_twice_that_size_waits_longer_for_readers(writer: Writer, path: Path) -> None:
    with reading(path) as reader:
        fill_exactly(writer, 2 * OVERDUE_PAGES)

        @contextmanager
        def quiet() -> Iterator[None]:
            leaving = threading.Timer(0.7, lambda: reader.execute("COMMIT"))
            leaving.start()
            yield
            leaving.join()

        writer.checkpoint_when_due(waiting=True, quiet=quiet)
    assert writer.wal_pages == 0


def test_after_copying_back_the_writer_waits_for_other_processes_as_long_as_before(writer: Writer, path: Path) -> None:
    fill(writer, OVERDUE_PAGES)
    assert kept_away(writer)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        leaving = threading.Timer(1.0, lambda: other.execute("ROLLBACK"))
        leaving.start()
        assert isinstance(say(writer, "patient"), Receipt)
        leaving.join()


def test_what_another_writer_erased_is_not_remembered(path: Path) -> None:
    # Two connections that know nothing of each other, as in two processes.
    with closing(Writer(path, Options())) as one, closing(Writer(path, Options())) as other:
        assert isinstance(say(one, "before"), Receipt)
        other.purge(ANN, "tester", nullcontext)
        assert isinstance(say(other, "between"), Receipt)
        assert isinstance(say(one, "after"), Receipt)
        query = "SELECT p.name, l.text FROM log l JOIN person p ON p.id = l.owner ORDER BY l.seq"
        rows = one.alone(lambda it: list(it.execute(query)))
        assert rows == [("ann", "between"), ("ann", "after")]
        assert one.alone(lambda it: list(it.execute("PRAGMA foreign_key_check"))) == []


def refuse(writer: Writer, *what: str) -> None:
    """Have the engine itself refuse statements of transactions on the connection that is open now."""

    def authorizer(action: int, name: str | None, *_: str | None) -> int:
        refused = action == apsw.SQLITE_TRANSACTION and name in what
        return apsw.SQLITE_DENY if refused else apsw.SQLITE_OK

    writer.alone(lambda it: setattr(it, "authorizer", authorizer))


async def test_a_transaction_that_cannot_be_ended_is_left_behind_with_its_connection(path: Path) -> None:
    writer = Writer(path, Options(busy_seconds=0.2))
    assert isinstance(say(writer, "before"), Receipt)
    refuse(writer, "COMMIT", "ROLLBACK")
    assert isinstance(say(writer, "refused"), StoreError)
    assert isinstance(say(writer, "after"), Receipt)
    with closing(Writer(path, Options(busy_seconds=0.2))) as other:
        assert isinstance(say(other, "somebody else"), Receipt), "nobody holds the lock any more"
    writer.close()
    store = await open_store(path)
    assert [message.text for message in await store.messages(ANN)] == ["before", "after", "somebody else"]
    assert (await store.verify()).ok
    await store.close()


def test_a_file_that_is_gone_is_not_made_anew_after_a_failure(path: Path) -> None:
    with closing(Writer(path, Options(busy_seconds=0.2))) as writer:
        assert isinstance(say(writer, "before"), Receipt)
        refuse(writer, "COMMIT", "ROLLBACK")
        path.unlink()
        assert isinstance(say(writer, "refused"), StoreError)
        assert isinstance(say(writer, "refused too"), StoreError)
        assert not path.exists()


def test_trouble_is_kept_for_whoever_asks_and_a_callers_mistake_is_none(
    writer: Writer, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer.note(NotFound("nobody of this name"))
    assert writer.last_error is None
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(Writer(path, Options(busy_seconds=0.1))) as hasty:
            assert isinstance(say(hasty, "not now"), StoreBusy)
            assert "locked" in str(hasty.last_error)
            assert caplog.records[-1].exc_info is None, "our own errors say enough"
            hasty.note(MemoryError("injected"))
            assert caplog.records[-1].exc_info is not None
