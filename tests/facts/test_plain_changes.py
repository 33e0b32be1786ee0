"""Plain statements that a later message makes outdated, by the vectors of the built-in encoder, without a model."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from aforesaid.domain.memory import ENDED
from aforesaid.models.embed import LocalEmbedder
from facts.talking import THURSDAY, connect, say, texts

HELD_OUT = Path(__file__).with_name("changes_held_out.txt")
BESIDE = ("My brother Peter is a pilot.", "I hate mushrooms.", "We have a cat called Luna.")


@pytest.fixture
async def encoder() -> LocalEmbedder:
    return LocalEmbedder(ranker=False)


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        ("I live in Leeds.", "We moved to York last month.", False),
        ("I am vegetarian.", "I eat meat again.", True),
        ("I drive a red Skoda.", "I sold the Skoda.", True),
        ("My boyfriend is called Tom.", "Tom and I broke up.", True),
        ("I work at Siemens.", "I work at Bosch now.", False),
        ("The choir practice is on Tuesdays.", "The choir practice is on Thursdays now.", False),
        ("I play tennis.", "I no longer play tennis.", True),
        ("Ich wohne in Berlin.", "Ich bin nach Hamburg gezogen.", False),
        ("J'habite à Lyon.", "J'habite maintenant à Nantes.", False),
    ],
)
async def test_a_plain_change_supersedes_what_it_changes_and_nothing_else(
    encoder: LocalEmbedder, before: str, after: str, *, ends: bool
) -> None:
    """What is over is no longer true, and nothing comes in its place."""
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, *BESIDE[:2], before, BESIDE[2])
        await memory.upkeep()
        known = set(await texts(user))
        await say(user, after, at=THURSDAY + timedelta(days=30))
        await memory.upkeep()
        said = {message.seq: message.text for message in await user.history()}
        past = [each for each in await user.memories(active=None) if each.state in {"superseded", "expired"}]
        new = [said[max(each.sources)] for each in await user.memories() if each.text not in known]
    assert [(said[min(each.sources)], each.reason) for each in past] == [(before, ENDED if ends else "")]
    assert new == ([] if ends else [after])


async def test_a_change_of_what_is_not_known_is_not_remembered_for_that(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, *BESIDE, "The band split up.", "Tom and I broke up.")
        await memory.upkeep()
        assert not any("band" in text or "broke up" in text for text in await texts(user))
        assert await texts(user, state="superseded") == []


async def test_replies_alone_are_read_without_an_error(encoder: LocalEmbedder) -> None:
    """Background work can come between a question and its reply, which is then the only message to read."""
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "I live in Leeds.")
        await memory.upkeep()
        await user.add("assistant", "A lovely town.")
        report = await memory.upkeep()
        assert report.error is None
        await say(user, "We moved to York last month.")
        await memory.upkeep()
        assert await texts(user, state="superseded") == ["ann: Lives in Leeds"]


class Block(NamedTuple):
    """A statement, what makes it outdated, and what is only near it."""

    before: str
    changes: list[str]
    near: list[str]


def held_out(language: str) -> list[Block]:
    """Return the blocks of a language that nothing was trained on."""
    found: list[Block] = []
    spoken = ""
    for line in HELD_OUT.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "==":
            spoken = rest
        elif spoken != language or not line or mark in {"%", "#"}:
            continue
        elif mark in {">", "="}:
            (found[-1].changes if mark == ">" else found[-1].near).append(rest)
        else:
            found.append(Block(line, [], []))
    return found


async def test_most_changes_that_nothing_was_trained_on_are_settled(encoder: LocalEmbedder) -> None:
    blocks = [block for language in ("en", "de", "fr", "zh") for block in held_out(language)]
    noticed = settled = misled = compared = 0
    async with connect(embedder=encoder) as memory:
        for number, block in enumerate(blocks):
            for kind, later in (("change", block.changes[0]), ("near", block.near[0])):
                user = memory.user(f"{kind} {number}")
                await say(user, *BESIDE, block.before)
                await say(user, later, at=THURSDAY + timedelta(days=30))
        await memory.upkeep()
        for number, block in enumerate(blocks):
            for kind, later in (("change", block.changes[0]), ("near", block.near[0])):
                user = memory.user(f"{kind} {number}")
                said = {message.text: message.seq for message in await user.history()}
                known = await user.memories(active=None)
                old = [each for each in known if said[block.before] in each.sources]
                new = [each for each in known if said[later] in each.sources and each.state == "active"]
                # A statement may tell several things, of which one changes.
                gone = any(each.state in {"superseded", "expired"} for each in old)
                if kind == "near":
                    compared += bool(old)
                    misled += gone
                elif old and (new or gone):
                    noticed += 1
                    settled += gone
    assert noticed >= 0.5 * len(blocks)
    assert settled >= 0.6 * noticed
    assert misled <= 0.25 * compared
