"""The API for what happened in a user's life, and for the people around them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aforesaid.domain import checks
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import BY_HAND, MemoryRecord
from aforesaid.front.handle import UserHandle, at_once, public
from aforesaid.recall import SearchRequest
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.facts.people import KnownPerson

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
        from aforesaid.context.builder import timeline_slice  # noqa: PLC0415 - loaded when it is needed
        from aforesaid.facts.timeline import timeline  # noqa: PLC0415
        from aforesaid.text.sentences import topic_words  # noqa: PLC0415

        most, terms = at_once(limit), self._services.builder.terms
        known = await self._services.store.read(questions.Memories(self.scope, active=None))
        found = timeline(known, since, until)
        if about is not None:
            people = await self._people(known, about)
            wanted = {memory.id for person in people for memory in person.all_memories}
            found = [memory for memory in found if memory.id in wanted]
        if query is not None:
            words = checks.query_text(query)
            hits = await self._said_about(topic_words(words), at)
            asked = (at or datetime.now(UTC)).astimezone(UTC)
            found = timeline_slice(found, words, hits, asked, terms)
        return found[:most] if since is not None else found[-most:]

    async def _said_about(self, topic: str, at: datetime | None) -> list[Hit]:
        if not topic:
            return []
        search = SearchRequest(topic, limit=_HITS, at=at, kinds=("message",), min_score=None, explained=False)
        return await self._services.recall.search(self.scope, search)

    @public(audit=("memory.read", "people"))
    async def people(self, name: str | None = None) -> list[KnownPerson]:
        """Return the people whom the memories of the user mention, those with most memories first.

        Each has a `name`, a `relation` to the user, `memories`, and when they were first and last mentioned. With
        `name`, only those who are called so: by name, first name, id or relation ("my sister").
        """
        known = await self._services.store.read(questions.Memories(self.scope, active=None))
        return await self._people(known, name)

    async def _people(self, known: list[MemoryRecord], name: str | None) -> list[KnownPerson]:
        from aforesaid.facts.people import called, known_people  # noqa: PLC0415 - loaded when it is needed

        # A person writes whatever they like in `about`: looking that up would tell them the name of any user.
        extracted = (memory.about for memory in known if memory.about and memory.extractor != BY_HAND)
        ids = {self.scope.user, *(memory.speaker for memory in known), *extracted}
        names = await self._services.store.read(questions.DisplayNames(self.scope.space, sorted(ids)))
        # In a thread, since reading many texts would block the event loop.
        people = await asyncio.to_thread(known_people, known, self.scope.user, names)
        return people if name is None else called(people, checks.query_text(name))
