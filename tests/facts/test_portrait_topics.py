"""A portrait that a person reads: what is known, under headings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from facts.talking import connect


async def test_what_is_known_is_sorted_by_topic() -> None:
    soon, lately = datetime.now(UTC) + timedelta(days=3), datetime.now(UTC) - timedelta(days=3)
    async with connect() as memory:
        ann = memory.user("ann")
        await ann.note("fact", "Ann is 34 years old")
        await ann.note("relationship", "Levin is Ann's brother")
        await ann.note("fact", "Works as a nurse", about="Carol")
        await ann.note("fact", "Ann is allergic to peanuts")
        await ann.note("fact", "Ann lives in a small house in Cork")
        await ann.note("fact", "Ann arbeitet in einem Büro")
        await ann.note("preference", "Ann prefers tea over coffee")
        await ann.note("instruction", "Always answers in metric units")
        await ann.note("event", "Ann sold the car", when=lately)
        await ann.note("schedule", "Dentist", when=soon)
        await ann.note("event", "Ann finished school", when="2010-06-30")
        await ann.note("reminder", "Call mum", when=soon)
        portrait = await ann.portrait()
    assert portrait is not None
    assert portrait.splitlines() == [
        "Who:",
        "Ann is 34 years old",
        "Family and friends:",
        "Levin is Ann's brother",
        "Health:",
        "Ann is allergic to peanuts",
        "Home:",
        "Ann lives in a small house in Cork",
        "Work and studies:",
        "Ann arbeitet in einem Büro",
        "Likes and dislikes:",
        "Ann prefers tea over coffee",
        "Wishes:",
        "Always answers in metric units",
        "Now:",
        "Ann sold the car",
        "Coming up:",
        "Dentist",
        "What happened:",
        "Ann finished school",
    ]


async def test_a_few_facts_have_no_headings() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        await ann.note("preference", "Ann prefers tea over coffee")
        await ann.note("fact", "Ann is allergic to peanuts")
        assert await ann.portrait() == "Ann is allergic to peanuts\nAnn prefers tea over coffee"


async def test_contexts_have_the_same_lines_by_importance() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        for number in range(1, 10):
            await ann.note("preference" if number % 2 else "fact", f"Ann knows thing {number}", importance=number)
        context = await ann.context("hello", 4_000)
    lines = [item.text for item in context.items if item.section in {"portrait", "memories"}]
    assert not any(line.endswith(":") for line in lines)
    assert len(lines) == 9
