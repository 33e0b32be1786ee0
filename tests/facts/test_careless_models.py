"""A model that answers carelessly cannot take away what it was not asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import aforesaid
from aforesaid.testing import ScriptedModel

PROFILE = {"summaries": "none", "extract": False}


def settings(model: ScriptedModel) -> Mapping[str, object]:
    return {"providers.local.base_url": model.base_url, "models.merge.chain": ["local:tiny"]}


async def test_forgetting_one_thing_does_not_forget_the_others(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile=PROFILE, embedder="none") as memory:
        for fact in ("I like tea", "I live in Oslo", "I have a dog"):
            await memory.user("ann").remember(fact)
    for careless in ({"facts": "", "found": True}, {"facts": "Ann is a pirate.", "found": True}):
        async with (
            ScriptedModel([careless] * 5) as model,
            aforesaid.connect(
                tmp_path / "memory.db", profile=PROFILE, embedder="none", settings=settings(model)
            ) as memory,
        ):
            ann = memory.user("ann")
            await ann.forget("tea")
            known = {memory.text for memory in await ann.memories()}
            assert any("Oslo" in text for text in known)
            assert any("dog" in text for text in known)
            assert "pirate" not in (await ann.facts())[-1].text


async def test_remembering_one_thing_does_not_replace_the_others(tmp_path: Path) -> None:
    async with (
        ScriptedModel(lambda _: {"facts": "Ann is a convicted pirate."}) as model,
        aforesaid.connect(tmp_path / "memory.db", profile=PROFILE, embedder="none", settings=settings(model)) as memory,
    ):
        ann = memory.user("ann")
        await ann.remember("I live in Oslo")
        await ann.remember("I have a dog")
        assert "Oslo" in (await ann.facts())[-1].text


async def test_many_can_tell_at_once(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile=PROFILE, embedder="none") as memory:
        ann = memory.user("ann")
        told = await asyncio.gather(*(ann.remember(f"I own object{number}") for number in range(12)))
        assert all(each.outcome == "stored" for each in told)
        text = (await ann.facts())[-1].text
        assert all(f"object{number}" in text for number in range(12))
