"""Extracts memories from messages: each batch is stored together with the position up to which the log was read."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.change import Change, PutFacts
from aforesaid.domain.clock import to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.memory_change import MarkExtracted
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, ModelGarbled, NoModel
from aforesaid.facts.candidate import Candidate, by_rules, from_model, requests_in
from aforesaid.facts.grounding import meanings
from aforesaid.facts.outdating import comparable, with_outdated
from aforesaid.facts.people import Person, people_in
from aforesaid.facts.reconcile import ReconcileInput, reconcile
from aforesaid.facts.salient import Judge, by_salience
from aforesaid.facts.statement import statement
from aforesaid.facts.surroundings import just_before, surroundings
from aforesaid.facts.zones import zone_of
from aforesaid.models.embed import Embedder
from aforesaid.models.meaning import SameMeaning
from aforesaid.models.offline import merge_fact
from aforesaid.models.prompts import enclose, fence, lines_of, load_prompt
from aforesaid.profiles import Profile
from aforesaid.store import Store, questions

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid.extraction")

_PAGE: Final = 200
_MOST_CHARACTERS: Final = 24_000
"""Maximum characters of a batch for a model."""
_MESSAGES_PER_EXCHANGE: Final = 2
"""Number of messages that count as one exchange where the assistant does not reply, as in a channel."""
_BEFORE: Final = 50
"""Messages of the user read before a batch: for their display name, and for what the first message answers."""
_SHOWN: Final = 40
"""Maximum number of known memories shown to a model."""


class ExtractionResult(NamedTuple):
    """What was extracted from a batch of messages."""

    messages: int
    """How many were examined."""
    added: int
    quarantined: int
    dropped: Mapping[str, int]
    """Number of dropped candidates, by reason."""


@dataclass(slots=True)
class _Tally:
    messages: int = 0
    added: int = 0
    quarantined: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


class _FoundCandidates(NamedTuple):
    candidates: Sequence[Candidate]
    without_source: int
    """How many memories a model wrote without naming a message as source."""


class _Job(NamedTuple):
    """The input of an extraction for one user."""

    scope: Scope
    known: Sequence[MemoryRecord]
    people: Mapping[str, Person]
    owner: Person
    zone: tzinfo
    around: Sequence[Message]
    """The batch and messages around it. A model reads those too, but no memory is extracted from them."""
    before: Sequence[Message]
    """The user's last messages before the batch."""


class Extractor:
    """Extracts memories from users' messages: with a model, or with the salience model, or by rules."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        chat: Chat | None,
        embedder: Embedder | None = None,
        encoder: Embedder | None = None,
    ) -> None:
        """Read the vectors of `encoder`, the built-in one, for the salience model. Without it, rules are used."""
        self._store = store
        self._profile = profile
        self._chat = chat
        self._embedder = embedder
        self._same_meaning = None if embedder is None else SameMeaning(embedder)
        self._judge = None if encoder is None else Judge(store, encoder)
        self._garbles = False
        """Whether the model's last answers were all unusable."""

    @property
    def asks_a_model(self) -> bool:
        """Whether a model is configured for extraction."""
        return self._chat is not None and self._chat.has("extract")

    async def next_batch(self, scope: Scope, after: int, *, complete: bool) -> list[Message]:
        """Return the next messages to extract from: whole exchanges after sequence number `after`.

        With `complete`, an exchange without a reply is left for later.
        """
        page = await self._store.read(questions.MessagesAfter(scope, after, _PAGE))
        exchanges = self._profile.extract_exchanges if self.asks_a_model else _PAGE
        return cut_batch(page, exchanges, complete=complete and self.asks_a_model)

    async def learn(self, scope: Scope, after: int, batch: Sequence[Message]) -> ExtractionResult:
        """Extract and store the memories of a batch, in one or more transactions that also advance the position.

        Raises ModelError when a configured model does not answer, and SourcesChanged when another worker was faster.
        Nothing is lost then: call it again.
        """
        tally = _Tally(messages=len(batch))
        context = await surroundings(self._store, scope, batch) if self.asks_a_model else []
        before = await self._store.read(questions.Messages(scope, limit=_BEFORE, before=batch[0].seq))
        people = people_in([*before, *context, *batch], scope.user)
        owner = people[scope.user]
        zone = await zone_of(self._store, self._profile, scope)
        known = await self._store.read(questions.Memories(scope, active=None))
        # Replaced versions of messages count as read, but nothing is extracted from them.
        newest = [message for message in batch if not message.replaced]
        job = _Job(scope, known, people, owner, zone, [*context, *newest], before)
        found = await self._find(job, newest) if newest else _FoundCandidates([], 0)
        candidates, tally.dropped["unsupported"] = found.candidates, found.without_source
        near = await self._near(scope, candidates)
        meant = await meanings(candidates, people, self._embedder)
        heard = in_time_order([*context, *batch])
        while True:
            # Read again: while a model answered, a bot may have set the reminder that a message asks for.
            known = await self._store.read(questions.Memories(scope, active=None))
            tombstones = await self._store.read(questions.Tombstones(scope))
            now = ReconcileInput(
                scope, owner, people, heard, known, tombstones, zone, self._profile.keep_days, near, meant
            )
            # In a thread, since comparing many memories would block the event loop.
            plan = await asyncio.to_thread(reconcile, candidates, now)
            up_to = batch[-1].seq if not plan.rest else plan.rest[0].last - 1
            changes: list[Change] = [*plan.changes(), *await self._restate(scope, plan.restated, owner)]
            await self._store.apply([*changes, MarkExtracted(scope, after, up_to)])
            tally.added += sum(draft.state == "active" for draft in plan.drafts)
            tally.quarantined += sum(draft.state == "quarantined" for draft in plan.drafts)
            tally.dropped.update(plan.dropped)
            if not plan.rest:
                break
            candidates, after = plan.rest, up_to
        dropped = {reason: number for reason, number in tally.dropped.items() if number}
        return ExtractionResult(tally.messages, tally.added, tally.quarantined, dropped)

    async def _find(self, job: _Job, batch: Sequence[Message]) -> _FoundCandidates:
        if self._chat is None or not self._chat.has("extract"):
            return await self._without_model(job, batch)
        try:
            return await self._ask(self._chat, job, batch)
        except NoModel:
            return await self._without_model(job, batch)
        except ModelGarbled as error:
            _log.warning("messages of %s are extracted in parts, or by rules alone: %s", job.scope.user, error)
            return await self._by_halves(self._chat, job, batch)

    async def _without_model(self, job: _Job, batch: Sequence[Message]) -> _FoundCandidates:
        """Find candidates with the salience model; by rules, where there is no encoder or it fails."""
        people, owner, zone = job.people, job.owner, job.zone
        if self._judge is not None:
            try:
                judgements = await self._judge.judge(batch)
            except ModelError as error:
                _log.warning("messages of %s are extracted by rules: %s", job.scope.user, error)
            else:
                found = await asyncio.to_thread(by_salience, batch, job.before, judgements, people, owner, zone)
                return _FoundCandidates(await self._with_outdated(self._judge, job, found), 0)
        return _FoundCandidates(await asyncio.to_thread(by_rules, batch, people, owner, zone), 0)

    async def _with_outdated(self, judge: Judge, job: _Job, candidates: list[Candidate]) -> list[Candidate]:
        if not candidates:
            return []
        known = comparable(job.known)
        stored = await judge.vectors.stored(job.scope, [max(memory.sources) for memory in known])
        made = {each.last: each.sources[-1] for each in candidates}
        rows = await judge.vectors.of(list(made.values()))
        vectors = {**stored, **dict(zip(made, rows, strict=True))}
        return await asyncio.to_thread(with_outdated, candidates, known, vectors)

    async def _by_halves(self, chat: Chat, job: _Job, batch: Sequence[Message]) -> _FoundCandidates:
        """Ask about each half of a batch that the model answered unusably, so that one message does not block others.

        If both halves fail, the model itself is at fault, and rules are used without asking about every message. Until
        the model gives a usable answer again, it is asked once per batch.
        """
        if len(batch) == 1 or self._garbles:
            return await self._without_model(job, batch)
        middle = len(batch) // 2
        halves = (batch[:middle], batch[middle:])
        answers = [await self._ask_or_none(chat, job, half) for half in halves]
        if not any(answers):
            self._garbles = True
            return await self._without_model(job, batch)
        found: list[_FoundCandidates] = []
        for half, answer in zip(halves, answers, strict=True):
            found.append(answer or await self._by_halves(chat, job, half))
        return _FoundCandidates(
            [each for half in found for each in half.candidates], sum(half.without_source for half in found)
        )

    async def _ask_or_none(self, chat: Chat, job: _Job, batch: Sequence[Message]) -> _FoundCandidates | None:
        try:
            return await self._ask(chat, job, batch)
        except ModelGarbled as error:
            _log.info("%d messages are asked about in parts: %s", len(batch), error)
            return None

    async def _ask(self, chat: Chat, job: _Job, batch: Sequence[Message]) -> _FoundCandidates:
        from aforesaid.models.prompts.shapes import Extraction  # noqa: PLC0415 - brings pydantic

        prompt = load_prompt("extract")
        shown = relevant(job.known, batch)
        names = {person.id: person.name for person in job.people.values()}
        numbers = {message.seq: number for number, message in enumerate(batch, 1)}
        read = in_time_order([*just_before(job.around, batch), *batch])
        local = [line._replace(at=line.at and to_zone(line.at, job.zone)) for line in lines_of(read, names)]
        answer = await chat.structure(
            prompt.operation,
            prompt.render(
                name=job.owner.name,
                known=enclose(
                    "known", "memory", [({"n": str(number)}, memory.text) for number, memory in enumerate(shown, 1)]
                ),
                messages=fence(local, numbers=[numbers.get(message.seq) for message in read]),
            ),
            Extraction,
            scope=job.scope,
        )
        self._garbles = False
        extractor = f"{prompt.version} {answer.model}"
        people, owner, zone = job.people, job.owner, job.zone
        made = [from_model(each, batch, shown, people, owner, zone, extractor) for each in answer.value.memories]
        candidates = [candidate for candidate in made if candidate is not None]
        # Standing requests are found by rules, with a model too: none may be missed or made up.
        requests = await asyncio.to_thread(requests_in, batch, people, owner, zone)
        return _FoundCandidates([*candidates, *requests], len(made) - len(candidates))

    async def _near(self, scope: Scope, candidates: Sequence[Candidate]) -> dict[str, frozenset[int]]:
        """Return the ids of memories that mean nearly the same as each candidate, by text."""
        texts = list(dict.fromkeys(candidate.text for candidate in candidates))
        if self._embedder is None or self._same_meaning is None or not texts:
            return {}
        try:
            vectors = await self._embedder.embed(texts)
            thresholds = await self._same_meaning.thresholds(vectors)
        except ModelError as error:
            # Equal words are still recognised; the health check reports the embedder.
            _log.warning("comparing by words alone: %s", error)
            return {}
        found = {}
        for text, vector, threshold in zip(texts, vectors, thresholds, strict=True):
            notes = await self._store.read(questions.SearchNotes(scope, text, self._embedder.name, vector, limit=5))
            found[text] = frozenset(
                note.key.id for note in notes if note.key.kind == "memory" and (note.similarity or 0.0) >= threshold
            )
        return found

    async def _restate(self, scope: Scope, restated: Sequence[str], owner: Person) -> list[PutFacts]:
        """Return the change that merges new statements into the text of facts, replacing what they contradict."""
        facts = await self._store.read(questions.NewestFacts(scope))
        if not restated or facts is None:
            return []
        text = facts.text
        for words in restated:
            text = merge_fact(text, words, owner.name)
        if text == facts.text:
            return []
        return [PutFacts(scope, text, cause="; ".join(restated), instead_of=facts.version)]


def relevant(known: Sequence[MemoryRecord], batch: Sequence[Message]) -> list[MemoryRecord]:
    """Return the known memories to show to a model with these messages, those that share words with them first."""
    said: set[str] = set()
    for message in batch:
        said |= statement(message.text[:4000]).words
    believed = [memory for memory in known if memory.state == "active"]
    ranked = sorted(
        believed, key=lambda memory: (-len(statement(memory.text).words & said), -memory.importance, -memory.id)
    )
    return ranked[:_SHOWN]


def cut_batch(page: Sequence[Message], exchanges: int, *, complete: bool) -> list[Message]:
    """Return the messages of the first exchanges of a page. An exchange is what a user said and the replies to it.

    With `complete`, messages without a reply are left for later, unless they fill a whole page.
    """
    taken: list[Message] = []
    done = 0
    characters = 0
    for place, message in enumerate(page):
        begins = message.role == "user" and place > 0 and page[place - 1].role != "user"
        done += begins
        characters += len(message.text)
        enough = done >= exchanges or len(taken) >= _MESSAGES_PER_EXCHANGE * exchanges
        if taken and (enough or characters > _MOST_CHARACTERS):
            return taken
        taken.append(message)
    if complete and len(page) < _PAGE:
        while taken and taken[-1].role == "user":
            taken.pop()
    return taken
