"""A model of 1.5 billion parameters, as people run at home, learns from an ordinary chat with an assistant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import aforesaid

NOON = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
SCRIPT = """Sure! Here it is:
```python
import os
for name in os.listdir("photos"):
    made = os.path.getmtime(name)
    os.rename(name, f"{made}.jpg")
```
It goes through the folder, reads when each photo was taken, and renames it. Make a copy of the folder first, so that
nothing is lost if two photos were taken at the same moment. Shall I explain how it works, line by line?"""
RECIPE = """How about a tomato risotto? Fry an onion in olive oil, add the rice, then chopped tomatoes and broth,
little by little, and stir for twenty minutes. At the end add the cheese, salt and pepper."""
CHAT = (
    ("Hi! I need some help today.", "Hello Ann! Of course. What can I do for you?"),
    (
        "First some news: I moved to Hamburg in January, to be closer to my parents.",
        "That sounds like a big step! Hamburg is a beautiful city, with its harbour and the Elbe. How do you like it?",
    ),
    (
        "It rains a lot. Can you write a small script that renames my photos by date?",
        SCRIPT,
    ),
    (
        "Thanks, that works! Now dinner. I'm allergic to peanuts, by the way.",
        "Thank you for telling me, I will keep peanuts out of it. What do you have at home?",
    ),
    (
        "Rice, tomatoes and a bit of cheese. What could I cook?",
        RECIPE,
    ),
    (
        "Great. My sister Lea is a doctor and has a dog called Bruno.",
        "How nice! Does Bruno like tomato risotto, too?",
    ),
    ("Haha, no. That was all, bye!", "Goodbye, Ann! Enjoy your dinner."),
)


@pytest.mark.defect("F5")
async def test_three_easy_facts_are_found_stand_alone_and_rest_on_the_right_messages(base_url: str) -> None:
    settings = {"providers.llama.base_url": base_url, "models.default": "llama:qwen", "models.extract.timeout": 600}
    async with aforesaid.connect(":memory:", profile={"summaries": "none"}, settings=settings) as memory:
        ann = memory.user("ann")
        at = NOON
        for asked, answered in CHAT:
            await ann.add("user", asked, name="Ann", at=at)
            await ann.add("assistant", answered, at=at + timedelta(seconds=20))
            at += timedelta(minutes=1)
        report = await memory.upkeep()
        assert report.error is None
        said = {message.seq: message.text for message in await ann.history()}
        known = await ann.memories()
    print(*(f"{each.kind} {each.importance}: {each.text} {each.sources} {each.extractor}" for each in known), sep="\n")  # noqa: T201
    for words, source in (("Hamburg", "moved to Hamburg"), ("peanut", "allergic to peanuts"), ("Lea", "sister Lea")):
        found = [each for each in known if words in each.text]
        assert found, f"nothing about {words}"
        for each in found:
            assert any(source in said[seq] for seq in each.sources), f"{each.text!r} rests on something else"
    assert any(each.extractor.startswith("extract/") for each in known)
    for each in known:
        assert "Ann" in each.text or "Lea" in each.text, f"{each.text!r} names nobody"
        assert len(each.sources) <= 2, f"{each.text!r} rests on {len(each.sources)} messages"
