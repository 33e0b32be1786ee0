"""The API for what is known about a user: memories, reminders, facts, portraits, preferences, the timeline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from aforesaid.domain import checks
from aforesaid.domain.checks import Category, CategoryOrKind, Kind, MemoryState, to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import (
    BY_HAND,
    USUAL_IMPORTANCE,
    USUAL_PRIORITY,
    Facts,
    MemoryDraft,
    MemoryRecord,
    MemoryVersion,
    category_and_kind,
    in_state,
)
from aforesaid.domain.message import Message
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.front.handle import IN_METHOD, MemoryHandle, UserHandle, at_once, public
from aforesaid.recall import SearchRequest
from aforesaid.store.memories import (
    DueMemories,
    FactsVersions,
    Memories,
    MemoriesOfSpace,
    MemoryById,
    MemoryVersions,
    WaitingReminders,
)
from aforesaid.store.people import AuditAccess, DisplayNames

if TYPE_CHECKING:
    from aforesaid.facts import ForgetResult, Preferences, RememberResult
    from aforesaid.facts.describing import KnownPerson


MOST_DUE = 1_000
"""Maximum number of reminders that one call returns."""
MOST_ASKED = 2_000
"""Maximum length, in characters, of a question about the schedule. Reading times takes the square of it."""
MOST_EVENTS = 1_000
"""Maximum number of memories that a question about the timeline chooses, those that fit best."""
MOST_LISTED = 500
"""Maximum number of memories of a space that one call returns."""


class AllMemories(MemoryHandle):
    """The memories of all users."""

    @public(unaudited="for delivery: `claim` and `delivered` leave the rows")
    async def reminders(self, *, at: datetime | None = None) -> list[MemoryRecord]:
        """Return the due reminders of all users, oldest first. `user(…).claim(…)` claims one."""
        moment = at or datetime.now(UTC)
        return await self._services.store.read(DueMemories("reminder", moment, MOST_DUE))

    @public(audit=IN_METHOD, operation="list_memories", loose=("containing",))
    async def memories(
        self,
        category: Category | None = None,
        *,
        space: str | int = DEFAULT_SPACE,
        user: str | int | None = None,
        active: bool | None = True,
        state: MemoryState | None = None,
        kind: Kind | None = None,
        containing: str | None = None,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
    ) -> list[MemoryRecord]:
        """Return the newest memories of a space, of all users or one, newest first.

        To read on, pass the id of the last one as `before`. `containing` keeps those whose text has these words,
        whatever their case. With an `actor`, the audit log names who looked.
        """
        where = checks.identifier(space, "the space", "space")
        whose = None if user is None else checks.identifier(user, "the user id", "user")
        last = None if before is None else _number(before)
        most = min(checks.at_least(limit, 1, "the limit", "limit"), MOST_LISTED)
        words = "" if containing is None else checks.query_text(containing).casefold()
        now = datetime.now(UTC)
        found: list[MemoryRecord] = []
        # A memory that is over counts as expired before it is stored so. Texts are compared here, whatever their case.
        asked = MemoriesOfSpace(
            where,
            user=whose,
            active=active if state is None else None,
            category=category,
            kind=kind,
            state=None if state == "expired" else state,
        )
        while len(found) < most:
            size = MOST_LISTED if words or state == "expired" else most - len(found)
            page = await self._services.store.read(replace(asked, before=last, limit=size))
            found += [each for each in page if in_state(each, active, state, now) and words in each.text.casefold()]
            if len(page) < size:
                break
            last = page[-1].id
        found = found[:most]
        if actor is not None and found:
            who, people = checks.identifier(actor, "the actor"), dict.fromkeys(each.user for each in found)
            seen = [AuditAccess(Scope.of(each, where), who, "memory.read", "memories") for each in people]
            await self._services.store.apply(seen)
        return found

    @public(audit=IN_METHOD)
    async def memory(self, memory: int, *, space: str | int = DEFAULT_SPACE, actor: str | None = None) -> MemoryRecord:
        """Return one memory of a space by its id, of any user. Raises NotFound, also for an id of another space.

        With an `actor`, the audit log names who looked.
        """
        number = _number(memory)
        where = checks.identifier(space, "the space", "space")
        before = None if number == checks.LARGEST else number + 1
        found = await self._services.store.read(MemoriesOfSpace(where, before=before, limit=1))
        if not found or found[0].id != number:
            raise NotFound(f"there is no memory {number}")
        if actor is not None:
            who = checks.identifier(actor, "the actor")
            seen = AuditAccess(Scope.of(found[0].user, where), who, "memory.read", f"memory {number}")
            await self._services.store.apply([seen])
        return found[0]


class UserMemories(UserHandle):
    """The memories of one user."""

    @public(audit=("memory.read", "memories"))
    async def memories(
        self,
        category: Category | None = None,
        *,
        active: bool | None = True,
        state: MemoryState | None = None,
        at: datetime | None = None,
        kind: Kind | None = None,
        about: str | None = None,
    ) -> list[MemoryRecord]:
        """Return memories, most important first.

        With `active=None` those in every state; with `state`, those that are `quarantined`, `superseded`, … With `at`,
        what was believed at that moment. `kind` is finer than the category; `about` names a person by id or name.
        """
        from aforesaid.facts.people import is_about  # noqa: PLC0415 - as all of the rules

        everything = state is not None or at is not None
        found = await self._services.store.read(Memories(self.scope, active=None if everything else active))
        now = datetime.now(UTC)
        return [
            memory
            for memory in found
            if category in (None, memory.category)
            and kind in (None, memory.kind)
            and (about is None or is_about(memory, about))
            and in_state(memory, None if everything else active, state, now)
            and (at is None or memory.held_at(at))
        ]

    @public(audit=IN_METHOD, loose=("when",))
    async def note(
        self,
        category: CategoryOrKind,
        text: str,
        *,
        importance: int = USUAL_IMPORTANCE,
        tags: Sequence[str] = (),
        priority: int = USUAL_PRIORITY,
        when: datetime | str | None = None,
        expires: datetime | None = None,
        source: Message | None = None,
        about: str | None = None,
    ) -> MemoryRecord:
        """Store a memory of a category, or of a kind that no category names: event, relationship or instruction.

        `when` is when it happens or when to remind; default: the time in the text. It is a moment, or words such as
        "tomorrow at 9"; without a time zone it is in the user's. `source` is the user's message that asked for it.
        `about` is whom it is about, if not the user: the id of another user, or a name.
        """
        sort, kind = category_and_kind(category)
        draft = MemoryDraft(
            self.scope,
            sort,
            checks.filled_text(text, "the text", "text"),
            importance=importance,
            tags=tuple(tags),
            sources=() if source is None else (source.seq,),
            priority=priority,
            expires_at=expires,
            kind=kind,
            about=about,
        )
        return await self._services.curator.note(draft, _when(when), self._who)

    @public(audit=IN_METHOD, loose=("when",))
    async def edit_memory(
        self,
        memory: int,
        *,
        text: str | None = None,
        category: CategoryOrKind | None = None,
        importance: int | None = None,
        tags: Sequence[str] | None = None,
        priority: int | None = None,
        when: datetime | str | None = None,
        expires: datetime | None = None,
        about: str | None = None,
        revision: int | None = None,
    ) -> MemoryRecord:
        """Change a memory. Arguments that are not given keep their value; the old version is kept.

        `when` moves it, and is read as for `note`. A new text that names another time moves it as well.
        With `revision`, it must not have been changed since it had that one; otherwise SourcesChanged is raised.
        """
        return await self._services.curator.edit(
            self.scope,
            _number(memory),
            self._who,
            revision=revision,
            text=None if text is None else checks.filled_text(text, "the text", "text"),
            category=category,
            importance=importance,
            tags=None if tags is None else tuple(tags),
            priority=priority,
            when=_when(when),
            expires_at=expires,
            about=about,
        )

    @public(audit=IN_METHOD)
    async def deactivate(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Deactivate a memory; it can be reactivated. `revision` works as in `edit_memory`."""
        return await self._services.curator.deactivate(self.scope, _number(memory), self._who, revision=revision)

    @public(audit=IN_METHOD)
    async def end_memory(self, memory: int, *, at: datetime | None = None, revision: int | None = None) -> MemoryRecord:
        """Record that an active memory is no longer true, since `at` (default: now).

        It stays true for earlier times (`memories(at=…)`), and can be reactivated. `at` cannot lie in the future: for
        that, edit `expires`. `revision` works as in `edit_memory`.
        """
        ended = None if at is None else checks.moment(checks.microseconds(at, "at", "at"))
        return await self._services.curator.end(self.scope, _number(memory), self._who, at=ended, revision=revision)

    @public(audit=IN_METHOD)
    async def reactivate(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Reactivate a memory that was deactivated, superseded or expired."""
        return await self._services.curator.reactivate(self.scope, _number(memory), self._who, revision=revision)

    @public(audit=IN_METHOD)
    async def approve(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Approve a quarantined memory (`memories(state="quarantined")`)."""
        return await self._services.curator.approve(self.scope, _number(memory), self._who, revision=revision)

    @public(audit=IN_METHOD)
    async def reject(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Reject a quarantined memory, also when it is stated again."""
        return await self._services.curator.reject(self.scope, _number(memory), self._who, revision=revision)

    @public(audit=IN_METHOD)
    async def undo(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Undo the last change of a memory. Undoing its creation deactivates it and restores what it replaced."""
        return await self._services.curator.undo(self.scope, _number(memory), self._who, revision=revision)

    @public(audit=("memory.read", "history of memory {memory}"))
    async def memory_history(self, memory: int) -> list[MemoryVersion]:
        """Return the earlier versions of a memory, oldest first, and who changed it."""
        return await self._services.store.read(MemoryVersions(self.scope, _number(memory)))

    @public(audit=("memory.read", "schedule"), loose=("when",))
    async def schedule(self, when: str | None = None, *, at: datetime | None = None) -> list[MemoryRecord]:
        """Return scheduled events, soonest first: "what do I have Monday?", "next week". Default: all future ones.

        `at` is when it is asked (default: now).
        """
        from aforesaid.facts import happening, zone_of  # noqa: PLC0415 - as all of the rules

        asked = at or datetime.now(UTC)
        zone = await zone_of(self._services.store, self._services.profile, self.scope)
        found = await self._services.store.read(Memories(self.scope))
        return happening(found, to_zone(asked, zone), None if when is None else checks.query_text(when, MOST_ASKED))

    @public(audit=("memory.read", "reminders"))
    async def reminders(self, *, due: bool = False, at: datetime | None = None) -> list[MemoryRecord]:
        """Return undelivered reminders, soonest first; with `due`, only those that are due.

        Those without a time stand last, and are never due.
        """
        moment = at or datetime.now(UTC)
        return await self._services.store.read(WaitingReminders(self.scope, due=moment if due else None))

    @public(unaudited="how times are shown, and nothing else")
    async def time_zone(self) -> tzinfo:
        """Return the user's time zone: their setting `time_zone`, else the one of their space or of the profile."""
        from aforesaid.facts import zone_of  # noqa: PLC0415 - as all of the rules

        return await zone_of(self._services.store, self._services.profile, self.scope)

    @public(audit=IN_METHOD)
    async def claim(self, memory: int, *, until: datetime, at: datetime | None = None) -> bool:
        """Claim a due reminder. True for one caller only, which sends it and then calls `delivered`.

        Until then it is put off: whoever is killed in between, or cannot send it, leaves it due again at `until`.
        `at` is when it is asked (default: now).
        """
        moment = at or datetime.now(UTC)
        if until <= moment:
            raise InvalidInput("until must be later than now", "until")
        return await self._services.curator.claim(self.scope, _number(memory), until, moment, self._who)

    @public(audit=IN_METHOD)
    async def delivered(self, memory: int) -> bool:
        """Mark a reminder as delivered. True for the first caller only."""
        return await self._services.curator.deliver(self.scope, _number(memory), self._who)

    @public(audit=("memory.read", "memory {memory}"))
    async def read_memory(self, memory: int) -> MemoryRecord:
        """Return one memory of the user, in any state."""
        return await self._services.store.read(MemoryById(self.scope, _number(memory)))


def _when(value: datetime | str | None) -> datetime | str | None:
    """Check when something happens: a moment, with or without a time zone, or words."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            checks.microseconds(value, "when", "when")
        return value
    return checks.query_text(value, MOST_ASKED)


def _number(memory: object) -> int:
    return checks.at_least(memory, 1, "the memory", "memory")


class UserKnowledge(UserHandle):
    """Facts, portrait and preferences of one user."""

    @public(audit=IN_METHOD)
    async def remember(
        self, fact: str, *, by: str | int | None = None, name: str | None = None, about: str | None = None
    ) -> RememberResult:
        """Store a fact: "prefers tea", "I moved to Berlin". A newer fact replaces one that it contradicts.

        `by` is who says so, if not the user; what others say that is sensitive waits for approval, and so does what
        reads like an instruction to a model. `name` is what the user is called. `outcome` says what became of it.
        With `about`, the fact is about somebody else whom the memory does not know, by their name ("Tom"): it becomes a
        memory with `about` set to that name, and no part of the user's facts and portrait.
        """
        speaker = None if by is None else checks.identifier(by, "by", "by")
        words = checks.filled_text(fact, "the fact", "fact")
        whom = None if about is None else checks.display_name(about)
        return await self._services.fact_editor.remember(
            self.scope, words, by=speaker, name=_name(name), actor=self._who, about=whom
        )

    @public(audit=IN_METHOD)
    async def forget(self, fact: str, *, name: str | None = None) -> ForgetResult:
        """Forget a fact, in the facts text and in the memories. The result is true if it was known.

        It is not learned again from what had been said until now; saying it again later counts.
        """
        words = checks.filled_text(fact, "what to forget", "fact")
        return await self._services.fact_editor.forget(self.scope, words, name=_name(name), actor=self._who)

    @public(audit=("portrait.read", "portrait"))
    async def portrait(self, *, name: str | None = None) -> str | None:
        """Return what is known about the user as one text: facts, today, the days before. None if nothing is known.

        A model that is configured merges them, once for each state of the three. Without one, or when it fails, there
        are the facts, else today, else the days before.
        """
        if self._services.profile.summaries == "calendar":
            # The portrait reads the summaries of the day and of the week, which this policy makes on request.
            await self._services.digest.day(self.scope, None)
            await self._services.digest.week(self.scope)
        return await self._services.portraitist.portrait(self.scope, name=_name(name))

    @public(audit=("facts.read", "facts"))
    async def facts(self) -> list[Facts]:
        """Return all versions of the facts text, oldest first, each with the request that caused it."""
        return await self._services.store.read(FactsVersions(self.scope))

    @public(audit=("preferences.read", "preferences"))
    async def preferences(self) -> Preferences:
        """Return the user's preferences, counted in their messages: topics, hours, languages, lengths, tone."""
        return await self._services.habit_counter.preferences(self.scope)


def _name(value: object) -> str | None:
    return None if value is None else checks.display_name(value)


_HITS = 20
"""Messages that are searched for the topic of a timeline."""


class UserTimeline(UserHandle):
    """The timeline of one user, and the people around them."""

    @public(audit=("memory.read", "timeline"), loose=("query",))
    async def timeline(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        about: str | None = None,
        query: str | None = None,
        limit: int = 100,
        at: datetime | None = None,
    ) -> list[MemoryRecord]:
        """Return what happened and what is to come, in the order in which it happened: dated memories, with sources.

        `memory.happened` is when. `since` and `until` limit the time. `about` names a person by id or name. `query` is
        a topic or a question: "the kitchen", "what happened in May?"; periods in it are relative to `at` (default:
        now). Of more than `limit`, the first from `since` on are returned; without `since`, the last ones.
        """
        from aforesaid.context.builder import events_about  # noqa: PLC0415 - loaded when it is needed
        from aforesaid.facts.timeline import timeline  # noqa: PLC0415
        from aforesaid.text.sentences import topic_words  # noqa: PLC0415

        most = at_once(limit)
        known = await self._services.store.read(Memories(self.scope, active=None))
        found = timeline(known, since, until)
        if about is not None:
            people = await self._people(known, about)
            wanted = {memory.id for person in people for memory in person.all_memories}
            found = [memory for memory in found if memory.id in wanted]
        if query is not None:
            words = checks.query_text(query)
            hits: list[Hit] = []
            if topic := topic_words(words):
                search = SearchRequest(topic, limit=_HITS, at=at, kinds=("message",), min_score=None, explained=False)
                hits = await self._services.recall.search(self.scope, search)
            asked = (at or datetime.now(UTC)).astimezone(UTC)
            events = await events_about(self._services.store, self.scope, words, hits, asked, MOST_EVENTS)
            chosen = {memory.id for memory in events}
            found = [memory for memory in found if memory.id in chosen]
        return found[:most] if since is not None else found[-most:]

    @public(audit=("memory.read", "people"))
    async def people(self, name: str | None = None) -> list[KnownPerson]:
        """Return the people whom the memories of the user mention, those with most memories first.

        Each has a `name`, a `relation` to the user, `memories`, and when they were first and last mentioned. With
        `name`, only those who are called so: by name, first name, id or relation ("my sister").
        """
        known = await self._services.store.read(Memories(self.scope, active=None))
        return await self._people(known, name)

    async def _people(self, known: list[MemoryRecord], name: str | None) -> list[KnownPerson]:
        from aforesaid.facts.describing import called, known_people  # noqa: PLC0415 - loaded when it is needed

        # A person writes whatever they like in `about`: looking that up would tell them the name of any user.
        extracted = (memory.about for memory in known if memory.about and memory.extractor != BY_HAND)
        ids = {self.scope.user, *(memory.speaker for memory in known), *extracted}
        names = await self._services.store.read(DisplayNames(self.scope.space, sorted(ids)))
        # In a thread, since reading many texts would block the event loop.
        people = await asyncio.to_thread(known_people, known, self.scope.user, names)
        return people if name is None else called(people, checks.query_text(name))
