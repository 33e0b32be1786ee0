"""The digest of one store: makes due summaries step by step, and answers requests about them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from aforesaid.digest.calendar import CalendarSteps, affected_subjects, bounds
from aforesaid.digest.executor import Clock, Executor
from aforesaid.digest.rolling import RollingSteps
from aforesaid.digest.sources import NOTHING_KNOWN
from aforesaid.digest.tiers import TiersSteps, windows
from aforesaid.digest.tree import Step, Steps, TreeSteps
from aforesaid.digest.writing import TELLING_LANGUAGE, WITHOUT_MODEL, Writer, shortened
from aforesaid.domain.chat_message import ChatMessage, answered_calls, chat_tool_calls
from aforesaid.domain.checks import Within, now
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Backlog, Entry, Scope
from aforesaid.domain.setting import cleared_up_to, wants_memory
from aforesaid.domain.summary import Summary, ViewDraft, summary_text
from aforesaid.errors import InvalidInput, ModelError, NotFound, SourcesChanged, TooLarge
from aforesaid.models.embed import Embedder
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of
from aforesaid.profiles.recipe import POLICIES
from aforesaid.settings import Settings
from aforesaid.store.agenda import Advance, DueEntries, FinishEntry, PlannedEntry, PolicyBacklog, Unprocessed
from aforesaid.store.messages import Messages, MessagesAfter, UserLedger
from aforesaid.store.summaries import CoveredMessages, Revise, Summaries, SummariesWithoutModel, SummaryById
from aforesaid.telemetry import Metrics

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat
    from aforesaid.store import Store

__all__ = ["CalendarSteps", "RollingSteps", "Step", "Steps", "TiersSteps", "TreeSteps", "steps_of"]


def steps_of(executor: Executor) -> Steps | None:
    """Return the steps of the policy that the profile names."""
    match executor.profile.summaries:
        case "tree":
            return TreeSteps(executor)
        case "rolling":
            return RollingSteps(executor)
        case "calendar":
            return CalendarSteps(executor)
        case "tiers":
            return TiersSteps(executor)
        case "none":
            return None


_PAGE: Final = 1_000


_REQUESTED_PAGE: Final = 500
"""Messages read per page."""
_log: Final = logging.getLogger("aforesaid.digest")

_MOST_STEPS: Final = 10_000
_TRIES: Final = 20
"""Maximum retries of a step whose sources changed: another worker was faster, or messages were taken back.

A background worker that summarises the same messages can be faster several times in a row; each time it makes progress.
"""
LONGEST_EDIT: Final = 20_000
EDITED: Final = "edited"


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One item of a history context."""

    text: str
    priority: int
    """Importance from 1 (minor) to 5 (essential)."""
    relevance: float
    tags: tuple[str, ...] = ()
    expires: date | None = None


@dataclass(frozen=True, slots=True)
class HistoryContext:
    """The analysis of a user's whole history."""

    text: str
    topics: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    style: str = ""
    items: tuple[HistoryItem, ...] = ()
    """Items that have not expired."""
    covers: int = 0
    """Number of messages."""
    made_at: datetime | None = None
    """When it was made; None for the initial one."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of an account: windows on the log, and the history context."""

    short_term: tuple[Message, ...] = field(repr=False)
    mid_term: tuple[Message, ...] = field(repr=False)
    """Messages before the short-term window, including those that the user cleared, in order."""
    messages: int
    """The whole history."""
    context: HistoryContext


_MOST_ITEMS: Final = 20
"""Maximum items of an analysis without a model. A model may write as many."""


def history_items(memories: Sequence[MemoryRecord], today: date) -> tuple[HistoryItem, ...]:
    """Return the most important memories that are not over as items, for an analysis that no model wrote."""
    ends = {each.id: each.event.end if each.event is not None else each.expires_at for each in memories}
    items = [
        HistoryItem(each.text, max(1, round(each.importance / 2)), each.importance / 10, each.tags, end and end.date())
        for each in sorted(memories, key=lambda memory: (-memory.importance, -memory.id))
        if (end := ends[each.id]) is None or end.date() >= today
    ]
    return tuple(items[:_MOST_ITEMS])


BASELINE: Final = HistoryContext("Nothing is known about the history yet.")


def _chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return messages for a model. Tool calls that have all their results are sent as such, others as words."""
    details = [message.all_details for message in messages]
    calls = [[call.id for call in each.tool_calls] for each in details]
    whole = answered_calls(calls, [each.tool_call_id for each in details])
    said: list[ChatMessage] = [
        {"role": "user", "content": f"tool: {message.shown_text}"}
        if message.details is not None and message.role == "tool"
        else {"role": message.role, "content": message.shown_text}
        for message in messages
    ]
    for place, results in whole.items():
        called: ChatMessage = {"role": "assistant", "content": messages[place].text or None}
        called["tool_calls"] = chat_tool_calls(details[place].tool_calls)
        said[place] = called
        for each, call in zip(results, calls[place], strict=True):
            said[each] = {"role": "tool", "content": messages[each].text, "tool_call_id": call}
    return said


class Digest:
    """Summaries of one store, by the policy of its profile."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        chat: Chat | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        clock: Clock = now,
        metrics: Metrics | None = None,
    ) -> None:
        known = settings or Settings()
        self.policy = profile.summaries
        self.clock = clock
        self.executor = Executor(store, Writer(chat, known.route, profile.zone, embedder), embedder, profile, clock)
        self.steps = steps_of(self.executor)
        self.redo = known.redo
        self.metrics = Metrics() if metrics is None else metrics
        self._store = store

    async def walk(self) -> int:
        """Add new messages of the log to the agenda. Return their number."""
        if self.steps is None:
            return 0
        passed = 0
        while True:
            after, page = await self._store.read(Unprocessed(self.policy, _PAGE))
            if not page:
                return passed
            found = affected_subjects(self.policy, page, self.clock(), self.executor.profile.zone)
            try:
                advance = Advance(self.policy, after, page[-1].seq, found, page[-1].space, len(page))
                await self._store.apply([advance])
            except SourcesChanged:
                continue  # another worker has walked here, or messages were erased; go on from what there is now
            passed += len(page)

    async def due(self, limit: int, *, failing: bool = False) -> list[Entry]:
        """Return due entries, the longest waiting first."""
        return (
            await self._store.read(DueEntries(self.policy, self.clock(), limit, failing=failing)) if self.steps else []
        )

    async def backlog(self) -> Backlog:
        return await self._store.read(PolicyBacklog(self.policy, self.clock()))

    async def step(self, entry: Entry) -> Step:
        """Do one step for an entry, or mark it as done. Raises ModelError if a required model does not answer."""
        if self.steps is None:
            return Step()
        # A day of a whole space is always summarised.
        if POLICIES[self.policy].subject != "day" and not wants_memory(
            await settings_of(self._store, entry.subject.scope)
        ):
            await self._store.apply([FinishEntry(entry.subject, entry.last_seq, None)])
            return Step()
        try:
            step = await self.steps.step(entry)
        except (NotFound, SourcesChanged):
            # Another worker did it or a part of it, or a source was edited, taken back or erased. The next check finds
            # the rest.
            return Step()
        if not step.made:
            await self._store.apply([FinishEntry(entry.subject, entry.last_seq, step.look_again_at)])
        return step

    async def summarize(self, scope: Scope) -> list[Summary]:
        """Summarise now, even a single message, and return the new summaries."""
        steps = self.steps or TreeSteps(self.executor)
        await self.walk()
        made: list[Summary] = []
        tries = 0
        for _ in range(_MOST_STEPS):
            subject = steps.subject(scope)
            entry = await self._store.read(PlannedEntry(subject)) or Entry(subject, 0, 0, 0, 0, None)
            try:
                step = await steps.step(entry, asked=True)
            except (NotFound, SourcesChanged):
                tries += 1
                if tries > _TRIES:
                    raise
                continue
            if not step.made:
                break
            made += step.made
            tries = 0
        return made

    async def summarize_thread(self, scope: Scope, days: int | None = None) -> str:
        """Return a summary of the newest messages of a thread, of everybody who did not switch memory off.

        With `days`, only of those of the last days. If nothing was told in them, it says so.
        """
        since = None
        if days is not None:
            first = CalendarSteps(self.executor).today(scope.space) - timedelta(days=days - 1)
            since, _ = bounds(first, self.executor.profile.zone(scope.space))
        where = MessageFilter(since=since)
        messages = await self._store.read(Messages(scope, within="thread", limit=_REQUESTED_PAGE, where=where))
        wanted = await self.executor.of_those_who_want_it(messages)
        if not wanted:
            return ""
        # Private memories of the one who asks do not show in what everybody reads, only the meaning of the messages.
        known = NOTHING_KNOWN._replace(worth=await self.executor.worth(wanted))
        room, quiet = self.executor.room_for(wanted), days is not None
        earlier = await self._store.read(Messages(scope, within="thread", limit=TELLING_LANGUAGE)) if quiet else []
        writer = self.executor.writer
        return (await writer.of_messages(scope, wanted, room, known, quiet=quiet, earlier=earlier)).text

    async def edit(self, scope: Scope, summary: int, text: str, editor: str) -> Summary:
        """Store an edited summary as its next version."""
        if len(summary_text(text)) > LONGEST_EDIT:
            raise TooLarge(f"the summary has {len(text):,} characters; at most {LONGEST_EDIT:,} are allowed", "text")
        change = Revise(scope, summary, text, edited_by=editor, prompt=EDITED, created_at=self.clock(), actor=editor)
        return (await self._store.apply([change])).summary

    async def update_summary(self, scope: Scope, text: str, covers: int, model: str | None) -> Summary:
        """Store a rolling summary that the caller made, of the first `covers` messages of the thread."""
        rolling, store = RollingSteps(self.executor), self._store
        current = await rolling.current(scope)
        covered = 0 if current is None else current.messages
        if current is not None and covers == covered:
            change = Revise(scope, current.id, text, model=model, prompt="given", created_at=self.clock())
            return (await store.apply([change])).summary
        if covers < covered:
            raise InvalidInput(
                f"the summary of this thread covers {covered} messages; a new one must cover at least as many"
            )
        messages: list[Message] = []
        while (known := covered + sum(not message.replaced for message in messages)) < covers:
            after = messages[-1].seq if messages else 0 if current is None else current.last
            # Versions that were replaced, and what was taken back, are covered but do not count.
            page = await store.read(MessagesAfter(scope, after, covers - known, here=True))
            if not page:
                raise InvalidInput(f"this thread has {known} messages; a summary cannot cover {covers}")
            messages += page
        draft = ViewDraft(
            scope,
            "rolling",
            text,
            first=messages[0].seq,
            last=messages[-1].seq,
            messages=len(messages),
            reach="thread",
            previous=None if current is None else current.id,
            model=model,
            prompt="given",
            created_at=self.clock(),
        )
        return (await self.executor.store_views([draft]))[0]

    async def messages_for_llm(self, scope: Scope, limit: int) -> list[ChatMessage]:
        """Return the rolling summary as a system message and all messages that it does not cover.

        Without a summary, the newest `limit` messages. With one, `limit` only bounds what other people said.
        """
        store = self._store
        current = await RollingSteps(self.executor).current(scope)
        newest = await store.read(Messages(scope, within="thread", limit=limit))
        if current is None or not current.valid:
            return _chat(newest)
        rest = [message for message in newest if message.user != scope.user]
        after = current.last
        while page := await store.read(MessagesAfter(scope, after, _REQUESTED_PAGE, here=True)):
            rest += [message for message in page if not message.replaced]
            after = page[-1].seq
        rest.sort(key=lambda message: message.position)
        head: ChatMessage = {
            "role": "system",
            "content": f"Summary of the conversation so far ({current.period}):\n{current.text}",
        }
        return [head, *_chat(rest)]

    async def day(self, scope: Scope, wanted: date | None) -> Summary | None:
        """Return the summary of a user's day; today's is updated if it is due. If that fails, return the stored one."""
        calendar = CalendarSteps(self.executor)
        when = wanted or calendar.today(scope.space)
        made = await self._bring_up_to_date(calendar, scope, when)
        found = await self._store.read(Summaries(scope, kind="day", day=when))
        if found and not made:
            self.metrics.cache_hit("day")
        if not found:
            self._say_why_not()
        return found[0] if found else None

    async def week(self, scope: Scope) -> Summary | None:
        """Return the summary of the six days before today; make it if it is missing."""
        calendar = CalendarSteps(self.executor)
        for when in calendar.history_days(calendar.today(scope.space)):
            await self._bring_up_to_date(calendar, scope, when)
        try:
            found = await calendar.week(scope)
        except (ModelError, NotFound, SourcesChanged) as error:
            _log.warning("the week of %r could not be summarised: %s", scope.user, error)
            return None
        if found is None:
            self._say_why_not()
        return found

    async def analyze(self, scope: Scope) -> HistoryContext:
        """Analyse the whole history now, under any policy, and return the history context. Archives nothing."""
        steps, store = TiersSteps(self.executor), self._store
        for _ in range(_MOST_STEPS):
            total = (await store.read(UserLedger(scope))).messages
            try:
                if not await steps.analyse_more(scope, total):
                    break
            except SourcesChanged:
                continue  # another worker has just done it
        return await self.history_context(scope)

    async def history_context(self, scope: Scope) -> HistoryContext:
        """Return the history context; the initial one if there is none."""
        current = await TiersSteps(self.executor).current(scope)
        if current is None:
            return BASELINE
        known: Mapping[str, Any] = current.details or {}
        today = CalendarSteps(self.executor).today(scope.space)
        items = [
            HistoryItem(
                shortened(str(found["text"]), 500) if len(str(found["text"])) > 500 else str(found["text"]),  # noqa: PLR2004
                int(found["priority"]),
                float(found["relevance"]),
                tuple(found.get("tags", ())),
                None if found.get("expires") is None else date.fromisoformat(found["expires"]),
            )
            for found in known.get("items", ())
        ]
        return HistoryContext(
            current.text if current.valid else BASELINE.text,
            tuple(known.get("topics", ())),
            tuple(known.get("preferences", ())),
            str(known.get("style", "")),
            tuple(item for item in items if item.expires is None or item.expires >= today),
            current.messages,
            current.created_at,
        )

    async def read_tiers(self, scope: Scope, within: Within = "user") -> Tiers:
        """Return the tiers of a user, or with `within="thread"` of the scope's thread."""
        store = self._store
        rules = TiersSteps(self.executor).rules
        total = (await store.read(UserLedger(scope, here=within != "user"))).messages
        newest = await store.read(Messages(scope, within=within, limit=rules.short_term + rules.mid_term))
        cleared = cleared_up_to(await settings_of(store, scope))
        sizes = windows([message.seq for message in newest], cleared, rules)
        end = len(newest) - sizes.short_term
        mid = newest[max(0, end - sizes.mid_term) : end]
        return Tiers(tuple(newest[end:]), tuple(mid), total, await self.history_context(scope))

    def _say_why_not(self) -> None:
        """Log why there are no summaries of days, where the profile makes none."""
        if self.policy != "calendar":
            _log.warning(
                "there are no summaries of days and weeks: this profile's policy is %r; use one with the policy "
                "'calendar', such as 'community'",
                self.policy,
            )

    async def _bring_up_to_date(self, calendar: CalendarSteps, scope: Scope, when: date) -> bool:
        """Summarise a day if it is due; return whether it was."""
        if self.policy == "calendar":
            await self.walk()
        subject = calendar.subject(scope)._replace(day=when.isoformat())
        entry = await self._store.read(PlannedEntry(subject))
        if entry is None or entry.last_seq <= entry.done_seq:
            return False
        try:
            return bool((await calendar.step(entry)).made)
        except SourcesChanged:
            return False  # somebody else has just made it
        except ModelError as error:
            _log.warning("the day %s of %r could not be summarised: %s", when, scope.space, error)
            return False

    async def summaries_to_rewrite(self, limit: int, after: int = 0) -> list[Summary]:
        """Return active summaries made without a model, if a model is configured now."""
        if not self.redo or not self.executor.writer.has_model():
            return []
        found: list[Summary] = []
        for kind in POLICIES[self.policy].kinds:
            found += await self._store.read(SummariesWithoutModel(kind, WITHOUT_MODEL, after, limit - len(found)))
        return found

    async def rewrite_with_model(self, summary: Summary) -> Summary | None:
        """Let a model write the next version of a summary.

        Return None if it failed or another process was faster. Raises NotFound if the summary was deleted, because a
        message that it covers was taken back or erased.
        """
        executor, scope = self.executor, Scope(summary.space, summary.user, summary.thread)
        below = [await executor.store.read(SummaryById(scope, source)) for source in summary.sources]
        messages = []
        if summary.level == 1 and summary.reach != "sources":
            covered = await executor.store.read(CoveredMessages(scope, summary.id))
            messages = [message for message in covered if message.seq >= summary.fresh]
        characters = executor.profile.summary_characters
        heard = await executor.heard(scope, messages)
        if summary.kind != "day":  # with the others' messages in their days, erasing finds what was read for days
            heard = [message for message in heard if message.thread in summary.heard.get(message.user, ())]
        said = [*messages, *heard]
        if summary.kind in ("rolling", "history"):
            before, newer = below[0] if below else None, executor.room_for(said)
            written = await executor.writer.onwards(scope, before, said, characters, newer)
        elif summary.kind == "day":
            written = await executor.writer.of_messages(scope, said, executor.profile.day_characters)
        elif below:
            known = await executor.known_below(scope, below)
            written = await executor.writer.of_summaries(scope, below, characters, known)
        else:
            known = await executor.known_of(scope, messages, await executor.worth(said))
            written = await executor.writer.of_messages(scope, said, executor.room_for(said), known)
        if written.model is None:
            return None
        change = Revise(
            scope,
            summary.id,
            written.text,
            model=written.model,
            prompt=written.prompt,
            quality=await executor.quality(written, said, below),
            created_at=self.clock(),
        )
        try:
            return (await executor.store.apply([change])).summary
        except SourcesChanged:
            return None
