"""What happened in a user's life, in order, and the people around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.domain.checks import Kind
from aforesaid.domain.memory import BY_HAND, CATEGORY_OF, Event, MemoryDraft, MemoryRecord, Superseded
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.embed import LocalEmbedder
from aforesaid.store.memories import AddMemory
from facts.talking import connect, say

SAID: list[tuple[str, str, Kind, str | None, str | None]] = [
    ("03-05", "My sister Sinéad lives in Cork and works as a nurse.", "fact", None, "Sinéad"),
    ("04-02", "We finally ordered the new kitchen today, it cost 9,000 euros.", "event", "04-02", None),
    ("04-20", "The electrician came on 18 April to move the sockets in the kitchen.", "event", "04-18", None),
    ("05-03", "On 2 May the kitchen was delivered, but the worktop was scratched.", "event", "05-02", None),
    ("05-11", "Sinéad had her baby on 9 May! A boy called Finn.", "event", "05-09", None),
    ("05-20", "Yesterday the new worktop was fitted and the kitchen is finished.", "event", "05-19", None),
    ("06-01", "I have a dentist appointment on 12 June at 9am.", "schedule", "06-12", None),
    ("06-02", "My boss Karen wants me to lead the Lisbon project from July.", "event", "07-01", "Karen"),
    ("06-04", "Please always answer in metric units.", "instruction", None, None),
]
"""When something was said, what, its kind, when it happened, and whom it is about."""
ASKED = datetime(2026, 6, 10, 12, tzinfo=UTC)


def noon(day: str) -> datetime:
    return datetime.fromisoformat(f"2026-{day}T12:00:00+00:00")


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    """A memory of a few months of talk."""
    async with connect(extract=False) as opened:
        ann = opened.user("ann")
        for said, text, kind, happened, about in SAID:
            message = (await ann.add("user", text, at=noon(said))).message
            await ann.add("assistant", "I see.", at=noon(said) + timedelta(minutes=1))
            start = None if happened is None else noon(happened)
            draft = MemoryDraft(
                ann.scope,
                CATEGORY_OF[kind],
                f'ann: "{text}"',
                sources=(message.seq,),
                event=None if start is None else Event(start, start + timedelta(hours=1), timed=True),
                expires_at=noon("07-20") if kind == "schedule" else None,
                valid_from=noon(said),
                kind=kind,
                about=about,
            )
            await opened.store.apply([AddMemory(draft)])
        yield opened


@pytest.fixture
def ann(memory: Memory) -> UserMemory:
    return memory.user("ann")


def days(found: list[MemoryRecord]) -> list[str]:
    return [each.happened.start.strftime("%m-%d") for each in found if each.happened is not None]


async def test_the_timeline_has_what_happened_in_order_with_its_sources(ann: UserMemory) -> None:
    found = await ann.timeline()
    assert days(found) == ["04-02", "04-18", "05-02", "05-09", "05-19", "06-12", "07-01"]
    said = {message.seq: message.text for message in await ann.history()}
    assert all("kitchen" in said[each.sources[0]] for each in found[:3])


async def test_an_appointment_stays_on_the_timeline_when_it_has_expired(ann: UserMemory) -> None:
    (visit,) = await ann.timeline(query="dentist")
    assert (visit.kind, visit.expires_at is not None) == ("schedule", True)
    assert visit.expires_at is not None
    assert visit.expires_at < datetime.now(UTC)


async def test_the_timeline_can_be_limited_in_time_and_number(ann: UserMemory) -> None:
    may, june = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    assert days(await ann.timeline(may, june)) == ["05-02", "05-09", "05-19"]
    assert days(await ann.timeline(since=may, limit=1)) == ["05-02"]
    assert days(await ann.timeline(until=june, limit=1)) == ["05-19"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What happened in May?", ["05-02", "05-09", "05-19"]),
        ("Was ist im Mai passiert?", ["05-02", "05-09", "05-19"]),
        ("How did the kitchen project go?", ["04-02", "04-18", "05-02", "05-19"]),
        ("What came first, the dentist or the baby?", ["05-09", "06-12"]),
    ],
)
async def test_a_question_about_the_course_of_events_gets_its_part_of_the_timeline(
    ann: UserMemory, question: str, answer: list[str]
) -> None:
    assert days(await ann.timeline(query=question, at=ASKED)) == answer


async def test_what_was_forgotten_or_deactivated_did_not_happen(ann: UserMemory) -> None:
    (baby,) = await ann.timeline(query="the baby", at=ASKED)
    await ann.deactivate(baby.id)
    assert "05-09" not in days(await ann.timeline())
    await ann.reactivate(baby.id)
    assert "05-09" in days(await ann.timeline())


@pytest.mark.parametrize(("moved_on", "shown"), [("06-01", ["06-19"]), ("06-13", ["06-12", "06-19"])])
async def test_an_event_that_was_moved_is_shown_once_and_one_that_was_over_stays(
    moved_on: str, shown: list[str]
) -> None:
    async with connect(extract=False) as memory:
        ann = memory.user("ann")
        old: tuple[Superseded, ...] = ()
        for said, day in (("03-05", "06-12"), (moved_on, "06-19")):
            event = Event(noon(day), noon(day) + timedelta(hours=1), timed=True)
            draft = MemoryDraft(
                ann.scope, "fact", f"The wedding is on {day}.", event=event, valid_from=noon(said), kind="event"
            )
            stored = (await memory.store.apply([AddMemory(draft, "system", old)])).memory
            old = (Superseded(stored.id, stored.revision),)
        assert days(await ann.timeline()) == shown


async def test_people_are_known_by_name_and_relation_with_what_was_said_about_them(ann: UserMemory) -> None:
    people = {person.name: person for person in await ann.people()}
    assert {name: person.relation for name, person in people.items()} == {
        "Sinéad": "sister",
        "Karen": "boss",
        "Finn": None,
    }
    sister = people["Sinéad"]
    assert [sister.first_mentioned.month, sister.last_mentioned.month] == [3, 5]
    assert "Cork" in sister.memories[0].text, "what is about a person comes first"
    assert len(sister.memories) == 2


@pytest.mark.parametrize("asked", ["Sinéad", "sinead", "my sister", "Schwester"])
async def test_one_person_is_found_by_any_name(ann: UserMemory, asked: str) -> None:
    assert [person.name for person in await ann.people(asked)] == ["Sinéad"]


async def test_nobody_is_found_who_was_not_mentioned(ann: UserMemory) -> None:
    assert await ann.people("Zoe") == []
    assert await ann.timeline(about="Zoe") == []


async def test_the_timeline_of_a_person_is_what_mentions_them(ann: UserMemory) -> None:
    assert days(await ann.timeline(about="Sinéad")) == ["05-09"]


async def test_other_users_and_spaces_share_nothing(memory: Memory) -> None:
    for stranger in (memory.user("bob"), memory.user("ann", space="other")):
        assert await stranger.timeline() == []
        assert await stranger.people() == []


async def test_somebody_who_is_named_with_and_without_a_title_is_one_person(memory: Memory) -> None:
    eve = memory.user("eve")
    await eve.note("fact", "I called Senhor Tavares about the keys.")
    await eve.note("fact", "Tavares said that the rent goes up.")
    (tavares,) = await eve.people()
    assert (tavares.name, len(tavares.memories)) == ("Senhor Tavares", 2)


async def test_a_sister_without_a_name_is_the_only_sister_whose_name_is_known(memory: Memory) -> None:
    eve = memory.user("eve")
    await eve.note("fact", "My sister plays chess.")
    await eve.note("fact", "My sister Carol lives in Rome.")
    (carol,) = await eve.people()
    assert (carol.name, carol.relation, len(carol.memories)) == ("Carol", "sister", 2)


async def test_another_speaker_is_one_of_the_people_and_has_their_display_name() -> None:
    async with connect(embedder=LocalEmbedder(ranker=False)) as memory:
        chat = memory.user("ann", thread="family")
        text = "I moved to Lisbon in May and work as a nurse at the Santa Maria hospital now."
        await chat.add("user", text, at=ASKED, author="u-7", name="Bob")
        await memory.upkeep()
        (bob,) = await chat.people()
    assert (bob.name, bob.id) == ("Bob", "u-7")


async def test_the_id_of_a_stranger_in_a_memory_does_not_tell_their_display_name() -> None:
    async with connect() as memory:
        await memory.user("u-77").add("user", "hi", name="Sibyl Vane")
        eve = memory.user("eve")
        await eve.note("fact", "likes tea", about="u-77")
        await say(eve, "My dog is called Rex.")
        await memory.upkeep()
        extracted = next(each for each in await eve.memories() if each.sources)
        assert extracted.extractor != BY_HAND
        await eve.edit_memory(extracted.id, about="u-77")
        people = {person.name: person for person in await eve.people()}
    assert people["u-77"].id is None
    assert len(people["u-77"].memories) == 2
    assert not any("Sibyl" in name for name in people)


async def test_a_context_has_the_part_of_the_timeline_that_the_question_is_about(ann: UserMemory) -> None:
    context = await ann.context("How did the kitchen project go?", 1_000, at=ASKED, without=["recent", "snippets"])
    lines = [item.text for item in context.items if item.section == "memories"]
    assert [line.split("]")[0] for line in lines[:4]] == [
        "[Thu 2 Apr 2026",
        "[Sat 18 Apr 2026",
        "[Sat 2 May 2026",
        "[Tue 19 May 2026",
    ]
    assert any(item.section == "instructions" and "metric" in item.text for item in context.items)


async def test_a_context_for_another_question_is_not_dated(ann: UserMemory) -> None:
    context = await ann.context("Where does my sister live?", 1_000, at=ASKED, without=["recent", "snippets"])
    assert not any(item.text.startswith("[Thu") for item in context.items)
