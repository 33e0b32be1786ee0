"""The public API as sync code uses it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import aforesaid
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, StoreClosed, TooLarge
from making import NOON

if TYPE_CHECKING:
    from aforesaid._sync_types import SyncMemory


@pytest.fixture
def memory(location: str) -> Iterator[SyncMemory]:
    with aforesaid.open(location) as opened:
        yield opened


def test_the_five_lines_of_the_design(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="archive") as memory:
        ann = memory.user("ann", space="default", thread=None, session=None)
        receipt = ann.add("user", "I moved to Berlin last week.", at=None, id=None, author=None, name=None)
        assert (receipt.message.id, receipt.durable, receipt.duplicate) == ("#1", True, False)
        ann.add("assistant", "How do you like it?")
        (hit,) = ann.search("Berlin", limit=10)
        assert (hit.kind, hit.id, hit.text) == ("message", "#1", "I moved to Berlin last week.")
        assert [message.role for message in ann.history(limit=50, before=None, archived=True)] == ["user", "assistant"]


@pytest.mark.req("A1", "E1")
def test_a_conversation_survives_the_program(tmp_path: Path) -> None:
    for number in range(3):
        with aforesaid.open(tmp_path / "memory.db") as memory:
            memory.user("ann").add("user", f"message {number}")
    with aforesaid.open(tmp_path / "memory.db") as memory:
        assert [message.text for message in memory.user("ann").history()] == ["message 0", "message 1", "message 2"]


def test_history_pages_by_message_by_id_and_by_number(memory: SyncMemory) -> None:
    ann = memory.user("ann")
    for number in range(5):
        ann.add("user", f"message {number}", id=f"m{number}")
    page = ann.history(2)
    assert [message.text for message in page] == ["message 3", "message 4"]
    for before in (page[0], page[0].id, page[0].seq):
        assert [message.text for message in ann.history(2, before=before)] == ["message 1", "message 2"]
    with pytest.raises(NotFound):
        ann.history(before="unknown")
    with pytest.raises(NotFound):
        memory.user("bob").history(before="m1")


def test_users_stats_health_verify(memory: SyncMemory) -> None:
    memory.user("ann").add("user", "hello")
    memory.user("bob", space="work").add("user", "hello")
    assert [(user.space, user.id) for user in memory.users()] == [("default", "ann"), ("work", "bob")]
    assert [user.id for user in memory.users("work")] == ["bob"]
    assert memory.stats().messages == 2
    assert memory.health().status == "active"
    assert memory.verify().ok


def test_numbers_are_taken_as_ids(memory: SyncMemory) -> None:
    memory.user(123, space=9, thread=77).add("user", "hello", id=5001, author=123)
    (message,) = memory.user("123", space="9").history()
    assert (message.id, message.user, message.author, message.thread) == ("5001", "123", "123", "77")


def test_a_summary_can_be_rolled_back_and_the_audit_read(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db") as memory:
        ann = memory.user("ann")
        assert ann.summaries() == []
        with pytest.raises(NotFound, match="no user 'ann'"):
            ann.roll_back(1)
        ann.add("user", "hello")
        with pytest.raises(NotFound, match="no summary 1"):
            ann.roll_back(1)
        assert ann.audit() == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"role": "king"}, "unknown role 'king'"),
        ({"role": None}, "unknown role"),
        ({"role": ["user"]}, "unknown role"),
        ({"text": ""}, "empty"),
        ({"text": None}, "must be a string, not NoneType"),
        ({"text": b"bytes"}, "must be a string, not bytes"),
        ({"text": "a\0b"}, "NUL character at position 1"),
        ({"text": "a\ud800b"}, "surrogate pair at position 1"),
        ({"text": "x" * 65537}, "65,537 bytes"),
        ({"text": "ä" * 32769}, "65,538 bytes"),
        ({"at": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"at": "yesterday"}, "must be a datetime"),
        ({"id": ""}, "the message id is empty"),
        ({"id": "#12"}, "gives out itself"),
        ({"id": "x" * 256}, "256 characters"),
        ({"id": True}, "must be a string or a whole number, not bool"),
        ({"id": 1.5}, "must be a string or a whole number, not float"),
        ({"author": "line\nbreak"}, r"control character U\+000A"),
        ({"name": 5}, "must be a string, not int"),
        ({"name": "x" * 256}, "256 characters"),
    ],
)
def test_bad_input_gets_a_clear_error_and_stores_nothing(
    memory: SyncMemory, wrong: dict[str, object], said: str
) -> None:
    call = {"role": "user", "text": "hello", **wrong}
    with pytest.raises(InvalidInput, match=said):
        memory.user("ann").add(**call)  # type: ignore[arg-type]
    assert memory.user("ann").history() == []
    assert memory.users() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": ""},
        {"user": None},
        {"user": "a\0"},
        {"user": "\ud800"},
        {"user": "x" * 256},
        {"user": "ann", "space": ""},
        {"user": "ann", "thread": ""},
        {"user": "ann", "thread": "direct:bob"},
        {"user": "ann", "session": ""},
        {"user": True},
        {"user": 10**5000},
    ],
)
def test_bad_names_are_refused_before_anything_is_read(memory: SyncMemory, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        memory.user(**wrong)  # type: ignore[arg-type]


def test_bad_limits_and_places_are_refused(memory: SyncMemory) -> None:
    ann = memory.user("ann")
    ann.add("user", "hello")
    for limit in (0, -1, True, "5", 1.5):
        with pytest.raises(InvalidInput):
            ann.history(limit)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            ann.search("hello", limit)  # type: ignore[arg-type]
    for within in ("everywhere", "space", None):
        with pytest.raises(InvalidInput, match="unknown within"):
            ann.history(within=within)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a string"):
        ann.search(None)  # type: ignore[arg-type]
    assert [hit.text for hit in ann.search("\ud800 hello \0")] == ["hello"]
    for before in (0, 10**30, "#" + "9" * 30):
        with pytest.raises((InvalidInput, NotFound)):
            ann.history(before=before)
    with pytest.raises(InvalidInput):
        ann.roll_back(10**30)
    with pytest.raises(InvalidInput):
        ann.summaries(active=object())  # type: ignore[arg-type]
    for target in (None, "", "a\0b", 5):
        with pytest.raises(InvalidInput):
            memory.backup(target)  # type: ignore[arg-type]
    assert len(ann.history(limit=10**9)) == 1


def test_text_up_to_the_limit_comes_back_byte_for_byte(memory: SyncMemory) -> None:
    ann = memory.user("ann")
    for text in ("x" * 65536, "🙂" * 16384, "\r\n", " ", "\u200b\ufeff\u202e", "e\u0301 \u00e9", "\x01\x1b[31m"):
        ann.add("user", text)
        assert ann.history(1)[0].text.encode() == text.encode()


def test_the_limit_can_be_chosen(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile={"message_bytes": 10}) as memory:
        memory.user("ann").add("user", "0123456789")
        with pytest.raises(TooLarge, match="11 bytes; at most 10"):
            memory.user("ann").add("user", "01234567890")


def test_many_threads_can_share_one_memory(memory: SyncMemory) -> None:
    def talk(number: int) -> None:
        user = memory.user(f"user{number % 4}")
        for count in range(10):
            user.add("user", f"{number} {count}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(talk, range(8)))
    assert memory.stats().messages == 80
    for number in range(4):
        texts = [message.text for message in memory.user(f"user{number}").history(100)]
        for speaker in (number, number + 4):
            assert [text for text in texts if text.startswith(f"{speaker} ")] == [f"{speaker} {n}" for n in range(10)]


def test_closing_twice_is_fine_and_using_it_afterwards_is_an_error(tmp_path: Path) -> None:
    threads = threading.active_count()
    memory = aforesaid.open(tmp_path / "memory.db")
    ann = memory.user("ann")
    ann.add("user", "hello")
    memory.close()
    memory.close()
    assert threading.active_count() == threads
    with pytest.raises(StoreClosed):
        ann.add("user", "too late")
    with pytest.raises(StoreClosed):
        memory.stats()


def test_a_failed_open_leaves_no_thread_behind(tmp_path: Path) -> None:
    threads = threading.active_count()
    with pytest.raises(AforesaidError):
        aforesaid.open(tmp_path)
    assert threading.active_count() == threads


def test_a_program_that_forgets_to_close_still_ends_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    program = "import aforesaid, sys; aforesaid.open(sys.argv[1]).user('ann').add('user', 'hello')"
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(path)], check=True)
    with aforesaid.open(path) as memory:
        assert [message.text for message in memory.user("ann").history()] == ["hello"]
    assert not path.with_name("memory.db-wal").exists()


def test_the_blocking_face_shows_its_methods(memory: SyncMemory) -> None:
    ann = memory.user("ann")
    assert {"add", "history", "search", "scope"} <= set(dir(ann))
    assert "Store a message." in (inspect.getdoc(ann.add) or "")
    assert ann.scope.user == "ann"
    with pytest.raises(AttributeError):
        ann.nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert "UserMemory" in repr(ann)


def test_event_time_is_separate_from_storing_time(memory: SyncMemory) -> None:
    before = datetime.now(UTC)
    message = memory.user("ann").add("user", "long ago", at=NOON).message
    assert message.at == NOON
    assert before <= message.stored_at <= datetime.now(UTC)


class Word(str, Enum):  # noqa: UP042 - what people have in their code
    user = "user"
    bob = "bob"


def test_a_string_that_is_more_than_a_string_is_stored_as_the_text_it_is(memory: SyncMemory) -> None:
    memory.user(Word.bob).add(Word.user, "hello", author=Word.bob)  # type: ignore[arg-type]
    (message,) = memory.user("bob").history()
    assert (message.role, message.thread, message.author) == ("user", "direct:bob", "bob")
    assert memory.verify().ok


def test_closing_from_many_threads_at_once_closes_once(tmp_path: Path) -> None:
    memory = aforesaid.open(tmp_path / "memory.db")

    def use(number: int) -> None:
        with suppress(StoreClosed):
            memory.user("ann").add("user", f"message {number}")
        memory.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(16)))
    with pytest.raises(StoreClosed):
        memory.stats()


def test_a_store_in_memory_can_be_read_and_written_by_many_threads() -> None:
    with aforesaid.open(":memory:") as first, aforesaid.open(":memory:") as second:
        services = second._target._services  # type: ignore[attr-defined]
        own, services.store = services.store, first.store

        def write() -> None:
            for number in range(200):
                first.user(f"user{number}").add("user", "hello")

        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            second.users()
            second.stats()
        writer.join()
        assert second.stats().messages == 200
        services.store = own


@pytest.mark.parametrize("wrong", [5, ["archive"], b"archive", {1: 2}, "a\0b.toml"])
def test_a_profile_of_the_wrong_kind_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InvalidInput):
        aforesaid.open(tmp_path / "memory.db", profile=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [5, b"x", "\ud800.db", "a\0b", Path("a\0b"), "~nobody-has-this-name/x.db"])
def test_a_location_of_the_wrong_kind_is_refused(wrong: object) -> None:
    with pytest.raises(AforesaidError):
        aforesaid.open(wrong)  # type: ignore[arg-type]


FORKED = """
import multiprocessing, os, sys, aforesaid
from aforesaid.errors import StoreClosed

memory = aforesaid.open(sys.argv[1], embedder="none")
ann = memory.user("ann")
ann.add("user", "before the fork")

def tried(_=None):
    outcomes = []
    for call in (lambda: ann.add("user", "from a child"), lambda: ann.history(), lambda: memory.stats()):
        try:
            call()
            outcomes.append("answered")
        except StoreClosed as error:
            outcomes.append("closed" if "fork" in str(error) else str(error))
    memory.close()
    return outcomes

if sys.argv[2] == "pool":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(tried, [None])[0], flush=True)
else:
    child = os.fork()
    if child == 0:
        print(tried(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
ann.add("user", "after the fork")
print(len(ann.history()))
memory.close()
"""


@pytest.mark.defect("D3")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.parametrize("way", ["fork", "pool"])
@pytest.mark.parametrize("kind", ["sqlite", "json"])
def test_a_forked_child_is_refused_at_once_and_the_parent_goes_on(kind: str, way: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, f"{kind}:{tmp_path / 'memory'}", way]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines() == [str(["closed"] * 3), "2"]
