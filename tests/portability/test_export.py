"""Aforesaid's own export: everything, readable, checked line by line, loaded as often as one likes."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.domain.transfer import Row
from aforesaid.errors import InvalidInput, NotFound, StoreFull
from aforesaid.portability.exporting import AttachmentCopy, export
from aforesaid.portability.importing import ImportOptions, Loaded, Loader
from aforesaid.portability.input_files import writing
from aforesaid.portability.migrating import migrate
from aforesaid.portability.row_codec import decode, encode
from aforesaid.store import Store, open_store
from aforesaid.store.attachments import Attachments
from aforesaid.store.messages import Messages
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.unfinished import remove_abandoned
from filling import ANN, ANN_AWAY, BOB, everything, fill_with_everything, shown
from making import add


async def loaded(store: Store, path: Path, **options: Any) -> Loaded:  # noqa: ANN401
    return await Loader(store, ImportOptions(**options)).load(path)


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(tmp_path / "other.db")
    yield opened
    await opened.close()


@pytest.mark.req("A18")
async def test_an_export_can_be_loaded_into_an_empty_store(store: Store, other: Store, tmp_path: Path) -> None:
    await fill_with_everything(store)
    done = await export(store, tmp_path / "all.jsonl.gz", vectors=True)
    assert done.rows["message"] == 17
    report = await loaded(other, tmp_path / "all.jsonl.gz")
    assert (report.ok, report.format, report.found, report.new["message"]) == (True, "aforesaid", done.rows, 17)
    for scope in (ANN, BOB):
        assert await shown(other, scope) == await shown(store, scope)
    if not isinstance(store, PostgresStore):  # there each space is numbered for itself; in a file all are together
        assert await shown(other, ANN_AWAY) == await shown(store, ANN_AWAY)
        assert await everything(other, vectors=True) == await everything(store, vectors=True)
    again = await loaded(other, tmp_path / "all.jsonl.gz")
    assert (again.ok, {kind: count for kind, count in again.new.items() if count}) == (True, {})
    assert (await other.verify()).ok


async def test_every_line_can_be_read_by_people(store: Store, tmp_path: Path) -> None:
    await fill_with_everything(store)
    await export(store, tmp_path / "all.jsonl")
    head, *rows, end = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text("utf-8").splitlines()]
    assert (head["aforesaid"], head["version"], end["kind"]) == ("export", 1, "end")
    assert rows[0]["text"] == "I live in Berlin"
    assert rows[0]["at"] == "2026-03-01T12:00:00+00:00"
    assert {row["kind"] for row in rows} == set(end["rows"])
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600


async def test_every_row_survives_being_written_and_read(store: Store) -> None:
    await fill_with_everything(store)
    for row in await everything(store, vectors=True):
        assert decode(json.loads(json.dumps(encode(row)))) == row


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def swapped(pattern: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda line: re.sub(pattern, new, line, count=1)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (swapped(rb"(?s)^(.{40}).*$", rb"\1\n"), "not JSON"),
        (swapped(rb"Berlin", b"Munich"), "its hash does not match"),
        (swapped(rb'"user"', b'"nobody"'), "is missing"),
        (swapped(rb"^", b"\xff\xfe"), "not UTF-8"),
        (swapped(rb"(?s)^.*$", b"[" * 100_000 + b"\n"), "nested too deeply"),
        (swapped(rb"(?s)^.*$", b'{"kind": "something"}\n'), "unknown kind"),
        (swapped(rb"(?s)^.*$", b"[1, 2]\n"), "must be an object"),
        (swapped(rb"I live", rb"\\u0000 I live"), "NUL character at position 0"),
        (swapped(rb"I live", rb"\\ud800 I live"), "half of a surrogate pair"),
        (swapped(rb'"at":"....-..', b'"at":"2026-13'), "not a time in ISO form"),
        (swapped(rb'"thread":"direct:ann"', b'"thread":"direct:bob"'), "another user's direct chat"),
        (swapped(rb'"user":"ann"', b'"user":"*"'), "cannot be a user id"),
    ],
)
async def test_a_damaged_line_is_told_and_the_rest_is_stored(
    other: Store, tmp_path: Path, damage: Callable[[bytes], bytes], why: str
) -> None:
    source = await open_store(":memory:")
    await add(source, ANN, "I live in Berlin", "and like it")
    path = tmp_path / "all.jsonl"
    await export(source, path)
    lines = lines_of(path)
    lines[1] = damage(lines[1])
    path.write_bytes(b"".join(lines))
    report = await loaded(other, path)
    assert report.examples[0].where == "line 2"
    assert why in report.examples[0].why
    assert [message.text for message in await other.read(Messages(ANN))] == ["and like it"]
    assert (await other.verify()).ok


async def test_a_file_that_was_cut_or_changed_is_noticed(store: Store, other: Store, tmp_path: Path) -> None:
    await fill_with_everything(store)
    path = tmp_path / "all.jsonl"
    await export(store, path)
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:-1]))
    assert [problem.why for problem in (await loaded(other, path)).examples] == [
        "the file is cut off: its last line is missing"
    ]
    path.write_bytes(b"".join([*lines[:5], *lines[6:]]))
    assert any("rows were written" in problem.why for problem in (await loaded(other, path)).examples)
    path.write_bytes(b"".join(lines).replace(b'"actor":"ann"', b'"actor":"bob"', 1))
    assert any("the checksum does not match" in problem.why for problem in (await loaded(other, path)).examples)
    packed = gzip.compress(b"".join(lines))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InvalidInput, match="is truncated"):
        await loaded(other, path)


async def test_a_newer_format_and_a_strange_file_are_refused(other: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text('{"aforesaid": "export", "version": 2}\n')
    with pytest.raises(InvalidInput, match="supports only version 1"):
        await loaded(other, path)
    path.write_text("something else entirely")
    with pytest.raises(InvalidInput, match="unrecognised format"):
        await loaded(other, path)
    with pytest.raises(InvalidInput, match="unknown format 'fax'"):
        await loaded(other, path, format="fax")
    with pytest.raises(InvalidInput, match="there is no file"):
        await loaded(other, tmp_path / "missing")


async def test_a_dry_run_stores_nothing(store: Store, other: Store, tmp_path: Path) -> None:
    await fill_with_everything(store)
    done = await export(store, tmp_path / "all.jsonl")
    report = await loaded(other, tmp_path / "all.jsonl", dry_run=True)
    assert (report.found, report.new, report.dry_run) == (done.rows, {}, True)
    assert await everything(other) == []


async def test_an_export_that_fails_leaves_no_half_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_with_everything(store)
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InvalidInput, match="nothing was overwritten"):
        await export(store, tmp_path / "taken")

    def full(_: Row) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("aforesaid.portability.exporting.encode", full)
    with pytest.raises(StoreFull):
        await export(store, tmp_path / "new.jsonl")
    assert not [path for path in tmp_path.iterdir() if "new" in path.name]


async def test_migrating_compares_what_arrived(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    nowhere = AttachmentCopy([Attachments(None)], Attachments(None))
    done = await migrate(store, other, nowhere)
    assert (done.compared, done.rows["message"], done.new["message"]) == (True, 17, 17)
    again = await migrate(store, other, nowhere)
    assert (again.compared, again.new) == (False, {})


KILLED = """
import asyncio, os, sys
from pathlib import Path
from aforesaid.portability.importing import Loader, ImportOptions
from aforesaid.store import open_store
async def main():
    store = await open_store(sys.argv[1])
    applied = store.apply
    calls = 0
    async def apply(changes, *_):
        global calls
        receipt = await applied(changes)
        calls += 1
        if calls == int(sys.argv[3]):
            os.kill(os.getpid(), 9)
        return receipt
    calls = 0
    store.apply = apply
    await Loader(store, ImportOptions()).load(Path(sys.argv[2]))
globals()["calls"] = 0
asyncio.run(main())
"""


async def test_what_was_killed_half_way_is_finished_by_loading_again(tmp_path: Path) -> None:
    source = await open_store(":memory:")
    await fill_with_everything(source)
    await add(source, BOB, *[f"more {number}" for number in range(3_000)])
    await export(source, tmp_path / "all.jsonl")
    for calls in ("3", "6", "12"):
        program = [sys.executable, "-c", KILLED, str(tmp_path / "new.db"), str(tmp_path / "all.jsonl"), calls]
        killed = subprocess.run(program, check=False, capture_output=True)
        assert killed.returncode == -9, killed.stderr
    target = await open_store(tmp_path / "new.db")
    report = await loaded(target, tmp_path / "all.jsonl")
    assert report.ok
    assert await everything(target) == await everything(source)
    assert (await target.verify()).ok
    await target.close()


def test_the_blocking_face_exports_loads_and_purges(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "one.db") as memory:
        memory.user("ann").add("user", "hello")
        memory.user("bob").add("user", "hello too")
        assert memory.export(tmp_path / "all.jsonl").rows["message"] == 2
        assert memory.purge("ann").messages == 1
        assert [user.id for user in memory.users()] == ["bob"]
        assert memory.load(tmp_path / "all.jsonl").new["message"] == 1
        assert [user.id for user in memory.users()] == ["ann", "bob"]
        with pytest.raises(InvalidInput, match="means all users"):
            memory.purge("*")
        with pytest.raises(InvalidInput, match="unknown time zone"):
            memory.load(tmp_path / "all.jsonl", zone="Mars/Olympus")


@pytest.mark.defect("I2")
def test_the_export_of_a_person_has_what_a_purge_would_erase_in_the_memories_of_others(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        program = memory.user("langgraph", thread='["users","ann"]')
        program.add(
            "system", "a tortoise", author="ann", id="item", metadata={"value": {"pet": "tortoise"}}, kind="document"
        )
        program.add("system", "of bob", author="bob", kind="document")
        memory.user("ann").add("user", "I am Ann.")
        done = memory.export(tmp_path / "ann.jsonl", user="ann")
        memory.export(tmp_path / "ann.md", user="ann")
    assert done.rows["message"] == 2
    text = (tmp_path / "ann.md").read_text("utf-8")
    assert "a tortoise" in text
    assert "of bob" not in text + (tmp_path / "ann.jsonl").read_text("utf-8")
    with aforesaid.open(tmp_path / "other.db", embedder="none") as other:
        assert other.load(tmp_path / "ann.jsonl").ok
        (item,) = other.user("langgraph").history()
        assert (item.author, item.id, item.metadata) == ("ann", "item", {"value": {"pet": "tortoise"}})
        other.purge("ann")
        assert other.user("langgraph").history() == []
        assert other.verify().ok


@pytest.mark.defect("I2")
def test_somebody_who_owns_nothing_can_be_exported_with_what_they_are_the_author_of(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.user("langgraph").add("system", "a tortoise", author="ann", kind="document")
        assert memory.export(tmp_path / "ann.jsonl", user="ann").rows["message"] == 1
        with pytest.raises(NotFound, match="no user 'anm'"):
            memory.export(tmp_path / "anm.jsonl", user="anm")


def test_the_export_of_a_mistyped_user_is_refused_and_writes_no_file(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "one.db") as memory:
        memory.user("ann", space="work").remember("likes tea")
        for name in ("anm.jsonl", "anm.md"):
            with pytest.raises(NotFound, match="no user 'anm' in the space 'work'"):
                memory.export(tmp_path / name, user="anm", space="work", actor="bob")
            with pytest.raises(NotFound, match="no user 'ann' in the space 'default'"):
                memory.export(tmp_path / name, user="ann")
            assert not (tmp_path / name).exists()
        assert [each.id for each in memory.users()] == ["ann"], "the refused ones are not in the audit log"
        assert memory.export(tmp_path / "ann.jsonl", user="ann", space="work").rows["memory"] == 1


@pytest.mark.defect("D1")
async def test_a_summary_covers_an_erased_message_that_an_export_brings_back(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        for number in range(3):
            await ann.add("user", f"I like tea number {number}.")
        await ann.update_summary("Ann likes tea.", 2)
        await memory.export(tmp_path / "all.jsonl")
        await ann.erase("#1")
        await memory.load(tmp_path / "all.jsonl")
        assert (await memory.verify()).ok
        assert [summary.messages for summary in await ann.summaries()] == [2]


@pytest.mark.every_store
async def test_a_summary_of_an_export_is_not_active_where_other_messages_are_among_its_own(
    location: str, tmp_path: Path
) -> None:
    async with aforesaid.connect(location, embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        first, *_, last = (await ann.add_many([{"role": "user", "text": f"number {n}"} for n in range(3)])).messages
        await ann.update_summary("Ann counts.", 3)
        await memory.export(tmp_path / "before.jsonl")
        await ann.erase([last])
        await ann.add("user", "said in between", at=first.at)
        await memory.load(tmp_path / "before.jsonl")
        assert [each.text for each in await ann.summaries()] == []
        assert (await memory.verify()).ok


@pytest.mark.every_store
async def test_an_export_does_not_bring_back_a_summary_of_words_that_were_taken_back_since(
    location: str, tmp_path: Path
) -> None:
    async with aforesaid.connect(location, embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        said = (await ann.add_many([{"role": "user", "text": f"secret {n}"} for n in range(3)])).messages
        await ann.update_summary("Ann has secrets.", 3)
        await memory.export(tmp_path / "before.jsonl")
        await ann.take_back(said[1])
        await ann.update_summary("Ann says little.", 2)
        await memory.load(tmp_path / "before.jsonl")
        assert [each.text for each in await ann.summaries()] == ["Ann says little."]
        assert (await memory.verify()).ok


@pytest.mark.every_store
async def test_an_export_takes_messages_back_that_were_loaded_before(location: str, tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "first.db", embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        said = (await ann.add_many([{"role": "user", "text": f"secret {n}"} for n in range(3)])).messages
        await ann.update_summary("Ann has secrets.", 3)
        await memory.export(tmp_path / "before.jsonl")
        await ann.take_back(said[1])
        await memory.export(tmp_path / "after.jsonl")
    async with aforesaid.connect(location, embedder="none", settings={"background": False}) as other:
        ann = other.user("ann")
        await other.load(tmp_path / "before.jsonl")
        assert [each.text for each in await ann.summaries()] == ["Ann has secrets."]
        for _ in range(2):
            await other.load(tmp_path / "after.jsonl")
            assert [each.text for each in await ann.summaries()] == []
            assert [each.text for each in await ann.history()] == ["secret 0", "secret 2"]
        assert (await other.verify()).ok


KILLED = """
import os, signal, sys
from pathlib import Path
from aforesaid.portability.input_files import writing
from aforesaid.store.unfinished import unfinished

with unfinished(Path(sys.argv[2]), folder=True) as folder, writing(Path(sys.argv[1])) as out:
    (folder / "a.txt").write_text("a secret")
    out.write(b"a secret")
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.defect("W8")
@pytest.mark.req("G17")
@pytest.mark.parametrize("then", ["export", "backup", "open"])
def test_what_a_killed_export_was_writing_is_private_and_removed_by_whoever_is_next(tmp_path: Path, then: str) -> None:
    home, path = tmp_path / "home", tmp_path / "home" / "memory.db"
    with aforesaid.open(path, embedder="none") as memory:
        memory.user("ann").add("user", "hello")
        targets = [str(path.with_name(f"{path.name}{ending}")) for ending in (".jsonl", ".attachments")]
        killed = subprocess.run([sys.executable, "-c", KILLED, *targets], check=False, capture_output=True, text=True)
        assert killed.returncode < 0, killed.stderr
        left = sorted(home.glob("*.part-*"))
        assert [(each.is_dir(), each.stat().st_mode & 0o077) for each in left] == [(True, 0), (False, 0)]
        if then == "export":
            memory.export(home / "another.jsonl")
        elif then == "backup":
            memory.backup(home / "another.db")
    if then == "open":
        aforesaid.open(path, embedder="none").close()
    assert not list(home.glob("*.part-*"))


@pytest.mark.defect("W8")
def test_what_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    with writing(tmp_path / "one") as first:
        with writing(tmp_path / "two") as second:
            second.write(b"2")
        remove_abandoned(tmp_path)
        first.write(b"1")
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [b"1", b"2"]
