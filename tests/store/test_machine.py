"""Random operations on each store and on SQLite in memory, which answer alike, and on SQLite and a model of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass, replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aforesaid.domain.checks import LARGEST, LATEST, MemoryState, Within
from aforesaid.domain.memory import EDITED, STATES, TAKEN_BACK, MemoryDraft, NoteMatch, Superseded
from aforesaid.domain.message import draft, tombstone
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.report import ListedUser, SpaceTotals
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.domain.summary import SummaryDraft, ViewDraft
from aforesaid.domain.transfer import UserRow
from aforesaid.errors import AforesaidError
from aforesaid.store import Store, open_store
from aforesaid.store.agenda import Advance, DueEntries, FinishEntry, PolicyBacklog, Unprocessed
from aforesaid.store.erasing import SetAside, Withdraw
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    CountMemory,
    DerivedText,
    DueMemories,
    FactsVersions,
    Forget,
    MarkExtracted,
    Memories,
    MemoryById,
    MemoryCounts,
    MemoryVersions,
    NewestFacts,
    PutDerived,
    PutFacts,
    Tombstones,
    UnextractedUsers,
)
from aforesaid.store.messages import (
    ActivityPerDay,
    AddMessage,
    MessageById,
    MessageCount,
    Messages,
    MessagesAfter,
    MessagesBetween,
    Sessions,
    UserLedger,
    VersionsOf,
)
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import (
    AuditRows,
    DisplayNames,
    PutSetting,
    Receipts,
    Settings,
    Totals,
    TotalsOfSpaces,
    Users,
    UsersPage,
)
from aforesaid.store.retention import DISCARDABLE, Discard, Discardable, DiscardableCount
from aforesaid.store.searches import SearchNotes, SearchText
from aforesaid.store.sqlite import MemoryStore
from aforesaid.store.summaries import AddView, Archive, CoveredMessages, Revise, RollBack, Summaries, SummariesAbove
from making import NOON, minutes
from store.model import Model

T = TypeVar("T")

SCOPES = [
    Scope.of(user, space=space, thread=thread, session=session)
    for user in ("ann", "bob")
    for space in ("home", "work")
    for thread in (None, "general")
    for session in (None, "named", "s-1")
]
OFTEN = [*SCOPES[:6:3] * 12, *SCOPES[:6] * 2, *SCOPES]
"""One user in one space more often, so that more of what is done meets something that is there."""
WORDS = ["tea", "coffee", "Berlin", "Café", "柏林", "москва", "the", "the the the", "!!", "2026"]
NOT_COMPARED = {"created_at", "stored_at", "updated_at", "hash", "bytes", "last_update", "seconds"}
"""What depends on the moment of the call. (`at` of an audit row and of a note that was found too.)"""

# By number: a strategy that spells all scopes out, many times over, has a text that hypothesis warns of.
scopes = st.integers(0, len(OFTEN) - 1).map(lambda number: OFTEN[number])
numbers = st.integers(1, 30)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
DETAILS: list[dict[str, Any]] = [
    {},
    {},
    {"parts": [{"type": "image", "text": "tea", "hash": "ab" * 32}]},
    {"tool_calls": [{"id": "c1", "name": "f", "arguments": "{}"}], "reply_to": "#1"},
    {"tool_call_id": "c1", "metadata": {"n": [1, 2.5, None]}},
    {"kind": "voice", "language": "de", "metadata": {"n": [1]}},
]


def new_message(number: int) -> AddMessage:
    """Return one of many messages. Made of a single number, so that hypothesis has room for long examples."""
    choose = Random(number).choice
    new = draft(
        choose(OFTEN),
        choose(["user", "assistant", "system", "tool"]),
        " ".join(choose(WORDS) for _ in range(choose([1, 1, 2, 6]))),
        at=minutes(choose(range(-90, 91))),
        id=choose([None, None, None, "a", "b", "c"]),
        author=choose([None, None, "ann", "carol"]),
        name=choose([None, "Annie", "C."]),
        replaces=choose([None, None, None, None, "a", "#1", "#2", "#3"]),
        **choose(DETAILS),
    )
    return AddMessage(new, silence=choose([30, 30, 30, 50]) * 60 * 1_000_000)


messages = st.integers(0, 1 << 24).map(new_message)
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


def new_memory(number: int) -> MemoryDraft:
    choose = Random(number).choice
    minute = choose(range(-60, 61))
    return MemoryDraft(
        choose(OFTEN),
        "fact",
        " ".join(choose(WORDS) for _ in range(choose([1, 2, 6]))),
        importance=choose(range(1, 11)),
        sources=tuple(choose(range(1, 31)) for _ in range(choose([0, 1, 2]))),
        state=choose(STATES),
        remind_at=minutes(minute),
        expires_at=minutes(minute + 60) if minute > 0 else None,
        valid_from=minutes(minute),
    )


drafts = st.integers(0, 1 << 24).map(new_memory)
memories = st.builds(AddMemory, drafts)
superseding = st.builds(
    lambda draft, old: AddMemory(draft, supersedes=(old,)),
    drafts,
    st.builds(Superseded, st.integers(1, 6), st.integers(1, 2)),
)
known = st.one_of(
    memories,
    superseding,
    st.builds(
        lambda scope, memory, times, minute, sources: CountMemory(
            scope, memory, times, minutes(minute), tuple(sources)
        ),
        scopes,
        st.integers(1, 6),
        st.integers(1, 3),
        st.integers(-60, 60),
        st.lists(numbers, max_size=3),
    ),
    st.builds(lambda scope, words: Forget(scope, (words,)), scopes, texts),
    st.builds(PutDerived, scopes, st.just("portrait"), texts, texts, st.none() | st.just("") | texts),
    st.builds(MarkExtracted, scopes, st.just(0) | numbers, numbers),
)
views = st.builds(
    lambda scope, kind, text, first, length, previous, reach, day: AddView(
        ViewDraft(
            scope,
            kind,
            text,
            first,
            first + length - 1,
            length,
            reach="sources" if kind == "week" and previous else reach,
            previous=None if kind == "week" else previous,
            summaries=(previous,) if kind == "week" and previous else (),
            day=day if kind in ("day", "week") else None,
        )
    ),
    scopes,
    st.sampled_from(["rolling", "rolling", "day", "week", "history"]),
    texts,
    st.integers(1, 6),
    st.integers(1, 2),
    st.none() | st.integers(1, 8),
    st.sampled_from(["thread", "user"]),
    st.sampled_from([date(2026, 3, 1), date(2026, 3, 2)]),
)
revisions = st.builds(Revise, scopes, st.integers(1, 8), texts, st.none() | st.just("ann"))
subjects = st.builds(
    Subject,
    st.just("test"),
    st.sampled_from(["home", "work"]),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["", "general"]),
    st.sampled_from(["", "2026-03-01"]),
)
agenda = st.one_of(
    st.builds(
        lambda after, length, touches: Advance("test", after, after + length, tuple(touches)),
        st.integers(0, 4),
        st.integers(1, 2),
        st.lists(st.builds(Touch, subjects, numbers, numbers, numbers, numbers), max_size=2),
    ),
    st.builds(FinishEntry, subjects, numbers, st.none() | numbers, st.none() | numbers, st.none() | st.just("failed")),
)
others = st.one_of(
    st.builds(RollBack, scopes, st.integers(1, 8)),
    st.builds(PutFacts, scopes, texts, texts),
    st.builds(
        PutSetting,
        scopes,
        st.sampled_from(["x", "y"]),
        st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | texts,
    ),
)
changes = st.one_of(
    messages, messages, messages, archives, archives, folds, views, views, revisions, agenda, others, known
)


def comparable(value: Any) -> Any:  # noqa: ANN401
    """Turn an answer into plain values, without what may differ."""
    if isinstance(value, Stored | Repeated):
        return [comparable(value.message), type(value).__name__]
    if is_dataclass(value) and not isinstance(value, type):
        dropped = NOT_COMPARED | ({"at"} if isinstance(value, NoteMatch) or "actor" in asdict(value) else set())
        value = {key: item for key, item in asdict(value).items() if key not in dropped}
    if isinstance(value, UserRow):
        value = value._replace(created_at=NOON)
    if isinstance(value, SpaceTotals):
        value = value._replace(last_activity=NOON)
    if isinstance(value, list) and value and isinstance(value[0], SpaceTotals | ListedUser):
        # Those without a message are ordered by when they were stored, which is not the same moment in two stores.
        value = sorted(value, key=lambda each: each.space if isinstance(each, SpaceTotals) else each.user.id)
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        if value.get("reason") in {EDITED, TAKEN_BACK}:
            value["valid_to"] = "when it was edited or taken back"
        return {key: comparable(item) for key, item in value.items() if key not in NOT_COMPARED}
    return value


async def kept(store: Store, scope: Scope) -> tuple[str, str] | None:
    found = await store.read(DerivedText(scope, "portrait"))
    return None if found is None else (found.key, found.value)


async def answer(asked: Awaitable[Any]) -> Any:  # noqa: ANN401
    try:
        return comparable(await asked)
    except AforesaidError as error:
        return f"{type(error).__name__}: {error}"


class BothStores(RuleBasedStateMachine):
    """Every operation goes to both stores, and both must answer alike.

    After every second operation and at the end, everything that they hold is compared: what they keep stays until then.
    """

    kind: str
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.plain: Store = MemoryStore()

    @initialize()
    def open(self) -> None:
        self.tested = self.loop.run_until_complete(open_store(f"{self.kind}:{Path(self.folder.name) / 'memory'}"))

    def teardown(self) -> None:
        try:
            if hasattr(self, "tested"):
                self.compare_everything_else()
                report = self.loop.run_until_complete(self.tested.verify())
                assert report.ok, report
                self.loop.run_until_complete(self.tested.close())
        finally:
            self.loop.close()
            self.folder.cleanup()

    def both(self, ask: Callable[[Store], Awaitable[Any]]) -> None:
        tested, plain = (self.loop.run_until_complete(answer(ask(store))) for store in (self.tested, self.plain))
        assert tested == plain

    def both_answer(self, asked: list[Question[Any]]) -> None:
        """Ask everything at once, which takes a third of the time that one question after another does."""

        async def answers(store: Store) -> list[Any]:
            return await asyncio.gather(*(answer(store.read(question)) for question in asked))

        tested, plain = (self.loop.run_until_complete(answers(store)) for store in (self.tested, self.plain))
        for question, found, expected in zip(asked, tested, plain, strict=True):
            assert found == expected, question

    @rule(change_set=st.lists(changes, min_size=1, max_size=4))
    def change(self, change_set: list[Change]) -> None:
        async def apply(store: Store) -> Any:  # noqa: ANN401
            return (await store.apply(change_set)).results

        self.both(apply)

    @rule(change_sets=st.lists(st.lists(changes, min_size=1, max_size=3), min_size=2, max_size=5))
    def change_together(self, change_sets: list[list[Change]]) -> None:
        """Several callers at once: a store on a disk puts all of them into one transaction."""

        async def apply(store: Store) -> Any:  # noqa: ANN401
            outcomes = await asyncio.gather(*[store.apply(each) for each in change_sets], return_exceptions=True)
            return [repr(outcome) if isinstance(outcome, Exception) else outcome.results for outcome in outcomes]  # type: ignore[union-attr]

        self.both(apply)

    @rule(scope=scopes, memory=st.integers(1, 6), state=st.sampled_from(STATES), text=texts)
    def change_a_memory(self, scope: Scope, memory: int, state: MemoryState, text: str) -> None:
        async def change(store: Store) -> Any:  # noqa: ANN401
            before = await store.read(MemoryById(scope, memory))
            after = replace(before, state=state, active=state == "active", text=text)
            await store.apply([ChangeMemory(after, "edit")])
            return await store.read(MemoryVersions(scope, memory))

        self.both(change)

    @rule(scope=scopes, often=st.integers(0, 3))
    def purge(self, scope: Scope, often: int) -> None:
        if often == 0:
            self.both(lambda store: store.purge(scope))

    @rule(scope=scopes, seq=numbers)
    def take_back(self, scope: Scope, seq: int) -> None:
        async def withdraw(store: Store) -> Any:  # noqa: ANN401
            versions = await store.read(VersionsOf(scope, [seq]))
            if versions:
                changes: list[Change] = [AddMessage(tombstone(versions[-1])), Withdraw(scope, (seq,))]
                return versions, (await store.apply(changes)).results
            return versions

        self.both(withdraw)

    @rule(scope=scopes, seqs=st.lists(numbers, min_size=1, max_size=3), often=st.integers(0, 2))
    def erase(self, scope: Scope, seqs: list[int], often: int) -> None:
        if often == 0:
            self.both(lambda store: store.erase(scope, seqs))

    @rule(what=st.sampled_from(DISCARDABLE), before=st.sampled_from([0, LATEST]), often=st.integers(0, 2))
    def discard(self, what: Discardable, before: int, often: int) -> None:
        async def gone(store: Store) -> Any:  # noqa: ANN401
            count = await store.read(DiscardableCount(what, before))
            return count, (await store.apply([Discard(what, before)])).results

        if often == 0:
            self.both(gone)

    @rule(vectors=st.booleans())
    def dump(self, *, vectors: bool) -> None:
        async def dumped(store: Store) -> list[Any]:
            # Rows of one kind may come in any order where nothing depends on it.
            rows = [row async for page in store.dump(vectors=vectors) for row in page]
            return sorted((comparable(row) for row in rows), key=repr)

        self.both(dumped)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.tested.close())
        self.open()

    @rule(
        scope=scopes,
        within=st.sampled_from(["user", "thread", "session"]),
        limit=st.integers(1, 10),
        before=st.none() | numbers,
        archived=st.booleans(),
    )
    def read(self, scope: Scope, within: Within, limit: int, before: int | None, *, archived: bool) -> None:
        self.both(
            lambda store: store.read(Messages(scope, within=within, limit=limit, before=before, archived=archived))
        )
        self.both(lambda store: store.read(Messages(scope, within=within, versions=True)))
        self.both(lambda store: store.read(Sessions(scope, within=within, limit=limit)))

    @rule(scope=scopes, query=texts, within=st.sampled_from(["user", "thread", "session"]), limit=st.integers(1, 10))
    def search(self, scope: Scope, query: str, within: Within, limit: int) -> None:
        self.both(lambda store: store.read(SearchText(scope, query, within=within, limit=limit)))

    @rule(scope=scopes, message_id=st.sampled_from(["a", "b", "#1", "#2", "#99"]), summary=st.integers(1, 8))
    def look_up(self, scope: Scope, message_id: str, summary: int) -> None:
        self.both(lambda store: store.read(MessageById(scope, message_id)))
        self.both(lambda store: store.read(CoveredMessages(scope, summary)))
        self.both(lambda store: store.read(SummariesAbove(scope, summary)))
        self.both(lambda store: store.read(Summaries(scope, kind="rolling", here=True)))
        self.both(lambda store: store.read(Summaries(scope, kind="day", day=date(2026, 3, 1))))
        self.both(lambda store: store.read(MessagesAfter(scope, summary, 5, here=True, archived=False)))

    @invariant()
    def everything_else_agrees(self) -> None:
        self.steps += 1
        if self.steps % 2 == 0 and hasattr(self, "tested"):
            self.compare_everything_else()

    def compare_everything_else(self) -> None:
        asked: list[Question[Any]] = [
            Users(),
            UsersPage("home", limit=100),
            TotalsOfSpaces(),
            MemoryCounts("home"),
            DisplayNames("home"),
            Totals(),
            UnextractedUsers(10),
            Unprocessed("test", 5),
            DueEntries("test", 10, 5, failing=True),
            PolicyBacklog("test", 10),
            MessagesBetween("home", 0, LATEST),
            ActivityPerDay("home", 0, LATEST),
            DueMemories("reminder", minutes(10), 5),
            DueMemories("expiry", minutes(90), 5),
        ]
        for scope in (SCOPES[0], SCOPES[-1]):
            asked += [
                UserLedger(scope),
                UserLedger(scope, here=True),
                Summaries(scope, active=None),
                Memories(scope, active=None),
                Tombstones(scope),
                FactsVersions(scope),
                SearchNotes(scope, "tea Berlin", "m", None),
                NewestFacts(scope),
                Settings(scope),
                Receipts(scope),
                Receipts(scope, limit=1, replies=(1, 2, 3)),
                AuditRows(scope),
            ]
            self.both(lambda store, scope=scope: kept(store, scope))  # type: ignore[misc]
        self.both_answer(asked)


class Sqlite(BothStores):
    kind = "sqlite"


class Json(BothStores):
    kind = "json"


class Files(BothStores):
    kind = "files"


picks = st.lists(st.integers(0, 30), min_size=1, max_size=4)
"""Which of those that there are, counted from the last one and around."""


def picked(things: Sequence[T], wanted: Iterable[int]) -> list[T]:
    """Return some of the things, each once; none if there are none."""
    return [things[-number] for number in dict.fromkeys(number % len(things) for number in wanted)] if things else []


class AgainstModel(RuleBasedStateMachine):
    """Every operation goes to a store and to the model of it. Their contents are compared as above."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.model = Model()

    @initialize(first=st.lists(messages, min_size=8, max_size=16))
    def begin(self, first: list[AddMessage]) -> None:
        """Store some messages: hypothesis leaves out some rules in each example, such as the one that adds more."""
        self.open()
        self.apply_together([[each] for each in first])

    def open(self) -> None:
        self.store = self.loop.run_until_complete(open_store(Path(self.folder.name) / "memory.db"))

    def teardown(self) -> None:
        try:
            if hasattr(self, "store"):
                self.compare()
                self.loop.run_until_complete(self.store.close())
        finally:
            self.loop.close()
            self.folder.cleanup()

    def ask(self, question: Question[T]) -> T:
        return self.loop.run_until_complete(self.store.read(question))

    def apply_together(self, change_sets: Sequence[Sequence[Change]]) -> None:
        """Have both apply several change sets, and compare what each of them led to."""

        async def apply() -> list[Any]:
            return await asyncio.gather(*map(self.store.apply, change_sets), return_exceptions=True)

        for change_set, found in zip(change_sets, self.loop.run_until_complete(apply()), strict=True):
            try:
                expected = comparable(self.model.apply(change_set))
            except AforesaidError as refused:
                expected = type(refused)
            assert (type(found) if isinstance(found, Exception) else comparable(found.results)) == expected

    @rule(change_sets=st.lists(st.lists(messages, min_size=1, max_size=3), min_size=1, max_size=3))
    def add(self, change_sets: list[list[Change]]) -> None:
        self.apply_together(change_sets)

    @rule(change_set=st.lists(st.one_of(messages, archives, folds, memories, superseding), min_size=1, max_size=3))
    def change(self, change_set: list[Change]) -> None:
        """Most of these are refused: whatever such a change set has done is undone."""
        self.apply_together([change_set])

    @rule(new=messages, wanted=st.integers(0, 30), same_role=st.sampled_from([True, True, False]))
    def edit(self, new: AddMessage, wanted: int, *, same_role: bool) -> None:
        log = [each for each in self.model.log(new.draft.scope, "thread") if each.user == new.draft.scope.user]
        for old in picked(log, [wanted]):
            role = old.role if same_role else new.draft.role
            self.apply_together([[AddMessage(new.draft._replace(replaces=old.seq, role=role, id=None), new.silence)]])

    @rule(scope=scopes, wanted=picks, text=texts, shown=st.booleans(), versions=st.sampled_from([False, False, True]))
    def archive(self, scope: Scope, wanted: list[int], text: str, *, shown: bool, versions: bool) -> None:
        log = [each for each in self.model.log(scope, versions=versions) if versions or each.active]
        if log:
            seqs = tuple(each.seq for each in picked(log, wanted))
            draft = SummaryDraft(scope, text, messages=seqs, shown=seqs if shown else ())
            self.apply_together([[Archive(draft)]])

    @rule(scope=scopes, wanted=picks, text=texts)
    def fold(self, scope: Scope, wanted: list[int], text: str) -> None:
        standing = [each for each in self.model.summaries(scope) if each.active]
        if standing:
            sources = tuple(each.id for each in picked(standing, wanted))
            self.apply_together([[Archive(SummaryDraft(scope, text, summaries=sources))]])

    @rule(scope=scopes, wanted=picks)
    def roll_back(self, scope: Scope, wanted: list[int]) -> None:
        summaries = self.model.summaries(scope)
        if summaries:
            self.apply_together([[RollBack(scope, each.id)] for each in picked(summaries, wanted)])

    @rule(scope=scopes, wanted=picks)
    def set_aside(self, scope: Scope, wanted: list[int]) -> None:
        log = self.model.log(scope, versions=True)
        if log:
            self.apply_together([[SetAside(scope, tuple(each.seq for each in picked(log, wanted)))]])

    @rule(draft=drafts, wanted=picks, old=st.none() | st.integers(0, 5))
    def remember(self, draft: MemoryDraft, wanted: list[int], old: int | None) -> None:
        log, known = self.model.log(draft.scope), self.model.memories(draft.scope)
        sources = tuple(each.seq for each in picked(log, wanted[: 1 if old is None else 2]))
        superseded = picked(known, [] if old is None else [old])
        draft = replace(draft, sources=sources, state="active")
        self.apply_together([[AddMemory(draft, supersedes=tuple(Superseded(m.id, m.revision) for m in superseded))]])

    @rule(scope=scopes, wanted=st.integers(0, 5), state=st.sampled_from(STATES), text=texts)
    def change_a_memory(self, scope: Scope, wanted: int, state: MemoryState, text: str) -> None:
        known = self.model.memories(scope)
        for old in picked(known, [wanted]):
            self.apply_together([[ChangeMemory(replace(old, state=state, active=state == "active", text=text), "")]])

    @rule(scope=scopes, wanted=picks)
    def take_back(self, scope: Scope, wanted: list[int]) -> None:
        log = self.model.log(scope)
        sources = {seq for memory in self.model.memories(scope) for seq in memory.sources}
        if wanted[0] % 2:
            log = [each for each in log if each.seq in sources] or log
        if log:
            ends = {self.model.versions_of(scope, [each.seq])[-1] for each in picked(log, wanted[:2])}
            tombstones = [AddMessage(tombstone(each)) for each in sorted(ends, key=lambda each: each.seq)]
            self.apply_together([[*tombstones, Withdraw(scope, tuple(sorted(each.seq for each in ends)))]])

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.open()

    @rule(scope=scopes, within=st.sampled_from(["user", "thread", "session"]), limit=st.integers(1, 10), before=numbers)
    def read(self, scope: Scope, within: Within, limit: int, before: int) -> None:
        if within == "session" and scope.session is None:
            return
        wanted = Messages(scope, within=within, limit=limit)
        assert comparable(self.ask(wanted)) == comparable(self.model.log(scope, within)[-limit:])
        active = [each for each in self.model.log(scope, within) if each.active]
        assert comparable(self.ask(replace(wanted, archived=False))) == comparable(active[-limit:])
        for old in picked(self.model.log(scope, within, versions=True), [before]):
            earlier = [each for each in self.model.log(scope, within) if (each.at, each.seq) < (old.at, old.seq)]
            assert comparable(self.ask(replace(wanted, before=old.seq))) == comparable(earlier[-limit:])
        sessions = self.ask(Sessions(scope, "thread", limit=1_000))
        assert comparable(sessions) == comparable(self.model.sessions(scope))
        assert self.ask(MessageCount(scope, within)) == len(self.model.log(scope, within))

    @invariant()
    def all_is_as_promised(self) -> None:
        self.steps += 1
        if self.steps % 2 == 0 and hasattr(self, "store"):
            self.compare()

    def compare(self) -> None:
        for scope in SCOPES[::4]:
            log = self.ask(Messages(scope, limit=1_000, versions=True))
            assert comparable(log) == comparable(self.model.log(scope, versions=True))
            summaries = self.ask(Summaries(scope, active=None))
            assert comparable(summaries) == comparable(self.model.summaries(scope))
            memories = self.ask(Memories(scope, active=None))
            assert comparable(memories) == comparable(self.model.memories(scope))
            assert self.ask(UserLedger(scope)) == self.model.ledger(scope)


def examples(part: float) -> settings:
    """Return settings with a part of the examples that the profile asks for."""
    return settings(
        max_examples=round(settings().max_examples * part),
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


Sqlite.TestCase.settings = examples(0.6)
# These two change the same state in memory as the plain one: what can differ is what they read back.
Json.TestCase.settings = examples(0.2)
Files.TestCase.settings = examples(0.2)
AgainstModel.TestCase.settings = examples(0.6)
TestSqlite = Sqlite.TestCase
TestAgainstModel = AgainstModel.TestCase
TestJson = Json.TestCase
TestFiles = Files.TestCase
