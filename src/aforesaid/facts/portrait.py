"""The portrait of a user: facts, today and the days before, merged into one text.

A model merges them again only when one of them changed: the text is stored with the hashes of its sources. A context
never waits for the model. While the sources are newer than the merge, it shows them one after the other, and a
background task merges them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress
from datetime import date, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.background import BackgroundLoop, BackgroundLoops, SingleFlight, begin
from aforesaid.domain.caches import TwoGenerationCache
from aforesaid.domain.checks import moment, now
from aforesaid.domain.memory import MOST_DESCRIBING, MemoryRecord, NoteKey, Tombstone
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.errors import ModelError, SourcesChanged
from aforesaid.facts.describing import Line, describe, language_of, under_headings
from aforesaid.facts.fact_editor import FactEditor, trustworthy
from aforesaid.facts.people import Person
from aforesaid.facts.timeline import zone_of
from aforesaid.facts.values import matters
from aforesaid.models.offline import forget_fact
from aforesaid.models.prompts import Fenced, enclose, load_prompt, strip_invisible
from aforesaid.profiles import Profile
from aforesaid.store import Store
from aforesaid.store.memories import DerivedText, ImportantMemories, Memories, NewestFacts, PutDerived, Tombstones
from aforesaid.store.summaries import Summaries
from aforesaid.telemetry import Metrics
from aforesaid.text.languages import guess_language

if TYPE_CHECKING:
    from cachetools import LRUCache

    from aforesaid.models.chat import Chat


_log: Final = logging.getLogger("aforesaid.facts")

KIND: Final = "portrait"
_CACHED: Final = 512
"""Portraits cached in front of the stored ones."""
_JOINED: Final = 256
"""Minimum number of users whose facts and memories stay joined."""
_PER_SENTENCE: Final = 100
"""Characters of a sentence. Models count sentences better."""
_SLACK: Final = 2
"""A model's text is refused when it is longer than the requested length times this."""
_DEBOUNCE_SECONDS: Final = 1.0
_MOST_STALE: Final = 1_000
"""Maximum number of users whose portraits wait to be merged; older requests are dropped and come again."""
_TRIES: Final = 3
"""Maximum number of failed merges of the same sources; then they are not merged until they change."""

Key = tuple[str, str, str, str, str]
"""Space, user, and the hashes of facts, today and history."""
_Key = tuple[str, tuple[tuple[int, int], ...], Person, date]
"""Facts, the ids and revisions of memories, whose they are, and the day."""


class Sources(NamedTuple):
    """The texts that a portrait is merged from."""

    facts: str
    today: str
    history: str
    lines: tuple[Line, ...] = ()
    """The facts, line by line."""
    language: str = "english"

    @property
    def texts(self) -> tuple[str, str, str]:
        return self.facts, self.today, self.history

    @property
    def hashes(self) -> tuple[str, str, str]:
        return _hash(self.facts), _hash(self.today), _hash(self.history)

    @property
    def first(self) -> str | None:
        """The first text that is not empty: facts, today or history."""
        return next(filter(None, self.texts), None)

    @property
    def joined(self) -> str | None:
        """All texts that are not empty, in this order, with headings for observations."""
        return self._joined(self.facts)

    @property
    def told(self) -> str | None:
        """The same with headings for facts, too, where there are many."""
        return self._joined(under_headings(self.lines, self.language) or self.facts)

    def _joined(self, facts: str) -> str | None:
        if not any((facts and self.today, facts and self.history, self.today and self.history)):
            return facts or self.first
        headings, colon = matters(self.language).headings, "：" if self.language in {"chinese", "japanese"} else ": "
        today, history = (
            text and f"{headings[name]}{colon}{text}" for name, text in (("today", self.today), ("days", self.history))
        )
        return "\n".join(filter(None, (facts, today, history)))


class Portraitist:
    """Writes and caches portraits of users."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        chat: Chat | None,
        metrics: Metrics,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """Merge with `chat`. Without `loops`, nothing is merged in the background."""
        self._store = store
        self._profile = profile
        self._chat = chat
        self._fact_editor = FactEditor(store, profile, chat)
        self._cache: LRUCache[Key, str] | None = None
        self._joined: TwoGenerationCache[_Key, tuple[Line, ...]] = TwoGenerationCache(_JOINED)
        """The lines of facts and memories, which rarely change between two contexts."""
        self._metrics = metrics
        self._flights: SingleFlight[str | None] = SingleFlight()
        self._stale: dict[tuple[str, str], Scope] = {}
        """Users whose sources changed since the last merge."""
        self._failures: dict[tuple[str, str], tuple[Key, int]] = {}
        """How often in a row the merge of the same sources failed."""
        self._loop = BackgroundLoop("portraits", self._merge_stale, debounce_seconds=_DEBOUNCE_SECONDS, log=_log)
        self._in_background = loops is not None
        (loops or BackgroundLoops()).add(self._loop)

    async def portrait(self, scope: Scope, *, name: str | None = None) -> str | None:
        """Return the portrait of a user; None if nothing is known.

        Without a model, or when it fails, these are the facts, today and the days before, one after the other.
        """
        sources = await self.sources(scope)
        if sources.first is None:
            return None
        return await self._merged(scope, sources, name) or sources.told

    async def _merged(self, scope: Scope, sources: Sources, name: str | None = None) -> str | None:
        """Return what a model merged sources into; None without a model, or where there is nothing to merge."""
        chat = self._chat
        if sum(map(bool, sources.texts)) <= 1 or chat is None or not chat.has("merge"):
            return None
        key: Key = (scope.space, scope.user, *sources.hashes)
        stored = await self._stored(scope, key)
        if stored is not None:
            return stored
        # One call of the model, also when several callers and the background task ask at once.
        return await self._flights.run(key, lambda: self._merge_and_store(chat, scope, sources, name))

    def forget_all(self) -> None:
        """Empty the cache, after a user was erased."""
        self._cache = None
        self._joined = TwoGenerationCache(_JOINED)
        self._stale.clear()
        self._failures.clear()

    async def without_waiting(
        self,
        scope: Scope,
        memories: Awaitable[list[MemoryRecord]] | None = None,
        summaries: Awaitable[list[Summary]] | None = None,
    ) -> list[Line]:
        """Return the portrait in lines, without asking a model: the stored merge, or else its sources.

        If the sources changed since the merge, it is merged again in the background. `memories` and `summaries` can be
        passed if they are being read already.
        """
        sources = await self.sources(scope, memories, summaries)
        if sum(map(bool, sources.texts)) <= 1:
            return list(sources.lines) or _lines_of(sources.first)
        stored = await self._stored(scope, (scope.space, scope.user, *sources.hashes))
        if stored is None and self._in_background and self._chat is not None and self._chat.has("merge"):
            self._stale.setdefault((scope.space, scope.user), scope)
            if len(self._stale) > _MOST_STALE:
                del self._stale[next(iter(self._stale))]
            self._loop.wake()
        if stored is not None:
            return _lines_of(stored)
        return [*sources.lines, *_lines_of(sources.joined)[len(sources.lines) :]]

    async def _merge_stale(self) -> None:
        """Merge the portraits whose sources changed. Raises ModelError when one fails, so that the loop tries again."""
        while self._stale:
            whose, scope = next(iter(self._stale.items()))
            sources = await self.sources(scope)
            key: Key = (*whose, *sources.hashes)
            failed, failures = self._failures.get(whose, (key, 0))
            if failed == key and failures >= _TRIES:
                del self._stale[whose]
                continue
            if sum(map(bool, sources.texts)) <= 1 or await self._merged(scope, sources) is not None:
                self._stale.pop(whose, None)
                self._failures.pop(whose, None)
                continue
            self._failures[whose] = (key, failures + 1 if failed == key else 1)
            raise ModelError(f"the portrait of {scope.user!r} could not be merged")

    async def _merge_and_store(self, chat: Chat, scope: Scope, sources: Sources, name: str | None) -> str | None:
        key: Key = (scope.space, scope.user, *sources.hashes)
        front = self._front
        text = await self._merge(chat, scope, sources, await self._fact_editor.person(scope, name))
        # Models take long. What was erased in the meantime must not be stored again as a portrait.
        notes = [NoteKey("memory", each.id) for each in await self._store.read(Memories(scope))]
        notes += [NoteKey("summary", each.id) for each in await self._store.read(Summaries(scope))]
        if text is not None and (await self.sources(scope)).hashes == sources.hashes:
            value = json.dumps(text, ensure_ascii=False)
            kept = PutDerived(scope, KIND, _stored_key(key), value, known_user=True, notes=tuple(notes))
            with suppress(SourcesChanged):
                await self._store.apply([kept])
                front[key] = text
        return text

    async def sources(
        self,
        scope: Scope,
        remembered: Awaitable[list[MemoryRecord]] | None = None,
        summaries: Awaitable[list[Summary]] | None = None,
    ) -> Sources:
        """Return the facts, today and history of a user, without what they asked to forget."""
        reading = begin(self._store.read(NewestFacts(scope)))
        tombstones, stored = await self._store.read(Tombstones(scope)), await reading
        facts = "" if stored is None else stored.text
        memories = await (remembered or self._store.read(ImportantMemories(scope, MOST_DESCRIBING, describing=True)))
        today, history = await self._observed(scope, await (summaries or self._store.read(Summaries(scope))))
        if not tombstones and not memories and not facts:
            return Sources(facts, today, history, language=guess_language(f"{today}\n{history}"))
        at = moment(now())
        joined, person = self._joined, await self._fact_editor.person(scope)
        key = facts, tuple([(memory.id, memory.revision) for memory in memories]), person, at.date()
        if (lines := joined.get(key)) is None:
            lines = tuple(describe(facts, memories, person, at))
            joined.put(key, lines)
        return Sources(
            "\n".join(each.text for each in lines),
            without(today, tombstones, person.names),
            without(history, tombstones, person.names),
            lines,
            language_of(memories, f"{facts}\n{today}\n{history}"),
        )

    async def _observed(self, scope: Scope, summaries: Sequence[Summary]) -> tuple[str, str]:
        found = [summary for summary in summaries if summary.valid and summary.kind in {"day", "week"}]
        if not found:
            return "", ""
        zone = await zone_of(self._store, self._profile, scope)
        return observations(found, moment(now()).astimezone(zone).date(), self._profile.summary_days)

    async def _stored(self, scope: Scope, key: Key) -> str | None:
        # Taken first: a purge in the meantime empties the cache by beginning a new one.
        front = self._front
        text = front.get(key)
        if text is None:
            stored = await self._store.read(DerivedText(scope, KIND))
            if stored is not None and stored.key == _stored_key(key):
                text = str(json.loads(stored.value))
                front[key] = text
        if text is not None:
            self._metrics.cache_hit("portrait")
        return text

    async def _merge(self, chat: Chat, scope: Scope, sources: Sources, person: Person) -> str | None:
        prompt = load_prompt("portrait")
        facts, today, history = sources.texts
        sentences, name = max(1, self._profile.portrait_characters // _PER_SENTENCE), _named(person)
        written = prompt.render(sentences=sentences, name=name, facts=facts, today=today, history=history)
        try:
            reply = await chat.text(prompt.operation, written, scope=scope)
        except ModelError as error:
            _log.warning("the portrait is not merged, because the model failed: %s", error)
            return None
        text = strip_invisible(reply.text).strip()
        if not text or reply.cut or len(text) > _SLACK * self._profile.portrait_characters:
            _log.warning("the portrait that %s wrote is empty or too long, and is not used", reply.model)
            return None
        if not trustworthy(text, sources.texts):
            _log.warning("the portrait that %s wrote reads like an instruction, and is not used", reply.model)
            return None
        return text

    @property
    def _front(self) -> LRUCache[Key, str]:
        if self._cache is None:
            from cachetools import LRUCache  # noqa: PLC0415 - loaded with the first portrait

            self._cache = LRUCache(_CACHED)
        return self._cache


def _lines_of(text: str | None) -> list[Line]:
    return [Line("other", line) for line in (text or "").splitlines() if line.strip()]


def observations(found: Sequence[Summary], today: date, window: int) -> tuple[str, str]:
    """Return what was observed today, and in the days of a window before it, from summaries of days and weeks."""
    first = today - timedelta(days=window - 1)
    days = {summary.day: summary.text for summary in found if summary.kind == "day" and summary.day is not None}
    weeks = [
        summary
        for summary in found
        if summary.kind == "week" and summary.day is not None and first <= summary.day < today
    ]
    if weeks:
        return days.get(today, ""), max(weeks, key=lambda summary: (summary.day or today, summary.id)).text
    before = [(day, text) for day, text in days.items() if first <= day < today]
    return days.get(today, ""), "\n".join(f"{day.isoformat()}: {text}" for day, text in sorted(before))


def without(text: str, tombstones: Sequence[Tombstone], names: Collection[str]) -> str:
    """Return a text without what was asked to be forgotten."""
    for tombstone in tombstones:
        text = forget_fact(text, tombstone.words, names).text if text else text
    return text


def as_xml(portrait: str, person: Person) -> Fenced:
    """Return a portrait in the form used in prompts: `<memories><memory about="Ann">…</memory></memories>`, escaped."""
    return enclose("memories", "memory", [({"about": person.name}, portrait)])


def _named(person: Person) -> str:
    return person.name if person.name == person.id else f"{person.name} (id {person.id})"


def _stored_key(key: Key) -> str:
    return f"{load_prompt('portrait').version} {' '.join(key[2:])}"


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
