"""What was said right after a hit may be the answer, so it is offered too, after the better hits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aforesaid import Context, Memory, connect

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
CHAT = (
    "Did the children see the memorial in Verdun?",
    "They did.",
    "All of them went silent.",
    "And the weather?",
    "Grey.",
)


async def context(path: Path, profile: dict[str, Any]) -> Context:
    async with connect(path / "memory.db", profile=profile, embedder="none") as memory:
        await talk(memory)
        return await memory.user("ann").context("What was Verdun like?", 1_000, at=NOON + timedelta(days=1))


async def talk(memory: Memory) -> None:
    for number, text in enumerate((*CHAT, *(f"filler {number}" for number in range(5)))):
        await memory.user("ann").add("user", text, at=NOON + timedelta(minutes=number))


def found(context: Context) -> list[str]:
    return [item.text.partition(": ")[2] for item in context.items if item.section == "snippets"]


async def test_the_next_two_messages_after_a_hit_are_offered(tmp_path: Path) -> None:
    profile = {"extends": "default", "context": {"recent": 2, "snippets": 1}}
    assert found(await context(tmp_path, profile)) == list(CHAT[:3])


@pytest.mark.parametrize("profile", ["archive", "community", "account"])
async def test_profiles_that_name_how_many_hits_they_show_show_no_more(profile: str, tmp_path: Path) -> None:
    limited = {"extends": profile, "context": {"recent": 2, "snippets": 1, "similarity": 0, "window": 0}}
    assert found(await context(tmp_path, limited)) == [CHAT[0]]


async def test_the_message_to_be_answered_and_later_ones_do_not_follow_a_hit(tmp_path: Path) -> None:
    profile = {"extends": "default", "context": {"recent": 1, "snippets": 1}}
    async with connect(tmp_path / "memory.db", profile=profile, embedder="none") as memory:
        ann = memory.user("ann")
        for number, text in enumerate(CHAT):
            await ann.add("user", text, at=NOON + timedelta(minutes=number))
        asked = (await ann.history())[2]
        made = await ann.context(f"Verdun! {asked.text}", 1_000, at=NOON + timedelta(days=1), answers=asked)
        shown = [item.text for item in made.items if item.section in {"snippets", "recent"}]
        assert not any(text.endswith((CHAT[2], CHAT[3], CHAT[4])) for text in shown)
