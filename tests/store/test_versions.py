"""New versions of messages, on every store: the newest counts, the older ones stay in the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aforesaid
from aforesaid.domain.checks import Within
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.store import Store, open_store
from aforesaid.store.erasing import SetAside
from aforesaid.store.messages import MessageById, Messages, MessagesAfter
from aforesaid.store.people import Totals
from aforesaid.store.searches import AddVectors, SearchText, SearchVector
from aforesaid.store.summaries import CoveredMessages
from copying import copy
from making import adding, archive, minutes

ANN = Scope.of("ann")
GENERAL = Scope.of("ann", thread="general")

pytestmark = pytest.mark.defect("P2")


async def say(store: Store, text: str, role: str = "user", scope: Scope = ANN, **options: object) -> Message:
    return (await store.apply([adding(scope, text, role, **options)])).message  # type: ignore[arg-type]


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_only_the_newest_version_is_shown_in_the_place_of_the_first(store: Store) -> None:
    question = await say(store, "Where is the cat?", at=minutes(0))
    answer = await say(store, "In the garden.", "assistant", at=minutes(1))
    await say(store, "Thanks.", at=minutes(2))
    second = await say(store, "On the roof.", "assistant", replaces=answer.id)
    assert (second.replaces, second.replaced, second.at, second.session) == (
        answer.seq,
        False,
        answer.at,
        question.session,
    )
    for within in ("user", "thread"):
        assert texts(await store.read(Messages(ANN, within=within))) == [
            "Where is the cat?",
            "On the roof.",
            "Thanks.",
        ]
    every = await store.read(Messages(ANN, versions=True))
    assert texts(every) == ["Where is the cat?", "In the garden.", "On the roof.", "Thanks."]
    assert [message.replaced for message in every] == [False, True, False, False]
    assert (await store.read(MessageById(ANN, answer.id))).replaced
    assert len(await store.read(MessagesAfter(ANN, 0, 10))) == 4, "the log has all of them"
    assert (await store.verify()).ok


async def test_a_version_can_name_a_time_of_its_own(store: Store) -> None:
    first = await say(store, "one", at=minutes(0))
    await say(store, "two", at=minutes(1))
    await say(store, "one, said later", at=minutes(5), replaces=first)
    assert texts(await store.read(Messages(ANN))) == ["two", "one, said later"]


async def test_replacing_a_replaced_message_replaces_its_newest_version(store: Store) -> None:
    first = await say(store, "first", id="m1")
    second = await say(store, "second", replaces="m1")
    third = await say(store, "third", replaces="m1")
    assert (second.replaces, third.replaces) == (first.seq, second.seq)
    fourth = await say(store, "fourth", replaces=first)
    assert fourth.replaces == third.seq
    assert texts(await store.read(Messages(ANN))) == ["fourth"]
    assert (await store.verify()).ok


async def test_the_same_version_is_stored_once(store: Store) -> None:
    await say(store, "first", id="m1")
    for changes in (adding(ANN, "second", id="m2", replaces="m1"), adding(ANN, "x", at=minutes(3), replaces="m1")):
        once = await store.apply([changes])
        again = await store.apply([changes])
        assert (once.duplicate, again.duplicate) == (False, True)
        assert again.message.seq == once.message.seq
    assert texts(await store.read(Messages(ANN))) == ["x"]
    assert len(await store.read(Messages(ANN, versions=True))) == 3


async def test_what_is_not_there_or_belongs_to_another_cannot_be_replaced(store: Store) -> None:
    await say(store, "Bob's", scope=Scope.of("bob"), id="m1")
    mine = await say(store, "mine", scope=GENERAL)
    for replaces in ("m1", "#1", "#99", "never", mine.id):
        with pytest.raises(NotFound):
            await say(store, "mine now", replaces=replaces)
    with pytest.raises(InvalidInput):
        await say(store, "an answer", "assistant", scope=GENERAL, replaces=mine)
    assert texts(await store.read(Messages(ANN))) == ["mine"]
    assert texts(await store.read(Messages(Scope.of("bob")))) == ["Bob's"]
    assert (await store.read(Totals())).messages == 2


async def test_a_change_set_can_hold_a_message_and_its_new_version(store: Store) -> None:
    await store.apply([adding(ANN, "one", id="a"), adding(ANN, "two", id="b", replaces="a"), adding(ANN, "three")])
    assert texts(await store.read(Messages(ANN))) == ["two", "three"]
    with pytest.raises(NotFound):
        await store.apply([adding(ANN, "four"), adding(ANN, "five", replaces="never")])
    assert texts(await store.read(Messages(ANN))) == ["two", "three"]
    assert (await store.verify()).ok


@pytest.mark.parametrize("scope", [ANN, GENERAL])
async def test_search_finds_the_newest_version_alone(store: Store, scope: Scope) -> None:
    within: Within = "user" if scope is ANN else "thread"
    first = await say(store, "the cat is in the garden", scope=scope)
    await say(store, "something else", scope=scope)
    assert texts([hit.message for hit in await store.read(SearchText(scope, "cat", within=within)) if hit.message]) == [
        first.text
    ]
    second = await say(store, "the cat is on the roof", scope=scope, replaces=first)
    found = await store.read(SearchText(scope, "cat garden", within=within))
    assert [hit.message for hit in found] == [second]
    vector = np.array([1.0, 0.0], dtype=np.float16)
    rows = tuple(VectorRow(message.seq, message.text, vector.tobytes(), "default") for message in (first, second))
    await store.apply([AddVectors("test", rows, second.seq)])
    similar = await store.read(SearchVector(scope, "test", vector.astype(np.float32), within=within))
    assert similar is not None
    assert list(similar.seqs) == [second.seq]


async def test_an_archive_keeps_the_versions_that_it_holds(store: Store) -> None:
    first = await say(store, "one")
    summary = await archive(store, ANN, [first])
    second = await say(store, "two", replaces=first)
    assert (second.active, second.chunk) == (True, None), "a later summary will cover the new text"
    assert texts(await store.read(CoveredMessages(ANN, summary.id))) == ["one"]
    assert texts(await store.read(Messages(ANN))) == ["two"]
    assert (await store.verify()).ok


async def test_versions_go_with_the_person(store: Store) -> None:
    first = await say(store, "a secret", scope=GENERAL, author="carol")
    await say(store, "a kept answer", scope=GENERAL, replaces=first)
    await say(store, "Ann's", scope=GENERAL)
    await store.purge(Scope.of("carol"))
    assert texts(await store.read(Messages(ANN, versions=True))) == ["a kept answer", "Ann's"]
    assert (await store.read(Messages(ANN, versions=True)))[0].replaces is None
    assert (await store.verify()).ok
    await store.purge(ANN)
    assert await store.read(Messages(ANN, versions=True)) == []
    assert (await store.verify()).ok


async def test_a_version_counts_again_when_the_newer_one_is_erased(store: Store) -> None:
    first = await say(store, "mine", scope=GENERAL)
    await say(store, "Carol's", scope=GENERAL, author="carol", replaces=first)
    await store.purge(Scope.of("carol"))
    (left,) = await store.read(Messages(ANN))
    assert (left.text, left.replaced) == ("mine", False)
    assert [hit.text for hit in await store.read(SearchText(ANN, "mine"))] == ["mine"]
    assert (await store.verify()).ok


async def test_versions_are_copied_to_another_store(store: Store, tmp_path: Path) -> None:
    other = await open_store(str(tmp_path / "other.db"))
    await say(other, "was here before", at=minutes(-5))
    first = await say(store, "yes", at=minutes(0))
    for text in ("no", "yes", "no"):
        await say(store, text, replaces=first)
    for _ in range(2):
        await copy(store.dump(), other)
        assert texts(await other.read(Messages(ANN))) == ["was here before", "no"]
        assert texts(await other.read(Messages(ANN, versions=True))) == [
            "was here before",
            "yes",
            "no",
            "yes",
            "no",
        ]
        assert (await other.verify()).ok
    await other.close()


async def test_the_front_door_replaces_messages(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        question = (await ann.add("user", "Where is my hat?", id=7)).message
        await ann.add("assistant", "In the hall.", id="a1")
        await ann.add("assistant", "Under the bed, I think.", replaces="a1")
        await ann.add("user", "Where is my blue hat?", replaces=7)
        shown = [message.text for message in await ann.history()]
        assert shown == ["Where is my blue hat?", "Under the bed, I think."]
        assert len(await ann.history(versions=True)) == 4
        context = await ann.context("And the scarf?", budget=2000)
        assert "In the hall." not in context.text
        assert "Under the bed" in context.text
        await memory.upkeep()
        found = [hit.text for hit in await ann.search("hat hall")]
        assert "In the hall." not in found
        assert question.text not in found
        with pytest.raises(NotFound):
            await ann.add("user", "x", replaces="unknown")


async def test_versions_survive_an_export_and_an_import(location: str, tmp_path: Path) -> None:
    async with aforesaid.connect(location) as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "one")).message
        await ann.add("user", "two", replaces=first)
        await memory.export(tmp_path / "export.jsonl")
    async with aforesaid.connect(":memory:") as memory:
        await memory.load(tmp_path / "export.jsonl")
        assert [message.text for message in await memory.user("ann").history()] == ["two"]
        assert [message.text for message in await memory.user("ann").history(versions=True)] == ["one", "two"]


async def test_versions_are_there_after_a_restart(location: str) -> None:
    if location == ":memory:":
        pytest.skip("nothing survives there")
    store = await open_store(location)
    first = await say(store, "one")
    await say(store, "two", replaces=first)
    await store.close()
    store = await open_store(location)
    try:
        await say(store, "three", replaces=first)
        assert texts(await store.read(Messages(ANN))) == ["three"]
        assert (await store.verify()).ok
    finally:
        await store.close()


@pytest.mark.defect("S4")
@pytest.mark.req("G16")
async def test_messages_that_were_set_aside_are_found_and_not_shown_until_a_version_of_them_counts_again(
    store: Store,
) -> None:
    question = await say(store, "Tell me about Spain.", id="spain")
    answer = await say(store, "Spain has oranges.", "assistant")
    theirs = await say(store, "I like Spain too.", scope=Scope.of("bob"))
    vector = np.array([1.0, 0.0], dtype=np.float16)
    aside = SetAside(ANN, (question.seq, answer.seq, theirs.seq, 999))
    await store.apply([aside, adding(ANN, "Tell me about Portugal.", "user")])
    await store.apply([aside])

    async def found(word: str) -> list[str]:
        hits = await store.read(SearchText(ANN, word))
        return sorted(hit.text for hit in hits)

    async def similar() -> set[int]:
        seen = await store.read(SearchVector(ANN, "test", vector.astype(np.float32)))
        return set() if seen is None else set(seen.seqs.tolist())

    assert texts(await store.read(Messages(ANN))) == ["Tell me about Portugal."]
    assert texts(await store.read(Messages(Scope.of("bob")))) == ["I like Spain too."]
    assert await found("Spain") == ["Spain has oranges.", "Tell me about Spain."]
    rows = tuple(VectorRow(each.seq, each.text, vector.tobytes(), "default") for each in (question, answer))
    await store.apply([AddVectors("test", rows, answer.seq)])
    assert await similar() == {question.seq, answer.seq}
    again = await say(store, "Tell me about Spain.", id="spain again", replaces="spain")
    assert again.replaces == question.seq
    assert texts(await store.read(Messages(ANN))) == ["Tell me about Spain.", "Tell me about Portugal."]
    assert await found("Spain") == ["Spain has oranges.", "Tell me about Spain."], "each version once"
    assert await similar() == {answer.seq}
    assert (await store.verify()).ok
    other = await open_store(":memory:")
    for _ in range(2):
        await copy(store.dump(), other)
        assert texts(await other.read(Messages(ANN))) == [again.text, "Tell me about Portugal."]
        assert len(await other.read(SearchText(ANN, "oranges"))) == 1
    await other.close()
