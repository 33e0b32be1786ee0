"""Kinds of memories: what each is, whom it is about, when it was said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from aforesaid.domain.checks import Kind
from aforesaid.errors import InvalidInput
from aforesaid.models.embed import LocalEmbedder
from facts.talking import THURSDAY, connect, say


async def test_what_people_say_becomes_memories_of_different_kinds() -> None:
    async with connect(embedder=LocalEmbedder(ranker=False)) as memory:
        ann = memory.user("ann")
        await say(
            ann,
            "Please always answer in metric units.",
            "I'm allergic to peanuts.",
            "I prefer tea over coffee.",
            "I have a dentist appointment next Monday at 9am.",
            "My brother is called Levin.",
            "Levin defends his thesis about tides on 14 May.",
            reply="I see.",
        )
        await memory.upkeep()
        kinds = {each.text: each.kind for each in await ann.memories(active=None)}
    expected = {
        "metric": {"instruction"},
        "peanuts": {"fact"},
        "coffee": {"preference"},
        "dentist": {"schedule"},
        "brother": {"relationship"},
        "thesis": {"event"},
    }
    found = {word: {kind for text, kind in kinds.items() if word in text} for word in expected}
    assert all(found[word] and found[word] <= allowed for word, allowed in expected.items()), kinds


async def test_a_memory_says_when_it_was_said_in_which_language_and_how_sure_it_is() -> None:
    async with connect(embedder=LocalEmbedder(ranker=False)) as memory:
        ann = memory.user("ann")
        await say(
            ann, "Seit Januar leitet meine Chefin Gesa die Abteilung in Bremen, vorher war sie nur Stellvertreterin."
        )
        await memory.upkeep()
        value, note = sorted(await ann.memories(), key=lambda each: each.matter is None)
    assert (value.matter, note.matter) == ("boss", None)
    for known in (value, note):
        assert (known.said_at, known.language) == (THURSDAY, "german")
        assert known.confidence is not None
        assert 0.5 <= known.confidence <= 1


async def test_an_event_that_somebody_writes_down_is_dated_and_does_not_expire() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        moved = await ann.note("event", "Moved to Berlin on 1 May 2020")
        party = await ann.note("event", "Garden party", when=THURSDAY + timedelta(days=3))
        assert moved.event is not None
        assert (moved.kind, moved.category, moved.event.start.date().isoformat()) == ("event", "fact", "2020-05-01")
        assert moved.expires_at is party.expires_at is None
        assert [each.id for each in await ann.memories(kind="event")] == [party.id, moved.id]
        assert await ann.memories("schedule") == []
        assert {each.kind for each in await memory.memories(kind="event")} == {"event"}


async def test_a_fact_with_a_date_is_an_event_and_one_without_is_none() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        assert (await ann.note("fact", "Finished school", when="2010-06-30")).kind == "event"
        assert (await ann.note("fact", "Has a driving licence")).kind == "fact"


async def test_a_tag_does_not_turn_a_reminder_into_an_event() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        reminder = await ann.note("reminder", "Call Bob tomorrow at 9", tags=["event"])
        assert (reminder.kind, reminder.remind_at is None) == ("reminder", False)
        assert await ann.timeline() == []


async def test_the_kind_can_be_corrected_and_the_category_follows() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        noted = await ann.note("fact", "Answers in metric units")
        corrected = await ann.edit_memory(noted.id, category="instruction")
        assert (corrected.kind, corrected.category) == ("instruction", "preference")
        assert (await ann.undo(noted.id)).kind == "fact"
        with pytest.raises(InvalidInput, match="unknown category 'rumour'"):
            await ann.note("rumour", "It rains")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["instruction", "relationship", "event"])
async def test_a_correction_that_repeats_the_category_keeps_the_kind(kind: Kind) -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        noted = await ann.note(kind, "Always answer in French.")
        corrected = await ann.edit_memory(noted.id, text="Always answer in French, please.", category=noted.category)
        assert (corrected.kind, corrected.category) == (kind, noted.category)
        assert (await ann.edit_memory(noted.id, category="task")).kind == "task"


async def test_a_memory_is_about_the_person_it_names() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        await ann.remember("is a pilot", about="Tom")
        await ann.note("fact", "Lives in Cork", about="Sinéad")
        await ann.note("fact", "Lives in Berlin")
        assert [each.text for each in await ann.memories(about="sinead")] == ["Lives in Cork"]
        assert [each.about for each in await ann.memories(about="TOM")] == ["Tom"]
        assert {each.about for each in await ann.memories()} == {"Tom", "Sinéad", None}


async def test_what_another_person_says_about_themselves_is_about_them() -> None:
    async with connect(embedder=LocalEmbedder(ranker=False)) as memory:
        chat = memory.user("ann", thread="family")
        text = "I moved to Lisbon in May and work as a nurse at the Santa Maria hospital now."
        await chat.add("user", text, at=THURSDAY, author="bob", name="Bob")
        await memory.upkeep()
        known = await chat.memories()
    assert {each.about for each in known} == {"bob"}
