"""What every policy of summaries has to have, also one that is new."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from aforesaid.assistant import Phrases, chat_texts
from aforesaid.digest import digest
from aforesaid.digest.calendar import subject_of_user
from aforesaid.digest.digest import steps_of
from aforesaid.digest.executor import Executor
from aforesaid.digest.writing import Writer
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryKind, ViewKind
from aforesaid.front.handle import Services
from aforesaid.memory import Memory
from aforesaid.profiles import Policy, load_profile
from aforesaid.profiles.recipe import POLICIES, SummaryPolicy
from aforesaid.settings import Settings
from aforesaid.store import Store, open_store
from digesting import MovingClock, Scribe, talk

ANN = Scope.of("ann", thread="kitchen")


def test_every_policy_is_described_and_makes_kinds_that_exist() -> None:
    assert set(POLICIES) == set(get_args(Policy))
    made = [kind for policy in POLICIES.values() for kind in policy.kinds]
    assert sorted(made) == sorted(get_args(SummaryKind))
    assert {*get_args(ViewKind), "tree"} == set(get_args(SummaryKind))


@pytest.mark.parametrize("policy", get_args(Policy))
async def test_the_steps_of_a_policy_are_about_what_its_description_says(store: Store, policy: Policy) -> None:
    profile = load_profile({"summaries": policy})
    executor = Executor(store, Writer(None, Settings().route, profile.zone, None), None, profile, MovingClock())
    steps = steps_of(executor)
    about = subject_of_user(policy, ANN.space, ANN.user, ANN.thread)
    if steps is None:
        assert policy == "none"
    elif about is None:
        assert steps.subject(ANN).day
    else:
        assert steps.subject(ANN) == about


async def test_the_policy_of_the_contributing_guide_works_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text("utf-8")
    (code,) = [each for each in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "class RecapSteps" in each]
    named: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, "CONTRIBUTING.md", "exec"), named)  # noqa: S102
    monkeypatch.setitem(cast("dict[str, SummaryPolicy]", POLICIES), "recap", named["RECAP"])
    monkeypatch.setattr(digest, "steps_of", named["RecapSteps"])
    profile = replace(load_profile({"extract": False}), summaries=cast("Policy", "recap"))

    async def opened(chat: Scribe | None) -> Memory:
        return Memory(Services(await open_store(str(tmp_path / "memory.db")), profile, None, chat, None, MovingClock()))

    async with await opened(None) as memory:
        ann = memory.user("ann", thread="kitchen")
        await talk(ann, 12)
        await memory.upkeep()
        (first,) = await ann.summaries()
        assert (first.kind, first.messages, first.model) == ("rolling", 20, None)
    async with await opened(Scribe()) as memory:
        ann = memory.user("ann", thread="kitchen")
        await memory.upkeep()
        assert [each.model for each in await ann.summaries()] == ["test:scribe"], "written again by the model"
        assert [each.messages for each in await ann.summarize()] == [24]
        status = await ann.status()
        assert (status.policy, status.active_summaries) == ("recap", 1)
        english = Phrases("en")
        english.texts["rhythm.recap"] = "one after every ten messages of this chat"
        assert chat_texts.rhythm(status, english) == "one after every ten messages of this chat"
        assert {part.name for part in (await ann.health()).components} >= {"summaries"}
