"""When no model answers: nothing is lost, everybody is told, and it is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelUnavailable
from aforesaid.models.chat import Reply, Said
from aforesaid.settings import Operation, Route, Settings
from aforesaid.store.messages import UserLedger
from aforesaid.testing import ScriptedModel, faults
from digesting import MovingClock, Scribe, remembering, talk

ANN = Scope.of("ann")
OFFLINE = Settings(routes={"summarize": Route(without=True), "day": Route(without=True)})


@pytest.mark.req("A13")
async def test_a_failed_summary_leaves_everything_as_it_was_is_told_and_is_made_later(location: str) -> None:
    scribe = Scribe()
    async with remembering(location, "archive", chat=scribe) as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        scribe.down = True
        await talk(ann, 10)
        report = await memory.upkeep()
        assert (report.summarised, report.error) == (0, "test:scribe does not answer")
        assert all(message.active for message in await ann.history())
        assert (await memory.store.read(UserLedger(ANN))).open_turns == 10
        health = await memory.health()
        (summaries,) = [part for part in health.components if part.name == "summaries"]
        assert (health.status, summaries.status) == ("failing", "failing")
        assert summaries.issues == ("test:scribe does not answer",)
        assert dict(summaries.facts)["failing"] == "1 conversation"
        receipt = await ann.add("user", "Hello?")
        assert receipt.notices == (
            "a summary could not be made and is tried again later; nothing is lost: test:scribe does not answer",
        )
        assert (await bob.add("user", "Hello!")).notices == (), "nobody else is bothered"
        scribe.down = False
        await ann.add("assistant", "Hello.")
        assert (await memory.upkeep()).summarised == 1
        (summary,) = await ann.summaries()
        assert summary.messages == 22, "all that has come together since"
        assert (await memory.health()).status == "active"
        assert (await ann.add("user", "Thank you.")).notices == ()


@pytest.mark.req("A13")
async def test_it_is_tried_again_after_ever_longer_pauses_which_a_restart_does_not_forget(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    scribe.down = True
    pauses = []
    async with remembering(location, "archive", chat=scribe, clock=clock) as memory:
        await talk(memory.user("ann"), 10)
        digest = memory._services.digest
        await digest.walk()
        for _ in range(12):
            (entry,) = await digest.due(10)
            await memory._services.upkeep.tasks[2]._drain(None, failing=False)  # type: ignore[attr-defined]
            assert await digest.due(10) == [], "nobody asks before the time has come"
            (entry,) = await digest.due(10, failing=True)
            assert entry.due_at is not None
            pauses.append((entry.due_at - clock()) // 1_000_000)
            clock.forward(seconds=pauses[-1])
        assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 21600, 21600]
        assert entry.failures == 12


async def test_a_restart_goes_on_where_it_stopped(tmp_path_factory: pytest.TempPathFactory) -> None:
    location = str(tmp_path_factory.mktemp("restart") / "memory.db")
    scribe = Scribe()
    async with remembering(location, "archive", chat=scribe) as memory:
        await talk(memory.user("ann"), 10)
        await memory._services.digest.walk()
    async with remembering(location, "archive", chat=scribe) as memory:
        # What was put on the agenda before is still there, also if nothing new is said.
        assert (await memory.upkeep()).summarised == 1
    async with remembering(location, "archive", chat=scribe) as memory:
        assert (await memory.upkeep()).summarised == 0


async def test_a_model_that_is_down_is_left_alone_after_a_few_tries(location: str) -> None:
    class Counting(Scribe):
        tries = 0

        async def text(
            self,
            operation: Operation,
            messages: Sequence[Said],
            *,
            scope: Scope | None = None,
            characters: int | None = None,
        ) -> Reply:
            del operation, messages, scope, characters
            self.tries += 1
            raise ModelUnavailable("down")

    scribe = Counting()
    # Nothing in the background: where talking takes long, that would have its own few tries before we count.
    async with remembering(location, "archive", chat=scribe, settings=Settings(background=False)) as memory:
        users = [memory.user(f"user-{number}") for number in range(30)]
        for user in users:
            await talk(user, 10)
        await memory.upkeep()
        assert 3 <= scribe.tries <= 3 + 4, "three in a row, and what was on its way"


@pytest.mark.req("A13")
async def test_asking_for_a_summary_says_that_it_failed_and_changes_nothing(location: str) -> None:
    scribe = Scribe()
    scribe.down = True
    async with remembering(location, "archive", chat=scribe) as memory:
        ann = memory.user("ann")
        await talk(ann, 2)
        with pytest.raises(ModelUnavailable):
            await ann.summarize()
        assert all(message.active for message in await ann.history())
        assert await ann.summaries(active=None) == []


async def test_where_it_is_allowed_it_is_done_without_the_model_and_again_when_that_is_back(location: str) -> None:
    scribe = Scribe()
    scribe.down = True
    async with remembering(location, "archive", chat=scribe, settings=OFFLINE) as memory:
        ann = memory.user("ann")
        await talk(ann, 10)
        report = await memory.upkeep()
        assert (report.summarised, report.error) == (1, None)
        (summary,) = await ann.summaries()
        assert (summary.model, summary.prompt) == (None, "extractive/1")
        assert "apples" in summary.text
        scribe.down = False
        assert (await memory.upkeep()).summarised == 1
        (again,) = await ann.summaries()
        assert (again.text, again.model, again.version, again.replaces) == ("S1", "test:scribe", 2, summary.id)
        assert (again.chunks, again.messages) == (summary.chunks, summary.messages)
        assert "I bought 1 apples" in scribe.asked[0][1]
        assert (await memory.upkeep()).summarised == 0
        assert (await memory.verify()).ok


@pytest.mark.parametrize("profile", ["session", "community", "account"])
async def test_every_kind_of_summary_is_made_again_when_a_model_is_there(location: str, profile: str) -> None:
    scribe, clock = Scribe(), MovingClock()
    async with remembering(location, profile, clock=clock) as memory:
        ann = memory.user("ann")
        for part in range(6):
            await talk(ann, 10, first=10 * part, at=clock.forward(minutes=5))
            await memory.upkeep()
        before = await ann.summaries()
        assert before
        memory._services.digest.executor.writer._chat = scribe
        assert (await memory.upkeep()).summarised == len(before)
        after = await ann.summaries()
        assert [(each.kind, each.version, each.messages) for each in after] == [
            (each.kind, each.version + 1, each.messages) for each in before
        ]
        assert {each.model for each in after} == {"test:scribe"}
        if profile == "session":
            assert "<summary>" in scribe.asked[0][1], "from the summary before, never from the whole history"
        assert (await memory.verify()).ok


async def test_what_was_made_without_a_model_stays_where_that_is_wanted(location: str) -> None:
    scribe = Scribe()
    async with remembering(location, "archive", settings=replace(OFFLINE, redo=False)) as memory:
        await talk(memory.user("ann"), 10)
        await memory.upkeep()
        memory._services.digest.executor.writer._chat = scribe
        assert (await memory.upkeep()).summarised == 0
        assert scribe.asked == []


async def test_what_a_person_edited_is_never_written_anew(location: str) -> None:
    scribe = Scribe()
    async with remembering(location, "archive") as memory:
        ann = memory.user("ann")
        await talk(ann, 10)
        await memory.upkeep()
        (summary,) = await ann.summaries()
        await ann.edit_summary(summary.id, "Ann bought apples.")
        memory._services.digest.executor.writer._chat = scribe
        assert (await memory.upkeep()).summarised == 0
        assert [each.text for each in await ann.summaries()] == ["Ann bought apples."]


async def test_a_model_over_the_wire_that_fails_and_recovers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same with a real client and a real server."""
    import aforesaid  # noqa: PLC0415

    path = tmp_path_factory.mktemp("wire") / "memory.db"
    async with ScriptedModel(["Ann bought apples in Berlin."]) as model:
        settings = replace(model.settings(timeout=2), redo=True)
        profile = {"extends": "archive", "tree_turns": 2, "extract": False}
        async with aforesaid.connect(path, profile=profile, embedder="none", settings=settings) as memory:
            ann = memory.user("ann")
            model.fail(faults.WrongKey())
            await talk(ann, 2)
            report = await memory.upkeep()
            assert report.summarised == 0
            assert report.error is not None
            assert all(message.active for message in await ann.history())
            model.heal()
            assert (await memory.upkeep()).summarised == 1
            (summary,) = await ann.summaries()
            assert (summary.text, summary.model) == ("Ann bought apples in Berlin.", "scripted:scripted")
