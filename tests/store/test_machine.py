"""Random operations on the SQLite store and on the plain one in memory: nobody can tell them apart."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from making import minutes
from recollect.domain.change import AddMemory, AddMessage, Archive, Change, PutFacts, PutSetting, RollBack
from recollect.domain.memory import MemoryDraft
from recollect.domain.message import draft
from recollect.domain.receipt import Repeated, Stored
from recollect.domain.scope import Scope
from recollect.domain.summary import SummaryDraft
from recollect.domain.words import Within
from recollect.errors import RecollectError
from recollect.store import Store, open_store
from recollect.store.ephemeral import EphemeralStore

SCOPES = [
    Scope.of(user, space=space, thread=thread, session=session)
    for user in ("ann", "bob")
    for space in ("home", "work")
    for thread in (None, "general")
    for session in (None, "named", "s-1")
]
WORDS = ["tea", "coffee", "Berlin", "Café", "柏林", "москва", "the", "the the the", "!!", "2026"]
NOT_COMPARED = {"created_at", "stored_at", "updated_at", "hash", "bytes", "last_update", "seconds"}
"""What depends on the moment of the call. (`at` of an audit row too, see `comparable`.)"""

scopes = st.sampled_from(SCOPES)
numbers = st.integers(1, 30)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
messages = st.builds(
    lambda scope, role, text, at, given, author, silence: AddMessage(
        draft(scope, role, text, at=minutes(at), id=given, author=author),
        silence=silence * 60 * 1_000_000,
    ),
    scopes,
    st.sampled_from(["user", "assistant", "system", "tool"]),
    texts,
    st.integers(-90, 90),
    st.none() | st.sampled_from(["a", "b", "c"]),
    st.none() | st.sampled_from(["ann", "carol"]),
    st.sampled_from([30, 30, 30, 50]),
)
archives = st.builds(
    lambda scope, text, sources: Archive(SummaryDraft(scope, text, messages=tuple(sources))),
    scopes,
    texts,
    st.lists(numbers, min_size=1, max_size=5, unique=True),
)
folds = st.builds(
    lambda scope, text, sources: Archive(SummaryDraft(scope, text, summaries=tuple(sources))),
    scopes,
    texts,
    st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
)
others = st.one_of(
    st.builds(RollBack, scopes, st.integers(1, 8)),
    st.builds(
        lambda scope, text, importance, sources: AddMemory(
            MemoryDraft(scope, "fact", text, importance=importance, sources=tuple(sources))
        ),
        scopes,
        texts,
        st.integers(1, 10),
        st.lists(numbers, max_size=2),
    ),
    st.builds(PutFacts, scopes, texts, texts),
    st.builds(PutSetting, scopes, st.sampled_from(["x", "y"]), st.none() | st.booleans() | st.integers() | texts),
)
changes = st.one_of(messages, messages, messages, archives, archives, folds, others)


def comparable(value: Any) -> Any:  # noqa: ANN401
    """Turn an answer into plain values, without what may differ."""
    if isinstance(value, Stored | Repeated):
        return [comparable(value.message), type(value).__name__]
    if is_dataclass(value) and not isinstance(value, type):
        dropped = NOT_COMPARED | ({"at"} if "actor" in asdict(value) else set())
        return {key: comparable(item) for key, item in asdict(value).items() if key not in dropped}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in NOT_COMPARED}
    return value


class BothStores(RuleBasedStateMachine):
    """Every operation goes to both stores, and both must answer alike."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.plain: Store = EphemeralStore()

    @initialize()
    def open(self) -> None:
        self.sqlite = self.loop.run_until_complete(open_store(Path(self.folder.name) / "memory.db"))

    def teardown(self) -> None:
        try:
            if hasattr(self, "sqlite"):
                report = self.loop.run_until_complete(self.sqlite.verify())
                assert report.ok, report
                self.loop.run_until_complete(self.sqlite.close())
        finally:
            self.loop.close()
            self.folder.cleanup()

    def both(self, ask: Callable[[Store], Awaitable[Any]]) -> None:
        answers = []
        for store in (self.sqlite, self.plain):

            async def call(store: Store = store) -> Any:  # noqa: ANN401
                try:
                    return await ask(store)
                except RecollectError as error:
                    return f"{type(error).__name__}: {error}"

            answers.append(comparable(self.loop.run_until_complete(call())))
        assert answers[0] == answers[1]

    @rule(change_set=st.lists(changes, min_size=1, max_size=4))
    def change(self, change_set: list[Change]) -> None:
        async def apply(store: Store) -> Any:  # noqa: ANN401
            return (await store.apply(change_set)).results

        self.both(apply)

    @rule(change_sets=st.lists(st.lists(changes, min_size=1, max_size=3), min_size=2, max_size=5))
    def change_together(self, change_sets: list[list[Change]]) -> None:
        """Several callers at once: the SQLite store puts all of them into one transaction."""

        async def apply(store: Store) -> Any:  # noqa: ANN401
            outcomes = await asyncio.gather(*[store.apply(each) for each in change_sets], return_exceptions=True)
            return [repr(outcome) if isinstance(outcome, Exception) else outcome.results for outcome in outcomes]  # type: ignore[union-attr]

        self.both(apply)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.sqlite.close())
        self.open()

    @rule(
        scope=scopes,
        within=st.sampled_from(["user", "thread", "session"]),
        limit=st.integers(1, 10),
        before=st.none() | numbers,
        archived=st.booleans(),
    )
    def read(self, scope: Scope, within: Within, limit: int, before: int | None, *, archived: bool) -> None:
        self.both(lambda store: store.messages(scope, within=within, limit=limit, before=before, archived=archived))
        self.both(lambda store: store.sessions(scope, within=within, limit=limit))

    @rule(scope=scopes, query=texts, within=st.sampled_from(["user", "thread", "session"]), limit=st.integers(1, 10))
    def search(self, scope: Scope, query: str, within: Within, limit: int) -> None:
        self.both(lambda store: store.search_text(scope, query, within=within, limit=limit))

    @rule(scope=scopes, message_id=st.sampled_from(["a", "b", "#1", "#2", "#99"]), summary=st.integers(1, 8))
    def look_up(self, scope: Scope, message_id: str, summary: int) -> None:
        self.both(lambda store: store.message(scope, message_id))
        self.both(lambda store: store.covered(scope, summary))

    @invariant()
    def everything_else_agrees(self) -> None:
        if not hasattr(self, "sqlite"):
            return
        self.both(lambda store: store.users())
        self.both(lambda store: store.stats())
        for scope in (SCOPES[0], SCOPES[-1]):
            self.both(lambda store, scope=scope: store.ledger(scope))  # type: ignore[misc]
            self.both(lambda store, scope=scope: store.summaries(scope, active=None))  # type: ignore[misc]
            self.both(lambda store, scope=scope: store.memories(scope))  # type: ignore[misc]
            self.both(lambda store, scope=scope: store.facts(scope))  # type: ignore[misc]
            self.both(lambda store, scope=scope: store.settings(scope))  # type: ignore[misc]
            self.both(lambda store, scope=scope: store.audit(scope))  # type: ignore[misc]


BothStores.TestCase.settings = settings(
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestBothStores = BothStores.TestCase
