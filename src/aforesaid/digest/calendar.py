"""The calendar policy: summaries of a space's days for each participant, and of the six days before today."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import groupby
from typing import Final, NamedTuple

from aforesaid.digest.executor import Executor
from aforesaid.digest.sources import DayTalk, Person, newest, shown_numbers
from aforesaid.digest.tree import NOTHING, Decision, MakeDay, Step, that_fit
from aforesaid.digest.writing import TELLING_LANGUAGE, WITHOUT_MODEL, Written, quiet_day
from aforesaid.domain.checks import EARLIEST, LATEST, microseconds, moment, to_zone
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Entry, Passed, Scope, Subject, Touch, direct_thread, is_direct
from aforesaid.domain.summary import Summary, ViewDraft
from aforesaid.errors import InvalidInput
from aforesaid.models.embed.caching import MessageVectors
from aforesaid.models.prompts import name_speakers
from aforesaid.profiles.recipe import POLICIES
from aforesaid.store.agenda import FinishEntry, PlannedEntry
from aforesaid.store.messages import Messages, MessagesBetween
from aforesaid.store.summaries import Summaries


@dataclass(frozen=True, slots=True)
class CalendarLedger:
    """The input of the calendar policy for one day of a space. Times are in microseconds."""

    ends_at: int
    now: int
    last_seq: int
    """The newest message of the day."""
    done_seq: int
    """The newest message of the day when it was last summarised; 0 if it was not."""
    done_at: int | None


@dataclass(frozen=True, slots=True)
class CalendarRules:
    refresh: int = 3_600_000_000
    """Minimum microseconds between two summaries of today. A past day is summarised once."""


def decide(ledger: CalendarLedger, rules: CalendarRules) -> Decision:
    """Decide whether to summarise the day. Without new messages it is not summarised again."""
    over = ledger.now >= ledger.ends_at
    if ledger.last_seq <= ledger.done_seq:
        return NOTHING if over else Decision(None, ledger.ends_at)
    if over or ledger.done_at is None or ledger.now >= ledger.done_at + rules.refresh:
        return Decision(MakeDay())
    return Decision(None, min(ledger.done_at + rules.refresh, ledger.ends_at))


def day_of(at: int, zone: tzinfo) -> date:
    return to_zone(moment(at), zone).date()


def bounds(day: date, zone: tzinfo) -> tuple[int, int]:
    """Return the start of a day and of the next one. Days with a clock change are longer or shorter."""
    begin = EARLIEST if day == date.min else _midnight(day, zone)
    return begin, LATEST + 1 if day == date.max else _midnight(day + timedelta(days=1), zone)


def _midnight(day: date, zone: tzinfo) -> int:
    try:
        return microseconds(datetime(day.year, day.month, day.day, tzinfo=zone), "the day")
    except (InvalidInput, OverflowError):  # so near to the end of the calendar that UTC has no name for it
        return microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC), "the day")


def history_days(today: date, window: int = 7) -> tuple[date, ...]:
    """Return the days of a window before today, oldest first: days 2 to 7, today being day 1."""
    return tuple(today - timedelta(days=back) for back in range(window - 1, 0, -1))


_CHARACTERS: Final = 60_000
"""Characters of a day that fit into one call; a longer day takes several calls."""
_PATIENCE_SECONDS: Final = 60.0
"""Maximum seconds to wait for a day's first summary that another process is making."""
_LOOK_AGAIN: Final = 10_000_000
"""Microseconds before a day that another process was summarising is checked again."""


class _Day(NamedTuple):
    space: str
    day: date
    since: int
    until: int


class CalendarSteps:
    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.rules = CalendarRules(executor.profile.today_minutes * 60_000_000)

    def subject(self, scope: Scope) -> Subject:
        return Subject("calendar", scope.space, day=self.today(scope.space).isoformat())

    def today(self, space: str) -> date:
        return day_of(self._executor.clock(), self._executor.profile.zone(space))

    def history_days(self, today: date) -> tuple[date, ...]:
        """Return the days before today that the week summary covers, oldest first."""
        return history_days(today, self._executor.profile.summary_days)

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Summarise a day if it is due; once it is over, also the week of its participants."""
        del asked  # nobody can have today summarised more than once an hour
        step: Step = await self._executor.flights.run(entry.subject, lambda: self._step(entry.subject))
        return step

    async def _step(self, subject: Subject) -> Step:
        # Read now, not earlier: a step that has just ended may have done it.
        entry = await self._executor.store.read(PlannedEntry(subject))
        if entry is None:
            return Step()
        space, now = subject.space, self._executor.clock()
        when = _Day(space, entry.subject.date, *bounds(entry.subject.date, self._executor.profile.zone(space)))
        ledger = CalendarLedger(when.until, now, entry.last_seq, entry.done_seq, entry.done_at)
        decision = decide(ledger, self.rules)
        if decision.plan is not None:
            return await self._make_day_once(entry, when)
        if when.day == self.today(space) - timedelta(days=1):
            # Make one missing week summary of a participant of yesterday.
            days = self.history_days(when.day + timedelta(days=1))
            messages = await self._executor.store.read(MessagesBetween(when.space, when.since, when.until))
            for user in dict.fromkeys(message.user for message in await self._executor.of_those_who_want_it(messages)):
                scope = Scope(when.space, user, direct_thread(user))
                week, made = await self._week(scope, days)
                if week is not None and made:
                    return Step((week,))
            return Step()
        return Step(look_again_at=decision.look_again_at)

    async def week(self, scope: Scope) -> Summary | None:
        """Return the summary of days 2 to 7 of a user; make it if it is missing."""
        days = self.history_days(self.today(scope.space))
        if not days:
            return None
        return (await self._week(scope, days))[0]

    async def _week(self, scope: Scope, days: Sequence[date]) -> tuple[Summary | None, bool]:
        """Return the summary of some days of a user, and whether it was made now."""

        async def find_or_make() -> tuple[Summary | None, bool]:
            stored = await self._executor.store.read(Summaries(scope, kind="week", day=days[-1]))
            return (stored[0], False) if stored else (await self._make_week(scope, days), True)

        key = ("week", scope.space, scope.user, days[-1])
        found: tuple[Summary | None, bool] = await self._executor.flights.run(key, find_or_make)
        return found

    async def _make_day_once(self, entry: Entry, when: _Day) -> Step:
        """Summarise a day, unless another process does so now: then use the older summary, or wait for the first.

        A process that was killed while it made the first one stops renewing its lease; then it is made here.
        """
        leases, lease = self._executor.leases, ("day", when.space, entry.subject.day)
        while True:
            async with leases.hold(*lease) as taken:
                if taken:
                    current = await self._executor.store.read(PlannedEntry(entry.subject))
                    # Another process may have made it just before the lease was taken.
                    return Step() if current != entry else await self._make_day(entry, when)
            look_again = Step(look_again_at=self._executor.clock() + _LOOK_AGAIN)
            if entry.done_at is not None or not await leases.wait_until_free(*lease, seconds=_PATIENCE_SECONDS):
                return look_again

    async def _make_day(self, entry: Entry, when: _Day) -> Step:
        store, now = self._executor.store, self._executor.clock()
        messages = await store.read(MessagesBetween(when.space, when.since, when.until))
        wanted = await self._executor.of_those_who_want_it(messages)
        writer, characters = self._executor.writer, self._executor.profile.day_characters
        parts: dict[str, list[Written]] = {}
        told: dict[str, list[Message]] = {}
        by_rules: dict[str, list[Message]] = {}
        prompt = WITHOUT_MODEL
        for talk in talks(when.day, newest(wanted)):
            scope = Scope(when.space, talk.people[0].user, talk.messages[0].thread)
            by_model, prompt = await writer.of_day(scope, talk, characters)
            for user, _ in talk.people:
                # In other threads they may not read.
                threads = {message.thread for message in talk.messages if message.user == user}
                here = [message for message in talk.messages if message.thread in threads]
                told.setdefault(user, []).extend(here)
                if user in by_model:
                    parts.setdefault(user, []).append(by_model[user])
                else:
                    by_rules.setdefault(user, []).extend(here)
        own = {user: [message for message in messages if message.user == user] for user in told}
        held = await self._executor.holding([message for said in own.values() for message in said])
        worth = await self._executor.worth([each for said in own.values() for each in said], held) if by_rules else {}
        for user in own if by_rules else ():
            scope = Scope(when.space, user, direct_thread(user))
            worth |= (await self._executor.known_of(scope, own[user], worth)).worth
        for user, said in by_rules.items():
            scope = Scope(when.space, user, direct_thread(user))
            text = await writer.of_persons_day(scope, said, characters, worth)
            if not text:
                text = quiet_day(said, await store.read(Messages(scope, limit=TELLING_LANGUAGE)))
            parts.setdefault(user, []).append(Written(text, None, prompt))
        drafts = [await self._draft(when, user, parts[user], own[user], told[user], held) for user in told]
        # The last message that was read, which may be newer than the cursor of the agenda.
        last = max((message.seq for message in messages), default=entry.last_seq)
        done = FinishEntry(entry.subject, max(last, entry.last_seq), when.until, done_at=now)
        made = await self._executor.store_views(drafts, done)
        return Step(tuple(made), len(messages))

    async def _draft(
        self,
        when: _Day,
        user: str,
        parts: Sequence[Written],
        own: Sequence[Message],
        said: Sequence[Message],
        held: MessageVectors | None,
    ) -> ViewDraft:
        scope = Scope(when.space, user, direct_thread(user))
        before = await self._executor.store.read(Summaries(scope, kind="day", day=when.day))
        written = Written("\n".join(part.text for part in parts), parts[0].model, parts[0].prompt)
        return ViewDraft(
            scope,
            "day",
            written.text,
            first=min(message.seq for message in own),
            last=max(message.seq for message in own),
            messages=len(own),
            since=when.since,
            until=when.until,
            previous=before[0].id if before else None,
            day=when.day,
            model=written.model,
            prompt=written.prompt,
            quality=await self._executor.quality(written, said, (), held),
            created_at=self._executor.clock(),
            # What others said is checked by their own drafts, which are stored together with this one.
            shown=shown_numbers(own),
        )

    async def _make_week(self, scope: Scope, days: Sequence[date]) -> Summary | None:
        store = self._executor.store
        found = [each for day in days for each in await store.read(Summaries(scope, kind="day", day=day))]
        if not found:
            return None
        first, last = min(each.first for each in found), max(each.last for each in found)
        names = name_speakers(await store.read(Messages(scope, limit=1)))
        name = names.get(scope.user, scope.user)
        written = await self._executor.writer.of_week(scope, name, found, self._executor.profile.week_characters)
        draft = ViewDraft(
            Scope(scope.space, scope.user, direct_thread(scope.user)),
            "week",
            written.text,
            first=first,
            last=last,
            messages=sum(each.covered for each in found),
            reach="sources",
            summaries=tuple(each.id for each in found),
            day=days[-1],
            model=written.model,
            prompt=written.prompt,
            quality=await self._executor.quality(written, (), found),
            created_at=self._executor.clock(),
        )
        return (await self._executor.store_views([draft]))[0]


def talks(day: date, messages: Sequence[Message], most: int = _CHARACTERS) -> list[DayTalk]:
    """Return the groups of messages to summarise: all shared threads together, and each direct chat.

    A direct chat is private, so its messages go into its own user's summary only.
    """
    found = []
    places = [(message.thread if is_direct(message.thread) else "", message) for message in messages]
    for _, group in groupby(sorted(places, key=lambda place: place[0]), key=lambda place: place[0]):
        rest = [message for _, message in group]
        names = name_speakers(rest)
        while rest:
            count = that_fit([len(message.text) for message in rest], most)
            part, rest = rest[:count], rest[count:]
            users = dict.fromkeys(message.user for message in part)
            people = tuple(Person(user, names.get(user, user)) for user in users)
            found.append(DayTalk(day, people, tuple(part)))
    return found


def affected_subjects(
    policy: str, passed: Sequence[Passed], now: int, zone: Callable[[str], tzinfo]
) -> tuple[Touch, ...]:
    """Return the subjects that these messages affect: a user, a user in a thread, or a day of a space."""
    found: dict[Subject, Touch] = {}
    for message in passed:
        subject = subject_of_user(policy, message.space, message.user, message.thread)
        if subject is None:
            subject = Subject(policy, message.space, day=day_of(message.at, zone(message.space)).isoformat())
        before = found.get(subject)
        found[subject] = Touch(
            subject,
            1 + (before.messages if before else 0),
            message.characters + (before.characters if before else 0),
            message.seq,
            now,
        )
    return tuple(found.values())


def subject_of_user(policy: str, space: str, user: str, thread: str) -> Subject | None:
    """Return the subject that a user's summaries depend on; None if they depend on the days of the space."""
    about = POLICIES[policy].subject
    if about == "day":
        return None
    return Subject(policy, space, user, thread if about == "thread" else "")
