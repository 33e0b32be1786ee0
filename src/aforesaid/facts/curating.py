"""Changes to single memories by hand: create, edit, deactivate, reactivate, approve, undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import cast

from aforesaid.domain.checks import Category, CategoryOrKind, moment, now, to_zone
from aforesaid.domain.memory import (
    BY_HAND,
    ENDED,
    INSTRUCTION,
    Event,
    MemoryDraft,
    MemoryRecord,
    MemoryVersion,
    category_and_kind,
    kind_of,
)
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, SourcesChanged, WrongState, quoted
from aforesaid.facts.candidate import DATED, event_in
from aforesaid.facts.people import person_called, subject_of
from aforesaid.facts.reconcile import REJECTED
from aforesaid.facts.timeline import zone_of
from aforesaid.facts.timing import timing
from aforesaid.profiles import Profile
from aforesaid.store import Store
from aforesaid.store.memories import AddMemory, ChangeMemory, Memories, MemoryById, MemoryVersions
from aforesaid.text.languages import guess_language
from aforesaid.text.times.find import read_requested_time

CLAIM = "claim"
"""Action of a version in which a worker claims a reminder to deliver it."""
_HOUR = timedelta(hours=1)
_NO_GRACE = timedelta(0)
_STILL_NOW = timedelta(minutes=5)
"""How far in the past a program's moment for a reminder may be: it computed "now" before the call."""
_LATEST = datetime.max.replace(tzinfo=UTC)


class Curator:
    """Changes single memories. Every change stores the version before it, and can be undone."""

    def __init__(self, store: Store, profile: Profile) -> None:
        self._store = store
        self._profile = profile

    async def note(self, draft: MemoryDraft, when: datetime | str | None, actor: str) -> MemoryRecord:
        """Store a memory that a person wrote, or a program for them.

        Without `when`, the time of a schedule, task, reminder or event is read from its text.
        """
        scope, category, text, at = draft.scope, draft.category, draft.text, moment(now())
        zone = await zone_of(self._store, self._profile, scope)
        event = None if when is None else _event_at(when, to_zone(at, zone), category)
        if event is None and (category in DATED or draft.kind == "event"):
            event = event_in(text, to_zone(at, zone), category)
        times = timing(category, at, event, self._profile.keep_days, zone)
        if when is None and event is not None and times.remind_at is not None:
            _refuse_the_past(event, to_zone(at, zone), due=times.remind_at)
        user = person_called(scope.user, None)
        keyed = category in {"fact", "preference"} and draft.about in (None, scope.user)
        draft = replace(
            draft,
            subject=subject_of(text, user, user) if keyed else None,
            event=event,
            remind_at=times.remind_at,
            expires_at=draft.expires_at or times.expires_at,
            valid_from=at,
            language=guess_language(text),
            confidence=1.0,
        )
        written = (await self._store.apply([AddMemory(draft, actor)])).memory
        if draft.sources and category == "reminder":
            # Deactivate memories extracted from the message that asked for a reminder, which would remind twice.
            for memory in await self._store.read(Memories(scope)):
                learned = memory.category in DATED and memory.extractor != BY_HAND
                if learned and not set(memory.sources).isdisjoint(written.sources):
                    await self.deactivate(scope, memory.id, actor)
        return written

    async def edit(
        self,
        scope: Scope,
        memory: int,
        actor: str,
        *,
        revision: int | None = None,
        when: datetime | str | None = None,
        **values: object,
    ) -> MemoryRecord:
        """Edit a memory. Values that are None stay as they are.

        `when` moves it. Without `when`, a new text moves it if it names another time than the old text.
        """
        before = await self._expected(scope, memory, revision)
        given = {key: value for key, value in values.items() if value is not None}
        if not given and when is None:
            raise InvalidInput(
                "nothing to change was given; pass at least one of text, category, importance, tags, priority, when, "
                "expires, about"
            )
        if "category" in given:
            category, kind = category_and_kind(cast("CategoryOrKind", given["category"]))
            # Forms send the category also where it was not changed, and it says less than the kind.
            same = before.kind if category == before.category else kind_of(category, (), before.event, before.subject)
            given["category"], given["kind"] = category, kind or same
        if given.get("kind", before.kind) != before.kind and given["kind"] == INSTRUCTION:
            # Whoever declares it a standing request says so, whatever extracted it.
            given["extractor"] = BY_HAND
        if given.get("about", before.about) != before.about:
            # Anybody can write the id of another user here. It is not evidence that the user knows them.
            given["extractor"] = BY_HAND
        if "text" in given:
            given["language"] = guess_language(str(given["text"]))
        after = replace(before, **given)  # type: ignore[arg-type] # checked by ChangeMemory
        zone = await zone_of(self._store, self._profile, scope)
        event = _moved(before, after, when, moment(now()).astimezone(zone))
        if event is not None:
            # A memory moved to another time. A delivered reminder becomes due again.
            keep_expiry = "expires_at" in given
            times = timing(after.category, moment(now()), event, self._profile.keep_days, zone)
            after = replace(after, event=event, remind_at=times.remind_at)
            if not keep_expiry:
                after = replace(after, expires_at=times.expires_at)
            if after.delivered_at is not None and times.remind_at is not None:
                after = replace(_active(after), delivered_at=None)
        if "text" in given:
            user = person_called(scope.user, None)
            after = replace(after, subject=subject_of(after.text, user, user) if before.subject is not None else None)
        return await self._change(after, "edit", actor)

    async def deactivate(self, scope: Scope, memory: int, actor: str, *, revision: int | None = None) -> MemoryRecord:
        """Deactivate a memory. It stays stored, and can be reactivated."""
        before = await self._expected(scope, memory, revision)
        if before.state == "deactivated":
            return before
        over = before.valid_to or moment(now())
        return await self._change(
            replace(before, state="deactivated", active=False, valid_to=over, reason="by hand"), "deactivate", actor
        )

    async def end(
        self, scope: Scope, memory: int, actor: str, *, at: datetime | None = None, revision: int | None = None
    ) -> MemoryRecord:
        """Record that an active memory was true until a moment (default: now)."""
        before = await self._expected(scope, memory, revision)
        if before.state != "active":
            raise WrongState(f"memory {memory} is not active: it is {before.state}", "memory")
        current = moment(now())
        ended = at or current
        if ended > current:
            raise InvalidInput("at lies in the future; to end a memory later, edit when it expires", "at")
        if at is not None and ended <= before.valid_from:
            since = before.valid_from.isoformat(timespec="seconds")
            raise InvalidInput(
                f"memory {memory} is true since {since}; at must be later (or deactivate the memory)", "at"
            )
        over = replace(before, state="expired", active=False, valid_to=ended, reason=ENDED)
        return await self._change(over, "end", actor)

    async def reactivate(self, scope: Scope, memory: int, actor: str, *, revision: int | None = None) -> MemoryRecord:
        """Reactivate a deactivated, superseded or expired memory. Raises WrongState for one that waits for approval."""
        before = await self._expected(scope, memory, revision)
        if before.state == "active":
            return before
        if before.state == "quarantined":
            raise WrongState(f"memory {memory} waits for approval; use approve or reject", "memory")
        return await self._change(_active(before), "reactivate", actor)

    async def approve(self, scope: Scope, memory: int, actor: str, *, revision: int | None = None) -> MemoryRecord:
        """Activate a quarantined memory."""
        return await self._change(_active(await self._waiting(scope, memory, revision)), "approve", actor)

    async def reject(self, scope: Scope, memory: int, actor: str, *, revision: int | None = None) -> MemoryRecord:
        """Reject a quarantined memory. It is not extracted again."""
        before = await self._waiting(scope, memory, revision)
        over = replace(before, state="deactivated", active=False, valid_to=moment(now()), reason=REJECTED)
        return await self._change(over, "reject", actor)

    async def undo(self, scope: Scope, memory: int, actor: str, *, revision: int | None = None) -> MemoryRecord:
        """Undo the last change of a memory.

        A memory that was never changed is deactivated, and what it had superseded is active again.
        """
        now_ = await self._expected(scope, memory, revision)
        versions = await self._store.read(MemoryVersions(scope, memory))
        if versions:
            before = versions[-1].before
            return await self._change(replace(before, revision=now_.revision, times=now_.times), "undo", actor)
        away = replace(now_, state="deactivated", active=False, valid_to=moment(now()), reason="undone")
        changes = [ChangeMemory(away, "undo", actor)]
        others = await self._store.read(Memories(scope, active=False))
        replaced = [old for old in others if old.state == "superseded" and old.superseded_by == memory]
        changes += [ChangeMemory(_active(old), "undo", actor) for old in replaced]
        return (await self._store.apply(changes)).memory

    async def claim(self, scope: Scope, memory: int, until: datetime, at: datetime, actor: str) -> bool:
        """Postpone a due reminder until a moment, to deliver it. True for the one call that did so."""
        before = await self._reminder(scope, memory)
        if before.remind_at is None or before.remind_at > at or not _waits(before):
            return False
        try:
            await self._change(replace(before, remind_at=until), CLAIM, actor)
        except SourcesChanged:
            return False
        return True

    async def deliver(self, scope: Scope, memory: int, actor: str) -> bool:
        """Mark a reminder as delivered. True for the one call that did it, so that it is delivered once."""
        before = await self._reminder(scope, memory)
        if not _waits(before):
            return False
        at = moment(now())
        claims = claims_of(await self._store.read(MemoryVersions(scope, memory)))
        # Restore the time of the reminder, which claims have postponed.
        remind = claims[0].before.remind_at if claims else before.remind_at
        done = replace(
            before,
            state="expired",
            active=False,
            remind_at=remind,
            delivered_at=at,
            valid_to=at,
            reason="delivered",
        )
        try:
            await self._change(done, "deliver", actor)
        except SourcesChanged:
            return False
        return True

    async def _reminder(self, scope: Scope, memory: int) -> MemoryRecord:
        found = await self._store.read(MemoryById(scope, memory))
        if found.remind_at is None:
            raise WrongState(f"memory {memory} is no reminder", "memory")
        return found

    async def _expected(self, scope: Scope, memory: int, revision: int | None) -> MemoryRecord:
        found = await self._store.read(MemoryById(scope, memory))
        if revision not in (None, found.revision):
            raise SourcesChanged(f"memory {memory} was changed after it was read; read it again")
        return found

    async def _waiting(self, scope: Scope, memory: int, revision: int | None) -> MemoryRecord:
        before = await self._expected(scope, memory, revision)
        if before.state != "quarantined":
            raise WrongState(f"memory {memory} does not wait for approval: it is {before.state}", "memory")
        return before

    async def _change(self, memory: MemoryRecord, action: str, actor: str) -> MemoryRecord:
        return (await self._store.apply([ChangeMemory(memory, action, actor)])).memory


def claims_of(versions: Sequence[MemoryVersion]) -> Sequence[MemoryVersion]:
    """Return the current claims of a reminder: those after its last other change."""
    first = len(versions)
    while first and versions[first - 1].action == CLAIM:
        first -= 1
    return versions[first:]


def _event_at(when: datetime | str, said: datetime, category: Category) -> Event:
    """Return the hour that begins at `when`. Without a zone it is in the user's; words are read as in a chat."""
    if isinstance(when, str):
        requested = read_requested_time(when, said)
        if requested is None:
            raise InvalidInput(
                f"no time can be read in {quoted(when[:100])}; write one like 'tomorrow at 9' or '2026-12-03 10:00'",
                "when",
            )
        event = Event(*requested.when)
        if category == "reminder":
            _refuse_the_past(event, said)
        return event
    start = when.replace(tzinfo=said.tzinfo) if when.tzinfo is None else when
    event = Event(start, min(start, _LATEST - _HOUR) + _HOUR, timed=True)
    if category == "reminder":
        _refuse_the_past(event, said, grace=_STILL_NOW)
    return event


def _moved(before: MemoryRecord, after: MemoryRecord, when: datetime | str | None, said: datetime) -> Event | None:
    """Return the new time of an edited memory; None if it keeps its time."""
    if when is not None:
        return _event_at(when, said, after.category)
    if after.category not in DATED or after.text == before.text:
        return None
    # "Tomorrow" in a text that is corrected days later still means the day after it was written.
    then = to_zone(before.created_at, said.tzinfo)
    if event_in(after.text, then, after.category) == event_in(before.text, then, after.category):
        return None
    event = event_in(after.text, said, after.category)
    if event is not None and after.category == "reminder":
        _refuse_the_past(event, said)
    return event


def _refuse_the_past(
    event: Event, said: datetime, *, due: datetime | None = None, grace: timedelta = _NO_GRACE
) -> None:
    """Raise InvalidInput for a reminder that is due in the past (default: at the event, or after its last day)."""
    at = due or (event.start if event.timed else event.end)
    if at.timestamp() + grace.total_seconds() <= said.timestamp():
        when = _named(event, said.tzinfo)
        raise InvalidInput(f"{when} ({said.tzinfo}) is in the past; name a time that is still to come", "when")


def _named(event: Event, zone: tzinfo | None) -> str:
    """Return the moment of an event, or its days. The end of an event is the first moment after it."""
    start, end = to_zone(event.start, zone), to_zone(event.end, zone)
    if event.timed:
        return f"{start:%A, %d %B %Y, %H:%M}"
    first, last = (f"{each:%A, %d %B %Y}" for each in (start, end - timedelta.resolution))
    return first if first == last else f"{first} to {last}"


def _waits(reminder: MemoryRecord) -> bool:
    return reminder.delivered_at is None and reminder.state == "active"


def _active(memory: MemoryRecord) -> MemoryRecord:
    expires = None if memory.state == "expired" else memory.expires_at
    return replace(
        memory, state="active", active=True, valid_to=None, superseded_by=None, reason="", expires_at=expires
    )
