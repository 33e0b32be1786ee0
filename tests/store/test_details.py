"""Parts, tool calls, metadata and replies of messages, on every store."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import aforesaid
from aforesaid import Part, ToolCall
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.store import Store, open_store
from aforesaid.store.messages import Messages, ResponseOwner
from aforesaid.store.people import Totals
from aforesaid.store.searches import AddVectors, MessageVectors, SearchText, UnembeddedMessages
from aforesaid.store.sqlite.salvaging import salvage
from aforesaid.store.summaries import CoveredMessages
from copying import copy
from making import adding, archive, minutes

ANN = Scope.of("ann")
GENERAL = Scope.of("ann", thread="general")
CALL = ToolCall("c1", "weather", '{"city": "Zürich"}')
PICTURE = Part("image", "a cat on a roof", "https://x/cat.png", "image/png", "cat.png", "ab" * 32, 1234)
METADATA = {"é": [1, 2.5, None, True, {"deep": "\u2028 'quoted' \\ \"x\""}], "number": 2**60}


async def say(store: Store, text: str = "", role: str = "user", scope: Scope = ANN, **options: object) -> Message:
    return (await store.apply([adding(scope, text, role, **options)])).message  # type: ignore[arg-type]


async def fill(store: Store, scope: Scope = ANN) -> list[Message]:
    """Store one message of each kind."""
    first = await say(store, "What is the weather?", scope=scope, at=minutes(0), metadata=METADATA, language="en")
    return [
        first,
        await say(store, "", "assistant", scope, at=minutes(1), tool_calls=[CALL], reply_to=first),
        await say(store, "", "tool", scope, at=minutes(2), tool_call_id="c1"),
        await say(store, "", "user", scope, at=minutes(3), parts=[PICTURE], kind="photo", id="p1"),
        await say(store, "", "user", scope, at=minutes(4), parts=[Part("image")], reply_to="p1"),
        await say(store, "plain", scope=scope, at=minutes(5)),
    ]


def whole(messages: list[Message]) -> list[object]:
    return [(message.role, message.text, message.all_details) for message in messages]


@pytest.mark.distributed
@pytest.mark.parametrize("scope", [ANN, GENERAL])
async def test_details_come_back_as_they_were_stored(store: Store, scope: Scope) -> None:
    stored = await fill(store, scope)
    found = await store.read(Messages(scope))
    assert found == stored
    assert [message.text for message in found] == ["What is the weather?", "", "", "a cat on a roof", "", "plain"]
    assert found[0].metadata == METADATA
    assert found[1].tool_calls == (CALL,)
    assert found[1].reply_to == stored[0].id
    assert found[2].tool_call_id == "c1"
    assert found[3].parts == (PICTURE,)
    assert [message.details is None for message in found] == [False] * 5 + [True]
    assert (await store.verify()).ok


async def test_what_parts_say_is_found(store: Store) -> None:
    *_, picture, _, _ = await fill(store)
    found = await store.read(SearchText(ANN, "cat"))
    assert [hit.message for hit in found] == [picture]


async def test_two_pictures_of_one_moment_are_two_messages(store: Store) -> None:
    for name in ("a.png", "b.png", "a.png"):
        await say(store, at=minutes(0), parts=[Part("image", name=name)])
    assert [message.parts[0].name for message in await store.read(Messages(ANN))] == ["a.png", "b.png"]


async def test_a_delivery_without_details_repeats_one_that_had_some(store: Store) -> None:
    first = await store.apply([adding(ANN, "hello", at=minutes(0), kind="text", metadata={"from": "phone"})])
    again = await store.apply([adding(ANN, "hello", at=minutes(0))])
    other = await store.apply([adding(ANN, "hello", at=minutes(0), metadata={"from": "tablet"})])
    assert (first.duplicate, again.duplicate, other.duplicate) == (False, True, False)
    assert again.message.metadata == {"from": "phone"}


async def test_a_new_version_has_details_of_its_own(store: Store) -> None:
    first = await say(store, "one", metadata={"draft": True})
    second = await say(store, "two", replaces=first, parts=[PICTURE])
    assert await store.read(Messages(ANN)) == [second]
    assert second.metadata == {}
    old, new = await store.read(Messages(ANN, versions=True))
    assert (old.metadata, new.parts) == ({"draft": True}, (PICTURE,))
    assert (await store.verify()).ok


async def test_messages_without_a_text_are_archived_and_erased_like_others(store: Store) -> None:
    stored = await fill(store)
    summary = await archive(store, ANN, stored[:4])
    covered = await store.read(CoveredMessages(ANN, summary.id))
    assert whole(covered) == whole(stored[:4])
    assert (await store.verify()).ok
    await store.purge(ANN)
    assert (await store.read(Totals())).messages == 0
    assert (await store.verify()).ok


async def test_an_embedder_passes_messages_without_a_text(store: Store) -> None:
    stored = await fill(store)
    due = await store.read(UnembeddedMessages("m", 10))
    assert [each.seq for each in due] == [message.seq for message in stored]
    rows = tuple(VectorRow(each.seq, each.text, b"\0\x3c" * 4 if each.text else b"", each.space) for each in due)
    await store.apply([AddVectors("m", rows[1:3], stored[2].seq)])
    await store.apply([AddVectors("m", rows, stored[-1].seq)])
    assert await store.read(UnembeddedMessages("m", 10)) == []
    vectors = await store.read(MessageVectors(ANN, "m", [message.seq for message in stored]))
    assert sorted(vectors) == [message.seq for message in stored if message.text]
    assert (await store.verify()).ok


async def test_details_are_copied_to_another_store_and_replies_follow_their_message(
    store: Store, tmp_path: Path
) -> None:
    stored = await fill(store)
    other = await open_store(str(tmp_path / "other.db"))
    await say(other, "was here before", at=minutes(-5))
    for _ in range(2):
        await copy(store.dump(), other)
        _, *found = await other.read(Messages(ANN))
        assert found[1].reply_to == found[0].id != stored[0].id
        assert found[4].reply_to == "p1"
        assert [message.metadata for message in found] == [message.metadata for message in stored]
        assert [message.parts for message in found] == [message.parts for message in stored]
        assert [message.tool_calls for message in found] == [message.tool_calls for message in stored]
        assert (await other.verify()).ok
    await other.close()


async def test_details_survive_an_export_and_an_import(location: str, tmp_path: Path) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "hello", metadata=METADATA, kind="text", language="en")).message
        await ann.add("assistant", tool_calls=[CALL], reply_to=first)
        await ann.add("tool", tool_call_id="c1")
        await ann.add("user", parts=[PICTURE, {"type": "text", "text": "look"}])
        stored = await ann.history()
        await memory.export(tmp_path / "export.jsonl")
    async with aforesaid.connect(":memory:") as memory:
        loaded = await memory.load(tmp_path / "export.jsonl")
        assert loaded.ok, loaded.examples
        assert whole(await memory.user("ann").history()) == whole(stored)


async def test_a_changed_export_is_noticed(tmp_path: Path) -> None:
    async with aforesaid.connect(":memory:") as memory:
        await memory.user("ann").add("user", "hello", metadata={"trust": "low"})
        await memory.export(tmp_path / "export.jsonl")
    text = (tmp_path / "export.jsonl").read_text(encoding="utf-8")
    (tmp_path / "changed.jsonl").write_text(text.replace('"low"', '"top"'), encoding="utf-8")
    async with aforesaid.connect(":memory:") as memory:
        loaded = await memory.load(tmp_path / "changed.jsonl")
        assert not loaded.ok
        assert await memory.user("ann").history() == []


async def test_details_are_there_after_a_restart(location: str) -> None:
    if location == ":memory:":
        pytest.skip("nothing survives there")
    store = await open_store(location)
    stored = await fill(store)
    await store.close()
    store = await open_store(location)
    try:
        assert await store.read(Messages(ANN)) == stored
        assert (await store.verify()).ok
    finally:
        await store.close()


async def test_verify_notices_changed_details(path: Path) -> None:
    store = await open_store(str(path))
    stored = await fill(store)
    await store.close()
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE log SET details = replace(details, 'cat.png', 'dog.png')")
    store = await open_store(str(path))
    report = await store.verify()
    assert not report.ok
    assert f"{stored[3].seq} is not what was stored" in str(report)
    await store.close()


async def test_details_are_salvaged_from_a_damaged_file(path: Path) -> None:
    store = await open_store(str(path))
    stored = await fill(store)
    await store.close()
    found = [row for row in salvage(path).rows if isinstance(row, Message)]
    assert whole(found) == whole(stored)


@pytest.mark.distributed
@pytest.mark.defect("S10")
async def test_the_first_answer_stored_with_a_response_id_tells_whose_it_is(store: Store) -> None:
    bob = Scope.of("bob", space="lab")

    async def owner(response: str) -> object:
        return await store.read(ResponseOwner(response))

    assert await owner("resp_1") is None
    named = {"metadata": {"response": "resp_1"}}
    await say(store, "Not of the proxy.", "assistant", ANN, **named)
    assert await owner("resp_1") is None
    await say(store, "Yes.", "assistant", bob, id="reply:a:b", **named)
    await say(store, "Forged.", "assistant", ANN, id="reply:a:b", **named)
    await say(store, "No id.", "assistant", ANN, id="reply:c:d")
    await say(store, "A number.", "assistant", ANN, id="reply:e:f", metadata={"response": 7})
    await say(store, "Long.", "assistant", ANN, id="reply:g:h", metadata={"response": "é" * 20_000})
    assert await owner("resp_1") == ("lab", "bob")
    assert await owner("é" * 20_000) == (ANN.space, "ann")
    assert await owner("resp_2") is None
