"""Questions about what the assistant said find its messages, in every language of the built-in encoder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pytest

import aforesaid
from aforesaid.errors import ModelError
from aforesaid.models import asked_role
from aforesaid.models.embed import LocalEmbedder

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
TALK: tuple[tuple[Literal["user", "assistant"], str], ...] = (
    ("user", "My bicycle has a crooked wheel, and the brakes squeak."),
    ("assistant", "I recommend tightening the spokes of the crooked wheel by a quarter turn."),
    ("user", "I tightened the wheel of the bicycle yesterday and took it to the park."),
    ("assistant", "Lovely. Did the brakes of the bicycle still squeak in the park?"),
)


class Shared(LocalEmbedder):
    """The real embedder, loaded once for all tests."""

    async def close(self) -> None:
        """Stay."""


ENCODER = Shared()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=ENCODER, settings={"background": False}) as opened:
        for number, (role, text) in enumerate(TALK):
            await opened.user("ann").add(role, text, at=NOON + timedelta(minutes=number))
        await opened.upkeep()
        yield opened


async def added(memory: aforesaid.Memory, question: str) -> dict[str, float]:
    """Return what the feature adds to each message, by text."""
    hits = await memory.user("ann").search(question, kinds=("message",), min_score=0)
    return {hit.text: dict(hit.parts).get("role", 0.0) for hit in hits}


@pytest.mark.parametrize(
    "question",
    [
        "What did you recommend against the crooked wheel?",
        "Was hast du mir gegen das krumme Rad empfohlen?",
        "Wat raadde je aan tegen het kromme wiel?",
        "Qu'est-ce que tu m'as conseillé pour la roue ?",
    ],
)
async def test_a_question_about_the_assistants_words_lifts_its_messages(
    memory: aforesaid.Memory, question: str
) -> None:
    found = await added(memory, question)
    assert found[TALK[1][1]] > 0
    assert found[TALK[0][1]] == found[TALK[2][1]] == 0


async def test_a_question_about_ones_own_words_lowers_the_assistants_messages(memory: aforesaid.Memory) -> None:
    found = await added(memory, "Where did I go with my bicycle yesterday?")
    assert found[TALK[1][1]] < 0


async def test_the_answer_of_the_assistant_comes_first(memory: aforesaid.Memory) -> None:
    hits = await memory.user("ann").search("What did you recommend for the wheel?", kinds=("message",), min_score=0)
    assert hits[0].text == TALK[1][1]


async def test_with_another_encoder_nothing_is_guessed(tmp_path: Path) -> None:
    settings = {"background": False}
    async with aforesaid.connect(tmp_path / "m.db", embedder="deterministic", settings=settings) as memory:
        for number, (role, text) in enumerate(TALK):
            await memory.user("ann").add(role, text, at=NOON + timedelta(minutes=number))
        await memory.upkeep()
        assert not any((await added(memory, "What did you recommend against the crooked wheel?")).values())


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_role, "_WEIGHTS", "0" * 64)
    asked_role.load_role_model.cache_clear()
    with pytest.raises(ModelError, match="not the ones expected"):
        asked_role.load_role_model()
    monkeypatch.undo()
    assert asked_role.load_role_model().vector.shape == (512,)
    assert len((files("aforesaid.models") / "asked_role.npz").read_bytes()) < 2_000
