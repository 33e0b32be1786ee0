"""Repairing: what is whole is recovered, what was there is kept, what is missing is named."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from aforesaid.cli import app
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import ForgottenRow
from aforesaid.errors import InvalidInput, StoreBusy, StoreDamaged
from aforesaid.portability import migrating
from aforesaid.portability.migrating import repair
from aforesaid.store import Store, open_store
from aforesaid.store.memories import AddMemory, FactsVersions, Forget, Memories, PutFacts
from aforesaid.store.messages import Messages, UserLedger
from aforesaid.store.people import PutSetting, Settings
from aforesaid.store.searches import SearchText
from aforesaid.store.sqlite.salvaging import salvage
from aforesaid.store.summaries import Summaries
from making import add, archive, remove_databases

ANN = Scope.of("ann")


@pytest.fixture(params=["sqlite", "json", "files"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path / 'memory'}"


async def fill_with_everything(place: str) -> None:
    store = await open_store(place)
    messages = await add(store, ANN, *[f"message number {number}" for number in range(300)])
    await archive(store, ANN, messages[:20], "The first twenty.")
    await store.apply([PutFacts(ANN, "Ann likes tea.", "said so"), PutSetting(ANN, "summary_every_n", 9)])
    await store.apply([AddMemory(MemoryDraft(ANN, "fact", "likes tea", sources=(messages[5].seq,)))])
    await store.close()
    remove_databases(Path(place.partition(":")[2]).parent)


def damage(tmp_path: Path, kind: str, text: bytes) -> Path:
    """Change one byte of a text, wherever it is kept: in readable files to one that nobody types."""
    files = [path for path in tmp_path.rglob("*") if path.is_file() and text in path.read_bytes()]
    assert files, "the text is nowhere"
    for path in files:
        harmed = text[:-1] + bytes((text[-1] ^ (1 if kind == "sqlite" else 0x80),))
        path.write_bytes(path.read_bytes().replace(text, harmed))
    return next((path for path in files if kind == "files" and path.name == "whole_history.json"), files[0])


async def texts(store: Store) -> list[str]:
    return [message.text for message in await store.read(Messages(ANN, limit=1_000))]


@pytest.mark.req("C8")
async def test_a_changed_message_is_found_named_and_left_out_and_all_else_is_recovered(
    place: str, tmp_path: Path
) -> None:
    await fill_with_everything(place)
    hit = damage(tmp_path, place.partition(":")[0], b"message number 77")
    changed = hit.read_bytes()
    if place.startswith("json"):
        with pytest.raises(StoreDamaged):
            await open_store(place)
    else:
        store = await open_store(place)
        assert not (await store.verify()).ok
        await store.close()
    done = await repair(place)
    assert done.needed
    assert done.verification.ok
    assert done.recovered["message"] == 299
    assert any("#78" in line for line in done.lost), done.lost
    assert done.set_aside is not None
    assert changed in [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()], "kept as it was"
    store = await open_store(place)
    assert await texts(store) == [f"message number {number}" for number in range(300) if number != 77]
    assert [summary.text for summary in await store.read(Summaries(ANN))] == ["The first twenty."]
    assert (await store.read(UserLedger(ANN))).archived == 20
    assert [memory.text for memory in await store.read(Memories(ANN))] == ["likes tea"]
    assert [facts.text for facts in await store.read(FactsVersions(ANN))] == ["Ann likes tea."]
    assert [(setting.key, setting.value) for setting in await store.read(Settings(ANN))] == [("summary_every_n", 9)]
    assert [hit.text for hit in await store.read(SearchText(ANN, "299"))] == ["message number 299"]
    await store.close()


async def test_what_is_whole_is_left_as_it_is(place: str, tmp_path: Path) -> None:
    await fill_with_everything(place)
    before = sorted(path.name for path in tmp_path.iterdir())
    done = await repair(place)
    assert (done.needed, done.lost, done.set_aside) == (False, (), None)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".memory.db") == before
    with pytest.raises(InvalidInput):
        await repair(f"{place}-that-is-not-there")
    with pytest.raises(InvalidInput):
        await repair(":memory:")


@pytest.mark.defect("U3")
@pytest.mark.parametrize("step", ["_copy_as_it_is", "salvage_store", "restore_store"])
async def test_the_event_loop_goes_on_during_a_repair(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await fill_with_everything(place)
    damage(tmp_path, place.partition(":")[0], b"message number 77")
    loop, went_on, slow = asyncio.get_running_loop(), threading.Event(), getattr(migrating, step)

    def waiting(*given: object, **options: object) -> object:
        loop.call_soon_threadsafe(went_on.set)
        assert went_on.wait(60), "the event loop stands still"
        return slow(*given, **options)

    monkeypatch.setattr(migrating, step, waiting)
    assert (await repair(place)).verification.ok


async def test_files_that_are_in_use_are_not_repaired(tmp_path: Path) -> None:
    store = await open_store(f"json:{tmp_path / 'memory'}")
    with pytest.raises(StoreBusy):
        await repair(f"json:{tmp_path / 'memory'}")
    await store.close()


@pytest.mark.req("C8", "C19")
async def test_a_lost_window_is_made_anew_and_a_lost_history_is_taken_from_the_windows(tmp_path: Path) -> None:
    place = f"files:{tmp_path / 'memory'}"
    await fill_with_everything(place)
    account = tmp_path / "memory" / "account_ann"
    whole = (account / "short_term.json").read_bytes()
    (account / "short_term.json").write_bytes(whole[:1_000])
    store = await open_store(place)
    assert len(await texts(store)) == 300, "nothing is missing without the window"
    await add(store, ANN, "one more")
    await store.close()
    assert b"one more" in (account / "short_term.json").read_bytes()
    history = account / "whole_history.json"
    history.write_bytes(history.read_bytes()[:500])
    remove_databases(tmp_path)
    done = await repair(place)
    assert done.recovered["message"] >= 250, "the two windows have the newest 250"
    assert any("whole_history.json" in line for line in done.lost)
    store = await open_store(place)
    assert (await texts(store))[-1] == "one more"
    await store.close()


async def test_a_database_whose_head_is_gone_still_gives_its_messages(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path / 'memory'}"
    await fill_with_everything(place)
    path = tmp_path / "memory"
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    done = await repair(place)
    assert done.recovered["message"] == 300
    assert done.lost, "what is not a message is named"
    store = await open_store(place)
    assert await texts(store) == [f"message number {number}" for number in range(300)]
    await store.close()


async def test_messages_that_are_not_there_any_more_are_named(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    store = await open_store(f"sqlite:{path}")
    for name in ("ann", "bob", "bob", "ann"):
        await add(store, Scope.of(name), f"from {name}")
    await store.purge(Scope.of("bob"))
    await store.close()
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    done = await repair(f"sqlite:{path}")
    assert done.recovered["message"] == 2
    assert "messages that are not there (erased before, or lost): #2 to #3" in done.lost


async def test_tables_of_an_earlier_version_are_read_by_the_names_that_they_had(tmp_path: Path) -> None:
    store = await open_store(path := tmp_path / "memory.db")
    await add(store, ANN, "hello")
    await store.apply([Forget(ANN, ("the cat",))])
    await store.close()
    with closing(apsw.Connection(str(path))) as file:
        file.execute("ALTER TABLE tombstone RENAME TO forgotten; ALTER TABLE cursor RENAME TO walk")
        file.execute("ALTER TABLE metadata RENAME TO mark")
    found = salvage(path)
    assert [row.words for row in found.rows if isinstance(row, ForgottenRow)] == ["the cat"]
    assert not found.lost


async def test_a_damaged_write_ahead_log_is_read_past_the_damage(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path / 'live' / 'memory'}"
    store = await open_store(place)
    await add(store, ANN, "already in the log", "said later")
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    await store.close()
    log = tmp_path / "killed" / "memory-wal"
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    place = place.replace("live", "killed")
    done = await repair(place)
    assert done.needed
    store = await open_store(place)
    assert await texts(store) == ["already in the log", "said later"]
    await store.close()


@pytest.mark.defect("D9")
@pytest.mark.parametrize("kind", ["json", "files"])
@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"message number 299", "messages that are not there (erased before, or lost): #300"),
        (b"The last twenty.", "summaries that are not there (erased before, or lost): #2"),
        (b"likes milk", "memories that are not there (erased before, or lost): #2"),
    ],
)
async def test_the_number_of_the_last_record_is_named_too_when_it_is_lost(
    tmp_path: Path, kind: str, text: bytes, named: str
) -> None:
    place = f"{kind}:{tmp_path / 'memory'}"
    await fill_with_everything(place)
    store = await open_store(place)
    messages = await store.read(Messages(ANN, limit=20))
    await archive(store, ANN, messages, "The last twenty.")
    await store.apply([AddMemory(MemoryDraft(ANN, "fact", "likes milk", sources=(messages[5].seq,)))])
    await store.close()
    remove_databases(tmp_path)
    damage(tmp_path, kind, text)
    if kind == "files" and b"message" not in text:
        # Only the messages of an account stop it from opening; the index is damaged too, so that repair has work.
        index = tmp_path / "memory" / "aforesaid.json"
        index.write_bytes(index.read_bytes().replace(b'"kind": "files"', b'"kind": "filed"'))
    done = await repair(place)
    assert done.needed
    assert named in done.lost


@pytest.mark.defect("D9")
async def test_the_last_rows_that_a_database_has_lost_are_named(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path / 'memory'}"
    await fill_with_everything(place)
    with closing(apsw.Connection(str(tmp_path / "memory"))) as database:
        database.execute("DELETE FROM log WHERE seq = 300; DELETE FROM summary; DELETE FROM memory")
    done = await repair(place)
    assert done.needed
    assert set(done.lost) == {
        "messages that are not there (erased before, or lost): #300",
        "summaries that are not there (erased before, or lost): #1",
        "memories that are not there (erased before, or lost): #1",
    }


@pytest.mark.defect("D9")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_repair_reports_what_is_there_afterwards_and_names_what_is_not(place: str, data: st.DataObject) -> None:
    """Damage any byte of any file: what a repair says it recovered is in the store, and nothing else is missing."""
    folder = Path(tempfile.mkdtemp(dir=Path(place.partition(":")[2]).parent))
    asyncio.run(_damage_and_repair(f"{place.partition(':')[0]}:{folder / 'memory'}", folder, data))
    shutil.rmtree(folder)


async def _damage_and_repair(place: str, folder: Path, data: st.DataObject) -> None:
    store = await open_store(place)
    messages = await add(store, ANN, *[f"message number {number}" for number in range(30)])
    await archive(store, ANN, messages[:10], "The first ten.")
    await archive(store, ANN, messages[10:20], "The next ten.")
    await store.apply([AddMemory(MemoryDraft(ANN, "fact", "likes tea", sources=(messages[5].seq,)))])
    await store.apply([AddMemory(MemoryDraft(ANN, "fact", "likes milk", sources=(messages[6].seq,)))])
    await store.close()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = data.draw(st.sampled_from(files))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        done = await repair(place)
    except StoreDamaged:  # not one message of the database can be read; nothing was changed
        return
    store = await open_store(place)
    found = {
        "message": {message.seq for message in await store.read(Messages(ANN, limit=100))},
        "summary": {summary.id for summary in await store.read(Summaries(ANN, active=None))},
        "memory": {memory.id for memory in await store.read(Memories(ANN, active=None))},
    }
    assert (await store.verify()).ok
    await store.close()
    if done.needed:
        assert {kind: done.recovered.get(kind, 0) for kind in found} == {kind: len(ids) for kind, ids in found.items()}
    counts = {"message": 30, "summary": 2, "memory": 2}
    names = {"message": "messages", "summary": "summaries", "memory": "memories"}
    for kind, count in counts.items():
        missing = set(range(1, count + 1)) - found[kind]
        told = {number for line in done.lost if line.startswith(names[kind]) for number in numbers(line)}
        assert told == (missing if done.needed else set()), (kind, missing, done.lost)


def numbers(line: str) -> set[int]:
    """Return the numbers that a line names, such as #3 and #5 to #9."""
    named = re.findall(r"#(\d+)(?: to #(\d+))?", line)
    return {number for first, last in named for number in range(int(first), int(last or first) + 1)}


def test_the_command_line_repairs_and_says_so(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path / 'memory'}"
    asyncio.run(fill_with_everything(place))
    whole = CliRunner().invoke(app, ["verify", "--repair", "--store", place])
    assert (whole.exit_code, "nothing is damaged" in whole.output) == (0, True)
    damage(tmp_path, "sqlite", b"message number 77")
    done = CliRunner().invoke(app, ["verify", "--repair", "--store", place])
    assert done.exit_code == 0, done.output
    assert "299 message" in done.output
    assert "not recovered: messages that are not what was stored: #78" in done.output
    assert "is now" in done.output
