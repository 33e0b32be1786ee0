"""A memory does what the configuration says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import aforesaid
from aforesaid.errors import InvalidInput
from aforesaid.store.people import Settings
from aforesaid.testing import ScriptedModel
from intercepting import Read, intercept


def test_store_profile_and_embedder_come_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFORESAID_EMBEDDER", raising=False)
    file = tmp_path / "aforesaid.toml"
    file.write_text('store = "here.db"\nprofile = "companion"\nembedder = "none"\n', encoding="utf-8")
    with aforesaid.open(settings=file) as memory:
        memory.user("ann").add("user", "hello")
        facts = {fact for part in memory.health().components for fact in part.facts}
    assert (tmp_path / "here.db").exists()
    assert ("model", "none") in facts


def test_what_is_passed_wins_over_what_is_configured(tmp_path: Path) -> None:
    settings = {"store": str(tmp_path / "configured.db")}
    with aforesaid.open(tmp_path / "passed.db", settings=settings) as memory:
        memory.user("ann").add("user", "hello")
    assert (tmp_path / "passed.db").exists()
    assert not (tmp_path / "configured.db").exists()


def test_a_wrong_setting_is_named_with_the_right_one() -> None:
    with pytest.raises(InvalidInput, match="did you mean"):
        aforesaid.open(":memory:", settings={"modles.default": "a:b"})


async def test_health_shows_the_state_of_each_provider(tmp_path: Path) -> None:
    async with ScriptedModel() as model:
        settings = {
            "providers.local.base_url": model.base_url,
            "models.default": "local:tiny",
            "resilience.failures": 1,
            "resilience.attempts": 1,
        }
        async with aforesaid.connect(tmp_path / "memory.db", settings=settings) as memory:
            part = next(part for part in (await memory.health()).components if part.name == "models")
            assert (part.status, dict(part.facts)) == ("active", {"local": "not called yet"})
            model.stop()
            assert memory.models is not None
            with pytest.raises(aforesaid.AforesaidError):
                await memory.models.text("chat", [])
            health = await memory.health()
            part = next(part for part in health.components if part.name == "models")
            assert health.status == part.status == "failing"
            assert "open" in dict(part.facts)["local"]


def test_without_a_model_health_says_so_and_is_well() -> None:
    with aforesaid.open(":memory:", embedder="none") as memory:
        part = next(part for part in memory.health().components if part.name == "models")
    assert part.status == "active"
    assert "without a model" in dict(part.facts)["providers"]


@pytest.mark.defect("U3")
async def test_a_setting_acts_at_once_though_the_old_ones_were_being_read(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none", settings={"background": False}) as memory:
        reading, changed = asyncio.Event(), asyncio.Event()

        async def slowly(read: Read, question: Settings) -> object:
            found = await read(question)
            reading.set()
            await changed.wait()
            return found

        intercept(memory.store, Settings, slowly)
        old = asyncio.create_task(memory.settings())
        await reading.wait()
        await memory.set("context_budget", 4_000)
        changed.set()
        assert await old == {}
        assert await memory.settings() == {"context_budget": 4_000}


async def test_without_the_client_for_models_rules_do_the_work_and_health_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.delitem(sys.modules, "openai", raising=False)
    monkeypatch.setattr("aforesaid.models.client.import_module", refuse)
    monkeypatch.setattr("aforesaid.models.client.find_spec", lambda _: None)
    settings = {"providers.local.base_url": "http://127.0.0.1:9/v1", "models.default": "local:tiny"}
    async with aforesaid.connect(tmp_path / "memory.db", settings=settings) as memory:
        ann = memory.user("ann")
        await ann.add("user", "I live in Leeds.")
        await ann.add("assistant", "A fine town.")
        assert (await memory.upkeep()).error is None
        assert [each.text for each in await ann.memories()] == ["ann lives in Leeds."]
        models = (await memory.health()).component("models")
    assert models.status == "failing"
    assert models.issues[0].startswith("calling a model needs the OpenAI client; ")
