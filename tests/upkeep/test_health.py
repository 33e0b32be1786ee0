"""How the memory is doing: as a whole, and for each user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component
from aforesaid.errors import ModelUnavailable, StoreFull, StoreUnavailable
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.chat import Said
from aforesaid.store.messages import UserLedger
from aforesaid.store.operations import Change
from aforesaid.testing import Fault, ScriptedModel, faults
from digesting import MovingClock, Scribe, remembering
from intercepting import Read, intercept


def changes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "aforesaid.health"]


@pytest.mark.req("C6", "C17")
async def test_every_part_has_a_status_a_time_and_its_issues(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        await memory.user("ann").add("user", "hello")
        await memory.upkeep()
        health = await memory.health()
    assert [part.name for part in health.components][:4] == ["store", "embedder", "memories", "summaries"]
    assert {part.status for part in health.components} == {"active"}
    assert all(part.health_check == health.checked_at for part in health.components)
    store = health.component("store")
    assert store.last_update is not None
    assert (store.message_count, store.issues) == (1, ())
    assert health.component("embedder").waiting == 0
    assert health.component("summaries").waiting == 0
    assert health.status == "active"
    assert health.alerts == ()


@pytest.mark.req("C17")
async def test_response_times_update_frequency_and_error_rates_are_told(location: str) -> None:
    async with aforesaid.connect(location) as memory:
        for number in range(5):
            await memory.user("ann").add("user", f"hello {number}")
        health = await memory.health()
        added = next(operation for operation in health.operations if operation.name == "add")
        assert (added.calls, added.failed, added.error_rate) == (5, 0, 0.0)
        assert added.per_minute > 0
        assert added.mean_seconds > 0
        assert health.storage is not None
        assert health.storage.messages == 5
        assert health.storage.bytes > 0
        on_a_disk_of_this_machine = not location.startswith((":memory:", "postgres"))
        assert (health.storage.free is not None) == on_a_disk_of_this_machine


@pytest.mark.req("C6", "C17", "D13")
async def test_a_store_that_fails_is_told_once_and_becomes_an_alert(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Nothing in the background: the embedder would fail too if it happened to write meanwhile, until it tries again.
    settings = {"alerts.failing_seconds": 0, "alerts.least_calls": 3, "background": False}
    async with aforesaid.connect(location, settings=settings) as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        good = await memory.store.health()
        apply, health_of = memory.store.apply, memory.store.health

        async def full(changes: Sequence[Change], *_: object, **__: object) -> Receipt:
            raise StoreFull(f"no room is left on the device for {len(changes)} changes")

        async def bad() -> Component:
            return Component("store", "failing", good.last_update, ("no room is left",), good.facts)

        memory.store.apply, memory.store.health = full, bad  # type: ignore[method-assign]
        for _ in range(3):
            with pytest.raises(StoreFull):
                await ann.add("user", "hello")
        health = await memory.health()
        assert (await memory.health()).alerts == health.alerts, "the same ones, since the same moment"
        assert health.status == "failing"
        assert {(alert.kind, alert.about) for alert in health.alerts} == {("failure", "store"), ("errors", "add")}
        memory.store.apply, memory.store.health = apply, health_of  # type: ignore[method-assign]
        assert (await memory.health()).status == "active"
    store = [line for line in changes(caplog) if "store" in line]
    assert store == [
        "store was active and is failing now: no room is left",
        "alert (failure): store is failing: no room is left",
        "store was failing and is active now",
        "cleared (failure): store is failing: no room is left",
    ]


@pytest.mark.req("C17")
async def test_it_looks_by_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"alerts.interval_seconds": 0.1, "alerts.storage_bytes": 1}
    with caplog.at_level(logging.INFO, "aforesaid"):
        async with aforesaid.connect(tmp_path / "memory.db", settings=settings) as memory:
            await memory.user("ann").add("user", "hello")
            while not any(record.name == "aforesaid.performance" for record in caplog.records):
                await asyncio.sleep(0.02)
            for _ in range(3):
                await memory.health()
    assert len([line for line in changes(caplog) if line.startswith("alert (capacity): the store has ")]) == 1
    lines = [record.getMessage() for record in caplog.records if record.name == "aforesaid.performance"]
    assert any(line.startswith("add: 1 calls (") for line in lines)


async def test_a_look_that_fails_does_not_end_the_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"alerts.interval_seconds": 0.1}
    async with aforesaid.connect(tmp_path / "memory.db", settings=settings) as memory:
        looked = asyncio.Event()
        health_of, told = memory.store.health, 0

        async def broken() -> Component:
            nonlocal told
            told += 1
            if told == 1:
                raise ZeroDivisionError
            looked.set()
            return await health_of()

        memory.store.health = broken  # type: ignore[method-assign]
        await memory.user("ann").add("user", "hello")
        await looked.wait()
    assert changes(caplog) == ["health watch failed; next try in 0.1 s"]


@pytest.mark.req("C17", "D7")
async def test_the_breaker_of_an_embedder_is_shown(tmp_path: Path) -> None:
    async with ScriptedModel() as model:
        embedder = f"tiny@{model.base_url}"
        settings = {"resilience.failures": 1, "resilience.attempts": 1, "models.embed.timeout": 5}
        async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder, settings=settings) as memory:
            assert dict((await memory.health()).component("embedder").facts)["server"] == "not called yet"
            model.stop()
            await memory.user("ann").add("user", "hello")
            await memory.upkeep()
            part = (await memory.health()).component("embedder")
            assert part.status == "failing"
            assert part.waiting == 1
            assert dict(part.facts)["server"].startswith(("open", "half-open"))


def strike(model: ScriptedModel, fault: Fault | None) -> None:
    if fault is None:
        model.stop()
    else:
        model.fail(fault)


def repair(model: ScriptedModel) -> None:
    model.start()
    model.heal()


FAILING = pytest.mark.parametrize(
    "fault", [faults.ServerError(503), None, faults.NeverAnswers()], ids=["503", "refuses", "hangs"]
)
QUICKLY = {"background": False, "resilience.attempts": 1, "models.chat.timeout": 2, "models.embed.timeout": 2}


@pytest.mark.req("G24")
@pytest.mark.defect("S5")
@FAILING
async def test_a_model_fails_from_its_first_failed_call_until_it_answers(tmp_path: Path, fault: Fault | None) -> None:
    async with ScriptedModel() as model:
        settings = {**QUICKLY, "providers.local.base_url": model.base_url, "models.chat.chain": "local:tiny"}
        async with aforesaid.connect(tmp_path / "memory.db", embedder="none", settings=settings) as memory:
            assert memory.models is not None
            strike(model, fault)
            with pytest.raises(ModelUnavailable):
                await memory.models.text("chat", [Said("user", "hello")])
            health = await memory.health()
            assert health.component("models").status == "failing"
            assert health.component("models").issues[0].startswith("local: local:tiny ")
            assert [(alert.kind, alert.about) for alert in health.alerts] == [("errors", "chat by local:tiny")]
            repair(model)
            await memory.models.text("chat", [Said("user", "hello")])
            health = await memory.health()
            assert (health.status, health.component("models").issues, health.alerts) == ("active", (), ())


@pytest.mark.req("G24")
@pytest.mark.defect("S5")
@FAILING
async def test_an_embedder_that_fails_a_search_is_failing_until_it_answers(tmp_path: Path, fault: Fault | None) -> None:
    async with ScriptedModel() as model:
        embedder = f"tiny@{model.base_url}"
        async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder, settings=QUICKLY) as memory:
            ann = memory.user("ann")
            await ann.add("user", "I moved to Berlin.")
            await memory.upkeep()
            strike(model, fault)
            assert await ann.search("Where is Berlin?"), "by words"
            health = await memory.health()
            assert health.component("embedder").status == "failing"
            assert "tiny" in health.component("embedder").issues[0]
            assert ("errors", "search_vector") in {(alert.kind, alert.about) for alert in health.alerts}
            repair(model)
            await ann.search("When did I move?")
            assert (await memory.health()).component("embedder").status == "active"


async def parts(user: UserMemory) -> dict[str, Component]:
    return {part.name: part for part in (await user.health()).components}


@pytest.mark.req("C3", "C6")
async def test_a_new_account_starts_with_four_empty_parts_and_a_baseline(location: str) -> None:
    async with remembering(location, "account") as memory:
        ann = memory.user("ann")
        health = await ann.health()
        assert health.status == "initializing"
        assert [(part.name, part.status, part.message_count, part.last_update) for part in health.components] == [
            ("short_term", "initializing", 0, None),
            ("mid_term", "initializing", 0, None),
            ("whole_history", "initializing", 0, None),
            ("history_context", "initializing", 0, None),
        ]
        assert all(part.health_check == health.checked_at for part in health.components)
        context = await ann.history_context()
        assert (context.covers, context.made_at) == (0, None)
        assert context.text


async def say(user: UserMemory, count: int) -> None:
    for number in range(count):
        await user.add("user" if number % 2 else "assistant", f"M{number} is about the garden.")


@pytest.mark.req("C6", "C17")
async def test_the_four_parts_of_an_account_count_their_messages(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    scribe.answers[:] = [{"summary": "Gardens.", "topics": [], "preferences": [], "style": "", "items": []}]
    async with remembering(location, "account", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 60)
        await memory.upkeep()
        found = await parts(ann)
        assert {name: part.message_count for name, part in found.items()} == {
            "short_term": 50,
            "mid_term": 10,
            "whole_history": 60,
            "history_context": 60,
        }
        assert {part.status for part in found.values()} == {"active"}
        assert all(part.last_update is not None for part in found.values())
        other = await parts(memory.user("bob"))
        assert {part.message_count for part in other.values()} == {0}, "nobody sees another's counts"


@pytest.mark.req("C6")
async def test_a_history_context_that_cannot_be_made_is_failing_and_says_why(location: str) -> None:
    scribe = Scribe()
    scribe.down = True
    async with remembering(location, "account", chat=scribe) as memory:
        ann = memory.user("ann")
        await say(ann, 50)
        await memory.upkeep()
        health = await ann.health()
        assert health.status == "failing"
        part = health.component("history_context")
        assert (part.status, part.issues) == ("failing", ("test:scribe does not answer",))
        assert health.component("short_term").status == "active", "the others go on"


@pytest.mark.parametrize("profile", ["archive", "companion", "session", "community", "default"])
async def test_other_profiles_have_a_history_summaries_and_memories(location: str, profile: str) -> None:
    async with remembering(location, profile) as memory:
        ann = memory.user("ann")
        assert (await ann.health()).status == "initializing"
        await ann.add("user", "hello")
        await ann.note("fact", "Likes tea.")
        found = await parts(ann)
        assert found["whole_history"].message_count == 1
        assert found["memories"].status == "active"
        assert (await ann.health()).status == "active"


async def failing_everywhere(memory: Memory, user: UserMemory) -> dict[str, Component]:
    async def gone(_: Read, question: object) -> None:
        raise StoreUnavailable(f"gone: {question}")

    intercept(memory.store, UserLedger, gone)
    return await parts(user)


@pytest.mark.req("C6")
@pytest.mark.parametrize("profile", ["account", "archive"])
async def test_where_the_store_does_not_answer_every_part_says_so(location: str, profile: str) -> None:
    async with remembering(location, profile) as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        found = await failing_everywhere(memory, ann)
        assert found
        for part in found.values():
            assert part.status == "failing"
            assert part.issues[0].startswith("the store does not answer: gone")


@pytest.mark.defect("U3")
async def test_the_backlog_of_the_embedder_is_a_count_also_where_numbers_are_missing(location: str) -> None:
    quiet = {"background": False}
    async with aforesaid.connect(location, settings=quiet) as memory:
        for number in range(20):
            await memory.user("ann").add("user", f"hello {number}")
        await memory.purge("ann")
        for number in range(5):
            await memory.user("bob").add("user", f"hello {number}")
        assert (await memory.health()).component("embedder").waiting == 5
