"""Whatever is stored and whatever is asked: a context keeps its budget, repeats nothing and holds the message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aforesaid.context import Builder, Context, ContextRequest
from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.facts.describing import Line
from aforesaid.models.embed import DeterministicEmbedder
from aforesaid.models.tokens import counter_for
from aforesaid.profiles import BUILT_IN, load_profile
from aforesaid.profiles.recipe import LEAST_BUDGET
from aforesaid.recall import Recall
from aforesaid.store import Store, open_store
from aforesaid.store.memories import NewestFacts, PutFacts
from aforesaid.store.messages import AddMessage

ANN = Scope.of("ann")
NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)

words = st.text(
    alphabet=st.one_of(st.sampled_from("abc <>&\n"), st.characters(exclude_categories=["Cs"])), min_size=1, max_size=300
).filter(lambda text: text.strip() and "\0" not in text)


class Facts:
    """What is known about people, and nothing else."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def portrait(self, scope: Scope, *_: object) -> list[Line]:
        facts = await self._store.read(NewestFacts(scope))
        return [] if facts is None else [Line("other", line) for line in facts.text.splitlines() if line.strip()]

    async def habits(self, scope: Scope) -> str:
        return f"{scope.user} likes short replies."


async def build(store: Store, text: str, budget: int, profile: str, system: str | None = None) -> Context:
    builder = Builder(store, Recall(store, DeterministicEmbedder()), Facts(store))
    request = ContextRequest(text, budget, system=system, at=NOON + timedelta(days=1))
    return await builder.build(ANN, request, load_profile(profile).context, counter_for())


@pytest.mark.parametrize("profile", BUILT_IN)
@settings(deadline=None)
@given(
    texts=st.lists(words, max_size=25),
    current=words,
    system=st.none() | words,
    budget=st.integers(LEAST_BUDGET, 3_000),
    facts=st.none() | words,
)
async def test_a_context_is_within_its_budget_repeats_nothing_and_is_always_the_same(
    profile: str, texts: list[str], current: str, system: str | None, budget: int, facts: str | None
) -> None:
    store = await open_store(":memory:")
    for number, text in enumerate(texts):
        role = "user" if number % 2 == 0 else "assistant"
        await store.apply([AddMessage(draft(ANN, role, text, at=NOON + timedelta(minutes=number)))])
    if facts is not None:
        await store.apply([PutFacts(ANN, facts, "test")])
    context = await build(store, current, budget, profile, system)
    assert context.tokens == counter_for().count_messages(context.messages) <= budget
    keys = [item.key for item in context.items]
    assert len(keys) == len(set(keys))
    shown = [seq for item in context.items for seq in item.shows]
    assert len(shown) == len(set(shown))
    last = context.messages[-1]
    assert last["role"] == "user"
    assert last["content"].endswith((current, "[…]"))
    assert [message["role"] for message in context.messages].count("system") <= 1
    talk = [message["role"] for message in context.messages if message["role"] != "system"]
    assert talk == [("user", "assistant")[place % 2] for place in range(len(talk))]
    assert await build(store, current, budget, profile, system) == context


async def test_one_giant_message_is_cut_with_a_visible_mark_and_never_dropped(store: Store) -> None:
    await store.apply([AddMessage(draft(ANN, "user", "remember the milk " * 3_000, at=NOON))])
    context = await build(store, "what now? " * 5_000, 1_000, "default", system="be kind " * 2_000)
    assert context.tokens <= 1_000
    assert "(UTC).\n\nwhat now?" in context.messages[-1]["content"]
    assert context.messages[-1]["content"].endswith("[…]")
    assert context.messages[0]["content"].startswith("be kind")
    cut = {item.section for item in context.items if item.cut}
    assert {"current", "system"} <= cut
    assert "(cut)" in context.explain()
