"""Readable files: what is in them, what happens to them when a disk fails, who may use them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, StoreBusy, StoreDamaged, StoreError, StoreRefused, StoreTooNew
from aforesaid.store import Store, open_store, restore_store
from aforesaid.store.memories import AddMemory, FactsVersions, Memories, PutFacts
from aforesaid.store.messages import Messages, Sessions, UserLedger
from aforesaid.store.people import AuditRows, PutSetting, Settings, Users
from aforesaid.store.readable import AccountFolders, JsonFile, ReadableStore
from aforesaid.store.readable.disk import Disk
from aforesaid.store.readable.document import sealed
from aforesaid.store.readable.layouts import FILES
from aforesaid.store.searches import AddVectors, MessageVectors, SearchText
from aforesaid.store.summaries import Summaries
from faulty import FailingDisk
from making import add, archive, remove_databases

ANN = Scope.of("ann")
TELEGRAM = Scope.of(123456789)
WORK = Scope.of("ann", space="work")


@asynccontextmanager
async def opened(location: str | Path) -> AsyncIterator[Store]:
    store = await open_store(location)
    try:
        yield store
    finally:
        await store.close()


async def of_everything(store: Store) -> None:
    """Store something of every kind."""
    messages = await add(store, TELEGRAM, "Hello, what's the weather like?", "And tomorrow? 🌧 مرحبا")
    await archive(store, TELEGRAM, messages, "You asked about weather.")
    await add(store, ANN, "tea, please", "with milk")
    await add(store, WORK, "the same name in another space")
    vectors = AddVectors("m", (VectorRow(3, "tea, please", b"\0\x3c" * 4),), 5)
    await store.apply(
        [PutSetting(TELEGRAM, "summary_every_n", 15), PutFacts(ANN, "Ann likes tea.", "said so"), vectors]
    )
    await store.apply([AddMemory(MemoryDraft(ANN, "preference", "likes tea", tags=("drink",), sources=(3,)))])


def parsed(path: Path) -> Any:  # noqa: ANN401
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.req("A5")
async def test_the_json_file_has_the_documented_structure(tmp_path: Path) -> None:
    async with opened(f"json:{tmp_path / 'memory.json'}") as store:
        await of_everything(store)
    content = parsed(tmp_path / "memory.json")
    user = content["users"]["123456789"]
    assert user["user_id"] == 123456789
    assert user["storage_type"] == "json"
    assert (user["summary_every_n"], user["memory_enabled"]) == (15, True)
    first = content["messages"]["123456789"][0]
    assert (first["id"], first["user_id"], first["role"]) == (1, 123456789, "user")
    assert first["content"] == "Hello, what's the weather like?"
    assert (first["is_active"], first["chunk_id"]) == (False, 1)
    assert {"created_at", "updated_at"} <= user.keys() & (first.keys() | {"updated_at"})
    summary = content["summaries"]["123456789"][0]
    assert (summary["summary_text"], summary["level"]) == ("You asked about weather.", 1)
    assert (summary["source_chunk_ids"], summary["is_active"]) == ([1], True)
    assert [message["content"] for message in content["messages"]["ann@work"]] == ["the same name in another space"]
    assert "مرحبا" in (tmp_path / "memory.json").read_text(encoding="utf-8"), "readable, not escaped"
    assert [memory["text"] for memory in content["memories"]] == ["likes tea"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".memory.json.db",
        "memory.json",
        "memory.json.lock",
    ]


@pytest.mark.req("C2")
async def test_account_folders_have_the_documented_files(tmp_path: Path) -> None:
    async with opened(f"files:{tmp_path / 'memory'}") as store:
        await add(store, ANN, *[f"message {number}" for number in range(1, 301)])
        await of_everything(store)
    folder = tmp_path / "memory" / "account_ann"
    whole = [message["content"] for message in parsed(folder / "whole_history.json")["messages"]]
    assert whole == [f"message {number}" for number in range(1, 301)] + ["tea, please", "with milk"]
    assert [message["content"] for message in parsed(folder / "short_term.json")["messages"]] == whole[-50:]
    assert [message["content"] for message in parsed(folder / "mid_term.json")["messages"]] == whole[-250:-50]
    status = parsed(folder / "short_term.json")
    assert (status["status"], status["message_count"]) == ("active", 50)
    assert {"last_update", "health_check"} <= status.keys()
    assert parsed(folder / "memories.json")["facts"][0]["text"] == "Ann likes tea."
    account = parsed(folder / "account.json")
    assert account["account_id"] == "ann"
    assert account["memory_status"]["whole_history"] == "active"
    telegram = parsed(tmp_path / "memory" / "account_123456789" / "history_context.json")
    assert telegram["summaries"][0]["summary_text"] == "You asked about weather."
    others = [path.name for path in (tmp_path / "memory").glob("account_*") if path.name != "account_ann"]
    assert any(name.startswith("account_ann_work~") for name in others), "another space is another folder"


@pytest.mark.req("C3")
async def test_a_new_account_starts_with_empty_components_and_a_baseline(tmp_path: Path) -> None:
    async with opened(f"files:{tmp_path / 'memory'}") as store:
        await store.apply([PutSetting(ANN, "memory_enabled", True)])
    folder = tmp_path / "memory" / "account_ann"
    account = parsed(folder / "account.json")
    components = ["short_term", "mid_term", "whole_history", "history_context"]
    assert account["memory_status"] == dict.fromkeys(components, "initialized")
    assert account["created_at"]
    for component in components:
        content = parsed(folder / f"{component}.json")
        assert (content["status"], content["message_count"]) == ("initializing", 0)
        assert content["last_update"] == account["created_at"]
        assert content.get("messages", []) == []
    assert parsed(folder / "history_context.json")["context"] == {
        "baseline": True,
        "text": "",
        "initialized_at": account["created_at"],
    }


@pytest.mark.req("C2", "C3")
@pytest.mark.defect("Q10")
@pytest.mark.parametrize("first", ["a setting", "a message"])
async def test_the_files_of_a_new_account_are_there_in_the_next_pause(tmp_path: Path, first: str) -> None:
    location = f"files:{tmp_path / 'memory'}"
    async with opened(location) as store:
        await add(store, TELEGRAM, *(f"{number} " + "what others said " * 20 for number in range(20)))
    async with opened(location) as store:
        if first == "a setting":
            await store.apply([PutSetting(ANN, "memory_enabled", True)])
        else:
            await add(store, ANN, "hello")
        folder = tmp_path / "memory" / "account_ann"
        while not all((folder / file.name).exists() for file in FILES):
            await asyncio.sleep(0.05)
        assert parsed(folder / "whole_history.json")["message_count"] == (first == "a message")


@pytest.fixture(params=["json", "files"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path / 'live' / 'memory'}"


def layout_of(place: str) -> JsonFile | AccountFolders:
    kind, _, path = place.partition(":")
    return JsonFile(Path(path)) if kind == "json" else AccountFolders(Path(path))


async def everything(store: Store) -> list[Any]:
    found: list[Any] = [await store.read(Users())]
    for scope in (ANN, TELEGRAM, WORK):
        found += [
            await store.read(Messages(scope)),
            await store.read(Summaries(scope, active=None)),
            await store.read(Memories(scope, active=None)),
            await store.read(FactsVersions(scope)),
            await store.read(Settings(scope)),
            await store.read(AuditRows(scope)),
            await store.read(Sessions(scope)),
            await store.read(UserLedger(scope)),
            await store.read(MessageVectors(scope, "m", [3])),
        ]
    return found


async def test_everything_survives_a_restart_and_a_restart_without_closing(place: str, tmp_path: Path) -> None:
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
        # What lies on the disk now is what a killed process leaves.
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    async with opened(place) as store:
        assert await everything(store) == before
        assert (await store.verify()).ok
        await add(store, ANN, "later")
    async with opened(place.replace("/live/", "/killed/")) as store:
        assert await everything(store) == before
        assert (await store.verify()).ok


async def test_a_file_may_be_laid_out_anew_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    async with opened(f"json:{path}") as store:
        await of_everything(store)
        before = await everything(store)
    path.write_text(json.dumps(parsed(path), indent=4), encoding="utf-8")
    async with opened(f"json:{path}") as store:
        assert await everything(store) == before


async def test_a_second_opener_is_told_who_has_it(place: str) -> None:
    async with opened(place):
        with pytest.raises(StoreBusy, match="in use by this process"):
            await open_store(place)
    async with opened(place) as store:
        await add(store, ANN, "free again")


async def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    newer = b'{"aforesaid": %b}' % sealed({"format": 99, "kind": "json", "store": "x", "journal": 1})
    for content, error in ((b'{"users": {}}', StoreDamaged), (b"[1, 2]", StoreDamaged), (newer, StoreTooNew)):
        path.write_bytes(content)
        with pytest.raises(error):
            await open_store(f"json:{path}")
        assert path.read_bytes() == content
    path.write_text('{"something": {"format": 1}}', encoding="utf-8")
    with pytest.raises((StoreDamaged, StoreRefused)):
        await open_store(f"json:{path}")
    with pytest.raises(StoreRefused):
        await open_store(f"json:{tmp_path}")
    with pytest.raises(StoreRefused):
        await open_store(f"files:{path}")


@pytest.mark.req("A5")
async def test_link_mode_and_owner_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "real" / "kept.json"
    link = tmp_path / "memory.json"
    async with opened(f"json:{target}") as store:
        await add(store, ANN, "first")
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 12345, 12345)
    link.symlink_to(target)
    before = target.stat()
    async with opened(f"json:{link}") as store:
        await add(store, ANN, "second")
    after = target.stat()
    assert link.is_symlink()
    assert after.st_ino != before.st_ino, "it was replaced, not written over"
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert [message["content"] for message in parsed(link)["messages"]["ann"]] == ["first", "second"]
    fresh = tmp_path / "fresh.json"
    async with opened(f"json:{fresh}") as store:
        await add(store, ANN, "private")
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600


async def test_the_files_are_written_by_themselves_in_a_pause(place: str) -> None:
    store = await ReadableStore.open_files(layout_of(place))
    await add(store, ANN, "said a while ago")
    wanted = Path(place.partition(":")[2])
    wanted = wanted if place.startswith("json") else wanted / "account_ann" / "whole_history.json"
    while not wanted.exists() or "said a while ago" not in wanted.read_text(encoding="utf-8"):
        await asyncio.sleep(0.05)
    await store.close()


async def test_no_byte_of_an_erased_user_is_left(place: str, tmp_path: Path) -> None:
    secrets = ("xylophone", "quetzal", "zeppelin", "marzipan")
    async with opened(place) as store:
        messages = await add(store, ANN, "a xylophone lesson", "a quetzal in the garden")
        await add(store, TELEGRAM, "something else")
        await archive(store, ANN, messages, "About a zeppelin.")
        await store.apply([AddMemory(MemoryDraft(ANN, "fact", "likes marzipan", sources=(messages[0].seq,)))])
    async with opened(place) as store:
        await add(store, ANN, "one more xylophone")
        before = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert all(secret.encode() in before for secret in secrets)
        await store.purge(ANN)
        left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert not [secret for secret in secrets if secret.encode() in left]
        assert not list(tmp_path.rglob("account_ann"))
        assert b"something else" in left
        assert (await store.verify()).ok
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not [secret for secret in secrets if secret.encode() in left]


async def test_a_backup_is_opened_and_restored(place: str, tmp_path: Path) -> None:
    kind = place.partition(":")[0]
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
        await store.backup(tmp_path / "copies" / "monday")
        with pytest.raises(InvalidInput):
            await store.backup(tmp_path / "copies" / "monday")
        await add(store, ANN, "after the backup")
    async with opened(f"{kind}:{tmp_path / 'copies' / 'monday'}") as store:
        assert await everything(store) == before
    with pytest.raises(InvalidInput, match="exists already"):
        restore_store(tmp_path / "copies" / "monday", place, replace=False)
    aside = restore_store(tmp_path / "copies" / "monday", place, replace=True)
    assert aside is not None
    assert aside.exists()
    async with opened(place) as store:
        assert await everything(store) == before


def database_of(place: str) -> Path:
    return layout_of(place).database


def history_of(place: str) -> Path:
    """The readable file in which Ann's messages are."""
    path = layout_of(place).main
    return path if place.startswith("json") else path / "account_ann" / "whole_history.json"


async def said(place: str) -> list[str]:
    """What Ann said, as a store says that opens and verifies without losses."""
    async with opened(place) as store:
        assert (await store.verify()).ok
        return [message.text for message in await store.read(Messages(ANN))]


@pytest.mark.req("C8")
@pytest.mark.parametrize("harm", ["a byte", "a number", "half", "gone", "nonsense"])
async def test_a_damaged_file_is_set_aside_and_written_again_from_the_database(place: str, harm: str) -> None:
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
    path = history_of(place)
    whole = path.read_bytes()
    match harm:
        case "a byte":
            path.write_bytes(whole.replace(b"with milk", b"with \x0dilk"))
        case "a number":
            path.write_bytes(whole.replace(b'"id": 3, "user_id"', b'"id": 7, "user_id"'))
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "nonsense":
            path.write_bytes(b"[1, 2]")
        case _:
            path.unlink()
    async with opened(place) as store:
        assert await everything(store) == before
        assert (await store.verify()).ok
        issues = (await store.health()).issues
        assert any("was damaged; it is kept as" in issue for issue in issues) == (harm != "gone")
    assert b"with milk" in path.read_bytes()
    assert len(list(path.parent.glob(f"{path.name}.damaged-*"))) == (harm != "gone")
    async with opened(place) as store:
        assert (await store.health()).issues == ()


@pytest.mark.req("C8")
@pytest.mark.parametrize("harm", ["head", "half", "nonsense", "gone"])
async def test_a_damaged_database_is_made_again_from_the_files(place: str, harm: str) -> None:
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
    path = database_of(place)
    whole = path.read_bytes()
    match harm:
        case "head":
            path.write_bytes(bytes(100) + whole[100:])
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "nonsense":
            path.write_bytes(b"no database " * 1_000)
        case _:
            path.unlink()
    async with opened(place) as store:
        assert await everything(store) == before
        assert (await store.verify()).ok
        assert (await add(store, ANN, "and on"))[0].seq > 5, "numbers are not given out again"
    assert (await said(place))[-1] == "and on"


async def test_what_was_said_after_the_files_were_written_survives_a_damaged_database(
    place: str, tmp_path: Path
) -> None:
    async with opened(place) as store:
        await add(store, ANN, "in the files")
    async with opened(place) as store:
        await add(store, ANN, "in the database alone")
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    killed = place.replace("/live/", "/killed/")
    path = database_of(killed)
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    async with opened(killed) as store:
        found = [message.text for message in await store.read(Messages(ANN))]
        assert found == ["in the files", "in the database alone"]
        assert [check.name for check in (await store.verify()).checks if not check.ok] == ["losses"]


def kept_beside(place: str, why: str) -> list[Path]:
    """What was set aside, for a reason."""
    return [path for path in layout_of(place).copies() if f".{why}-" in path.name]


def edit(path: Path, before: str, after: str) -> None:
    """Change a word, as one does in an editor."""
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


async def test_an_edited_word_counts(place: str) -> None:
    async with opened(place) as store:
        await of_everything(store)
        await store.apply([AddVectors("m", (VectorRow(4, "with milk", b"\0\x3c" * 4),), 5)])
    edit(history_of(place), "with milk", "with honey")
    assert await said(place) == ["tea, please", "with honey"]
    (kept,) = kept_beside(place, "edited")
    assert "with milk" in kept.read_text(encoding="utf-8"), "what was stored before is kept"
    async with opened(place) as store:
        assert (await store.health()).issues == ()
        assert [hit.text for hit in await store.read(SearchText(ANN, "honey"))] == ["with honey"]
        assert await store.read(SearchText(ANN, "milk")) == []
        assert list(await store.read(MessageVectors(ANN, "m", [3, 4]))) == [3], "of the word before"
        await add(store, ANN, "and on")
    assert await said(place) == ["tea, please", "with honey", "and on"]


@pytest.mark.parametrize("tool", ["an editor", "a program"])
async def test_records_are_changed_added_and_removed_by_hand(place: str, tool: str) -> None:
    """A program lays the file out anew. Checksums may stay as they were, or go."""
    async with opened(place) as store:
        await add(store, ANN, "first", "seconf", "third", "fourth")
    path = history_of(place)
    content = parsed(path)
    messages = content["messages"] if place.startswith("files") else content["messages"]["ann"]
    if tool == "an editor":
        lines = path.read_text(encoding="utf-8").split("\n")
        (third,) = [line for line in lines if '"third"' in line]
        (fourth,) = [line for line in lines if '"fourth"' in line]
        lines.remove(third)
        new = fourth.replace('"id": 4', '"id": 5').replace('"fourth"', '"added by hand"')
        lines[lines.index(fourth)] = f"{fourth},\n{new}"
        path.write_text("\n".join(lines).replace("seconf", "second thing"), encoding="utf-8")
    else:
        messages[1]["content"] = "second thing"
        del messages[1]["check"]
        messages.append({**messages[3], "id": 5, "content": "added by hand"})
        del messages[2]
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    expected = ["first", "second thing", "fourth", "added by hand"]
    assert await said(place) == expected
    async with opened(place) as store:
        assert (await add(store, ANN, "later"))[0].seq == 6
    assert await said(place) == [*expected, "later"]


@pytest.mark.defect("W5")
@pytest.mark.parametrize("alone", [False, True])
async def test_one_changed_letter_counts_and_is_named_until_somebody_looked_at_it(place: str, *, alone: bool) -> None:
    """It may have been typed, and it may be a flipped byte."""
    async with opened(place) as store:
        await of_everything(store)
    edit(history_of(place), "with milk", "with silk")
    if alone:
        remove_databases(layout_of(place).main.parent)
    for _ in range(2):
        async with opened(place) as store:
            assert [message.text for message in await store.read(Messages(ANN))][1] == "with silk"
            (failed,) = [check for check in (await store.verify()).checks if not check.ok]
            assert failed.name == "losses"
            assert "messages 4 as written: one character differs" in failed.detail
            assert any("one character differs" in issue for issue in (await store.health()).issues)
    assert len(kept_beside(place, "edited")) == (not alone)
    (named,) = layout_of(place).lists()
    named.unlink()
    assert (await said(place))[1] == "with silk"


async def test_of_a_file_that_is_edited_again_and_again_the_newest_copies_are_kept(place: str) -> None:
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]
    async with opened(place) as store:
        await add(store, ANN, words[0])
    for before, after in pairwise(words):
        edit(history_of(place), before, after)
        assert await said(place) == [after]
    kept = [path.read_text(encoding="utf-8") for path in kept_beside(place, "edited")]
    assert [word for word in words if any(word in text for text in kept)] == words[2:7]


async def test_an_edited_window_is_kept_and_written_again(tmp_path: Path) -> None:
    place = f"files:{tmp_path / 'memory'}"
    async with opened(place) as store:
        await of_everything(store)
    edit(tmp_path / "memory" / "account_ann" / "short_term.json", "with milk", "with honey")
    async with opened(place) as store:
        assert any("edit that one" in issue for issue in (await store.health()).issues)
    (kept,) = kept_beside(place, "edited")
    assert "with honey" in kept.read_text(encoding="utf-8")
    assert await said(place) == ["tea, please", "with milk"]


async def test_a_file_that_is_edited_while_the_store_is_open_is_kept(place: str) -> None:
    async with opened(place) as store:
        await of_everything(store)
    async with opened(place) as store:
        edit(history_of(place), "with milk", "with honey")
        await add(store, ANN, "and on")
    (kept,) = kept_beside(place, "edited")
    assert "with honey" in kept.read_text(encoding="utf-8")
    assert await said(place) == ["tea, please", "with milk", "and on"]


async def test_an_edit_beside_damage_takes_nothing_away(tmp_path: Path) -> None:
    place, ann = f"files:{tmp_path / 'memory'}", tmp_path / "memory" / "account_ann"
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
    edit(ann / "whole_history.json", "with milk", "with milk")
    edit(ann / "memories.json", '"likes tea"', '"likes tea most"')
    path = tmp_path / "memory" / "aforesaid.json"
    path.write_bytes(path.read_bytes()[:200])
    (ann / "audit.json").write_bytes(b"")
    (tmp_path / "memory" / "account_123456789" / "history_context.json").unlink()
    async with opened(place) as store:
        assert [memory.text for memory in await store.read(Memories(ANN))] == ["likes tea most"]
        after = await everything(store)
        assert (await store.verify()).ok
    assert sum(each != then for each, then in zip(after, before, strict=True)) == 1


async def test_an_edited_file_counts_and_loses_nothing_that_was_not_in_it_yet(place: str, tmp_path: Path) -> None:
    async with opened(place) as store:
        await add(store, ANN, "first", "seconf")
        await store.apply([PutSetting(ANN, "summary_every_n", 15)])
    async with opened(place) as store:
        await add(store, ANN, "not in the files yet")
        await store.apply([PutSetting(ANN, "summary_every_n", 20), PutFacts(ANN, "Ann likes tea.", "said so")])
        await store.apply([AddMemory(MemoryDraft(ANN, "preference", "likes tea", sources=(3,)))])
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    killed = place.replace("/live/", "/killed/")
    edit(history_of(killed), "seconf", "second thing")
    assert await said(killed) == ["first", "second thing", "not in the files yet"]
    async with opened(killed) as store:
        assert [memory.text for memory in await store.read(Memories(ANN))] == ["likes tea"]
        assert [setting.value for setting in await store.read(Settings(ANN))] == [20]
        assert [facts.text for facts in await store.read(FactsVersions(ANN))] == ["Ann likes tea."]


@pytest.mark.parametrize("harm", ["name", "twice", "section", "checksum", "infinity"])
async def test_what_nobody_types_is_damage(place: str, harm: str) -> None:
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
    path = history_of(place)
    text = path.read_text(encoding="utf-8")
    line = next(line for line in text.split("\n") if "with milk" in line)
    last = line.rstrip("],")
    harmed = {
        "name": text.replace(line, line.replace('"is_active"', '"is_actjve"')),
        "twice": text.replace(line, line.replace('"id": 4', '"id": 3')),
        "section": text.replace('"messages": ', '"messagfs": '),
        "checksum": text.replace(last, last[:-3] + ("0" if last[-3] != "0" else "1") + last[-2:]),
        "infinity": text.replace(line, line.replace('"chunk_id": null', '"chunk_id": NaN')),
    }[harm]
    assert harmed != text
    path.write_text(harmed, encoding="utf-8")
    async with opened(place) as store:
        assert await everything(store) == before
    assert len(kept_beside(place, "damaged")) == 1


async def test_files_of_an_earlier_or_later_time_count(place: str, tmp_path: Path) -> None:
    kept, copies = layout_of(place).main.parent, tmp_path / "copies"
    for text in ("one", "two"):
        async with opened(place) as store:
            await add(store, ANN, text)
        shutil.copytree(kept, copies / text, ignore=shutil.ignore_patterns("*.db*"))
    for text, expected in (("one", ["one"]), ("two", ["one", "two"]), ("one", ["one"])):
        shutil.copytree(copies / text, kept, dirs_exist_ok=True)
        assert await said(place) == expected


async def test_files_copied_alone_are_the_whole_store(place: str, tmp_path: Path) -> None:
    async with opened(place) as store:
        await of_everything(store)
        before = await everything(store)
    shutil.copytree(tmp_path / "live", tmp_path / "copy", ignore=shutil.ignore_patterns("*.db*", "*.lock"))
    there = place.replace("/live/", "/copy/")
    async with opened(there) as store:
        assert await everything(store) == before
        assert (await store.verify()).ok
    remove_databases(tmp_path / "copy")
    edit(history_of(there), "with milk", "with honey")
    assert await said(there) == ["tea, please", "with honey"]


async def test_an_account_copied_from_another_store_is_there_unless_its_numbers_are_taken(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with opened(f"files:{here}") as store:
        await add(store, ANN, "hello")
    async with opened(f"files:{there}") as store:
        await add(store, TELEGRAM, "hi")
        await store.erase(TELEGRAM, [1])
        await add(store, TELEGRAM, "hello")
        await add(store, WORK, "one more")
    shutil.copytree(there / "account_123456789", here / "account_123456789")
    async with opened(f"files:{here}") as store:
        assert {user.id for user in await store.read(Users())} == {"ann", "123456789"}
        assert [message.text for message in await store.read(Messages(TELEGRAM))] == ["hello"]
        await add(store, ANN, "the third")
        assert (await store.verify()).ok
    (work,) = there.glob("account_ann_work*")
    shutil.copytree(work, here / work.name)
    with pytest.raises(StoreDamaged, match="export and import it"):
        await open_store(f"files:{here}")
    assert {path.name for path in (here / work.name).iterdir()} == {file.name for file in FILES}, "left as it is"
    shutil.rmtree(here / work.name)
    assert await said(f"files:{here}") == ["hello", "the third"]


async def test_only_what_changed_is_written(tmp_path: Path) -> None:
    location, folder = f"files:{tmp_path / 'memory'}", tmp_path / "memory"
    async with opened(location) as store:
        await of_everything(store)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")}
    async with opened(location) as store:
        await add(store, ANN, "more tea")
    changed = {path.relative_to(folder).as_posix() for path, then in before.items() if path.stat().st_mtime_ns != then}
    assert changed == {
        *(f"account_ann/{name}.json" for name in ("account", "whole_history", "short_term")),
        "aforesaid.json",
    }


@pytest.mark.defect("W6")
async def test_a_killed_backup_leaves_nothing_under_its_name(place: str, tmp_path: Path) -> None:
    async with opened(place) as store:
        await of_everything(store)
    target = tmp_path / "copies" / "monday"
    calls = 0
    while True:
        calls += 7
        disk = FailingDisk(calls, in_a_row=1_000_000)
        store = await ReadableStore.open_files(layout_of(place))
        store._files.disk = disk
        try:
            await store.backup(target)
        except StoreError:
            assert not target.exists()
        else:
            break
        finally:
            store._files.disk = Disk()
            await store.close()
    assert await said(f"{place.partition(':')[0]}:{target}") == ["tea, please", "with milk"]
