"""The connection that writes: when the log is copied back, who else writes, and what becomes of a failed commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sized
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import apsw
import pytest

from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, StoreBusy, StoreError, StoreFull
from aforesaid.store import open_store
from aforesaid.store.erasing import purge
from aforesaid.store.messages import Messages
from aforesaid.store.placing import Latest
from aforesaid.store.sqlite import Options
from aforesaid.store.sqlite.connection import patience, translated
from aforesaid.store.sqlite.transaction import Names
from aforesaid.store.sqlite.writer import CHECKPOINT_PAGES, OVERDUE_PAGES, Writer, prepare
from making import adding

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
    before = path.stat().st_size
    fill_exactly(writer, CHECKPOINT_PAGES - 1)
    assert path.stat().st_size == before, "not by SQLite itself either, inside of somebody's commit"
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


class Disk(apsw.VFS):
    """The real files, of which the database itself cannot be synced while `failing`."""

    def __init__(self) -> None:
        self.failing = False
        super().__init__("unsynced", "unix")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return File(self, name, flags)


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._is_database = bool(flags[0] & apsw.SQLITE_OPEN_MAIN_DB)
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._is_database and self._disk.failing:
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)


def test_a_log_that_cannot_be_copied_back_is_trouble_but_loses_nothing(path: Path) -> None:
    disk = Disk()
    writer = Writer(path, Options(vfs="unsynced"))
    assert isinstance(say(writer, "before"), Receipt)
    writer.alone(lambda it: it.execute("CREATE TABLE ballast (bytes)"))
    fill(writer, CHECKPOINT_PAGES)
    pages = writer.wal_pages
    disk.failing = True
    assert not kept_away(writer, waiting=False)
    assert "back failed" in str(writer.last_error)
    assert writer.wal_pages == pages
    assert isinstance(say(writer, "after"), Receipt)
    assert writer.last_error is None
    disk.failing = False
    assert not kept_away(writer, waiting=False)
    assert writer.wal_pages == 0
    assert writer.last_error is None
    writer.close()
    disk.unregister()


def test_a_full_disk_fails_all_that_is_stored_together(writer: Writer) -> None:
    most = writer.alone(lambda it: int(it.pragma("max_page_count")))
    writer.alone(lambda it: it.pragma("max_page_count", it.pragma("page_count")))
    sets = [prepare([adding(ANN, text)]) for text in ("small", "large" * 10_000, "small again")]
    outcomes = writer.commit([*sets, prepare([adding(ANN, "two"), adding(ANN, "more" * 10_000)])])
    assert [type(outcome) for outcome in outcomes] == [StoreFull] * 4
    writer.alone(lambda it: it.pragma("max_page_count", most))
    assert isinstance(say(writer, "after"), Receipt)
    assert writer.alone(lambda it: list(it.execute("SELECT text FROM log"))) == [("after",)]


def test_what_another_writer_erased_is_not_remembered(path: Path) -> None:
    # Two connections that know nothing of each other, as in two processes.
    with closing(Writer(path, Options())) as one, closing(Writer(path, Options())) as other:
        assert isinstance(say(one, "before"), Receipt)
        other.erase(lambda within: purge(within, ANN, "tester"), nullcontext)
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
    assert [message.text for message in await store.read(Messages(ANN))] == [
        "before",
        "after",
        "somebody else",
    ]
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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this platform does not list open files")
def test_a_file_that_cannot_be_brought_up_to_date_is_let_go_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("injected")

    monkeypatch.setattr("aforesaid.store.sqlite.writer.migrate", fail)
    with pytest.raises(StoreError, match="injected") as raised:
        Writer(path, Options())
    opened = {place.resolve() for place in Path("/proc/self/fd").iterdir()}
    assert path.resolve() not in opened
    assert raised.tb is not None, "whoever keeps the error keeps what it came from"


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


def test_what_is_remembered_of_names_has_a_limit_and_is_found_again(writer: Writer) -> None:
    names = writer.alone(lambda it: Names(it, limit=3))
    scopes = [Scope.of(f"user {number}", thread=f"thread {number}") for number in range(10)]

    def place(scope: Scope) -> tuple[int, int]:
        found = names.place(scope, 0)
        kept: list[Sized] = [names._places, names._people, names._owners, names._threads]
        sizes.append(max(map(len, kept)))
        return found

    sizes: list[int] = []
    first = [place(scope) for scope in scopes]
    assert len(set(first)) == len(scopes)
    assert [place(scope) for scope in reversed(scopes)] == first[::-1]
    assert max(sizes) == 3

    for number in range(1, 4):
        names.sessions["default", f"thread {number}"] = Latest(number, f"s-{number}", 0, 0, None)
        names.trim()
        assert len(names.sessions) == (number if number < 3 else 0)


@pytest.mark.parametrize("code", [apsw.SQLITE_FULL, apsw.SQLITE_IOERR_SHMSIZE])
def test_no_room_is_called_so_for_the_shared_memory_too(path: Path, code: int) -> None:
    with pytest.raises(StoreFull, match="free some space"), translated(path, "reading"):
        raise apsw.exception_for(code)


def test_another_failure_of_the_disk_is_not_taken_for_a_full_one(path: Path) -> None:
    with pytest.raises(StoreError, match="the disk failed") as raised, translated(path, "reading"):
        raise apsw.exception_for(apsw.SQLITE_IOERR_READ)
    assert not isinstance(raised.value, StoreFull)


def test_a_writer_that_finished_an_interrupted_purge_waits_for_other_processes_as_long_as_any(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Writer(path, Options())) as interrupted:
        interrupted.alone(lambda it: it.execute("INSERT INTO metadata (name, value) VALUES ('wipe', 'due')"))
    waits: list[float] = []

    def noted(seconds: float) -> Callable[[int], bool]:
        waits.append(seconds)
        return patience(seconds)

    monkeypatch.setattr("aforesaid.store.sqlite.writer.patience", noted)
    with closing(Writer(path, Options(busy_seconds=7))) as writer:
        assert writer.alone(lambda it: it.execute("SELECT count(*) FROM metadata WHERE name = 'wipe'").get) == 0
    assert waits[-1] == 7
