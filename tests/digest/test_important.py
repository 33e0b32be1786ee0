"""Summaries state the important memories of what they cover, with speaker and date, at every level."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from aforesaid.digest.sources import ImportantMemory, _is_about, with_important
from aforesaid.domain.memory import MemoryDraft
from aforesaid.memory import Memory, UserMemory
from aforesaid.store.memories import AddMemory
from digesting import Scribe, remembering

DAY = datetime(2026, 3, 3, 9, 0, tzinfo=UTC)
PROFILE = {"summaries": "tree", "tree_turns": 4, "tree_level": 2, "tree_active": 2, "extract": False}
ALLERGY = "Ann is allergic to penicillin."


async def talk_for_days(memory: Memory, ann: UserMemory) -> list[int]:
    """Let Ann talk until summaries of summaries are summarised; return the levels of the active summaries."""
    for day in range(8):
        at = DAY + timedelta(days=day)
        if day == 0:
            told = await ann.add("user", "Doctors must not give me penicillin, it nearly killed me.", name="Ann", at=at)
            await ann.note("fact", ALLERGY, importance=10, source=told.message)
            trivial = await ann.add("user", "I had toast.", name="Ann", at=at)
            await ann.note("fact", "Ann had toast for breakfast.", importance=2, source=trivial.message)
            await ann.add("assistant", "I see.", at=at)
        for number in range(4):
            text = f"In house {day}-{number} the architect Meyer planned {number} rooms with a view of lake {day}."
            await ann.add("user", f"{text} The builders from Bremen began on floor {number}.", name="Ann", at=at)
            await ann.add("assistant", f"So lake {day} can be seen from {number} rooms of Meyer.", at=at)
        await memory.upkeep()
    return [summary.level for summary in await ann.summaries()]


@pytest.mark.parametrize("with_model", [True, False])
async def test_an_important_memory_survives_being_folded_twice(location: str, *, with_model: bool) -> None:
    scribe = Scribe() if with_model else None
    async with remembering(location, PROFILE, chat=scribe) as memory:
        ann = memory.user("ann")
        assert max(await talk_for_days(memory, ann)) >= 3
        every = await ann.summaries(active=None)
        covering = [summary for summary in every if summary.first == 1]
        assert {summary.level for summary in covering} >= {1, 2, 3}
        for summary in covering:
            (line,) = (line for line in summary.text.splitlines() if ALLERGY in line)
            assert line.startswith("Ann (2026-03-03): "), f"level {summary.level}"
            assert "toast" not in summary.text or not with_model
            assert len(summary.text) <= memory._services.profile.summary_characters
        assert not any(ALLERGY in summary.text for summary in every if summary.first > 1)
        if scribe is not None:
            shown = [text for _, text in scribe.asked if "<important>" in text]
            assert len(shown) == len(covering)
            assert all(f"<important>\nAnn (2026-03-03): {ALLERGY}\n</important>" in text for text in shown)


def known(text: str, importance: int = 8) -> ImportantMemory:
    return ImportantMemory("Ann", date(2026, 3, 3), text, importance)


def test_what_a_summary_states_already_is_not_added() -> None:
    text = "Ann told the assistant on 2026-03-03 that penicillin is something she is allergic to."
    assert with_important(text, [known(ALLERGY)], 500, lambda _: "") == text


def test_a_memory_that_quotes_its_speaker_names_them_once() -> None:
    quote = ImportantMemory("Kes", date(2025, 3, 4), 'Kes: "Raids stay on Tuesday."', 8)
    assert quote.line == 'Kes (2025-03-04): "Raids stay on Tuesday."'
    answer = ImportantMemory("Pixel", date(2025, 4, 15), 'Pixel: "Why?" OldTom: "The eye is operated on in June."', 8)
    assert answer.line == 'Pixel (2025-04-15): "Why?" OldTom: "The eye is operated on in June."'


def test_room_is_made_for_what_is_missing_and_the_limit_holds() -> None:
    long = "The house has rooms. " * 20

    def shorten(room: int) -> str:
        return long[:room]

    text = with_important(long, [known(ALLERGY), known("Ann's father is called Ole.")], 300, shorten)
    assert text.splitlines()[1:] == [
        f"Ann (2026-03-03): {ALLERGY}",
        "Ann (2026-03-03): Ann's father is called Ole.",
    ]
    assert len(text) <= 300


def test_what_was_cut_to_make_room_is_added_too() -> None:
    text = f"{'The house has rooms. ' * 12}Ole is the father of Ann."
    ole = known("Ann's father is called Ole.")
    made = with_important(text, [known(ALLERGY), ole], len(text), lambda room: text[:room])
    assert ole.line in made.splitlines()
    assert len(made) <= len(text)


def test_of_too_many_the_most_important_are_added() -> None:
    many = [known(f"Ann keeps {number} different bees in hive {number}.", number % 10 + 1) for number in range(20)]
    text = with_important("The garden is large.", many, 400, lambda _: "")
    lines = text.splitlines()[1:]
    assert 0 < sum(len(line) + 1 for line in lines) <= 200
    assert {int(line.split(" different")[0].rsplit(" ", 1)[1]) % 10 for line in lines} == {9, 8}


@pytest.mark.defect("M12")
async def test_a_value_is_stated_in_the_words_in_which_it_was_told_at_its_place_in_time() -> None:
    said = (
        "The architect Meyer planned the house in Timbuktu.",
        "Doctors must know that I am allergic to penicillin.",
        "Asthma.",
        "The builders from Bremen began on the second floor.",
    )
    async with remembering(":memory:", {**PROFILE, "tree_turns": 50}) as memory:
        ann = memory.user("ann")
        matters = {1: ("allergy", "penicillin"), 2: ("condition", "Asthma"), 3: ("employer", "Bremen")}
        for number, text in enumerate(said):
            stored = await ann.add("user", text, name="Ann", at=DAY + timedelta(days=number))
            if number in matters:
                matter, value = matters[number]
                draft = MemoryDraft(
                    ann.scope,
                    "fact",
                    f"Ann: {matter} {value}",
                    10,
                    sources=(stored.message.seq,),
                    extractor="values/1",
                    confidence=0.9,
                    matter=matter,
                    value=value,
                )
                await memory.store.apply([AddMemory(draft)])
        (made,) = await ann.summarize()
    lines = made.text.splitlines()
    assert f"Ann (2026-03-04): {said[1]}" in lines
    assert not any(text in made.text for text in ("allergy penicillin", "condition Asthma", "employer"))
    assert lines == sorted(lines, key=lambda line: line[5:15])


@pytest.mark.defect("M12")
def test_what_two_memories_say_in_the_same_words_is_added_once() -> None:
    both = [known("I am allergic to hazelnuts.", 9), known("I am allergic to hazelnuts. Walnuts are fine.", 8)]
    text = with_important("The garden is large.", both, 400, lambda _: "")
    assert text.count("allergic") == 1
    # A shorter summary may tell it after all.
    shortened = "Ann (2026-03-01): I am allergic to hazelnuts. Walnuts are fine."
    text = with_important("The garden is large. " * 16, both, 350, lambda _: shortened)
    assert text.count("allergic") == 1


def test_a_line_of_a_model_is_not_taken_for_what_does_not_hold() -> None:
    assert not _is_about("Ann moved to Weimar.", "I live in Bremen.")
    assert _is_about("Bob (2026-03-01): Where do you live? – Ann: I live in Bremen.", "Hi! I live in Bremen.")
    assert not _is_about("Ann: I live in Bremen. – Bob: Since when? – Ann: Since May.", "I live in Bremen.")
