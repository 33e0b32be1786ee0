"""Extracts memories from messages: each batch is stored together with the position up to which the log was read."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.checks import SettingValue
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, ModelGarbled, NoModel
from aforesaid.extras import re
from aforesaid.facts.admission import SalienceJudge, meanings
from aforesaid.facts.candidate import DATED, RULES, Candidate, among_people, by_rules
from aforesaid.facts.model_extraction import (
    LONGEST_REPLY,
    SHOWN,
    BatchInput,
    FoundCandidates,
    FoundWithoutModel,
    ask_model,
    between_others,
    messages_around,
)
from aforesaid.facts.people import Person, people_in
from aforesaid.facts.reconcile import (
    Plan,
    ReconcileInput,
    comparable,
    reconcile,
    repeated,
    telling_changes,
    with_outdated,
)
from aforesaid.facts.salience_extraction import SALIENCE, by_salience
from aforesaid.facts.settling import is_doubtful
from aforesaid.facts.statement import statement
from aforesaid.facts.values import answered, by_values, composed, may_answer, pattern, usual_language
from aforesaid.models.calibration import SameMeaning
from aforesaid.models.embed import Embedder, read_messages
from aforesaid.models.offline import without_contradicted
from aforesaid.models.reader import Reading
from aforesaid.models.salience import Judgement
from aforesaid.models.superseding import may_change_plainly
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import zone_from
from aforesaid.store import Store
from aforesaid.store.memories import MarkExtracted, Memories, NewestFacts, PutFacts, Tombstones
from aforesaid.store.messages import Messages, MessagesAfter
from aforesaid.store.operations import Change
from aforesaid.store.searches import SearchNotes
from aforesaid.text.sentences import length_in_words

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid.extraction")

_PAGE: Final = 200
_MOST_CHARACTERS: Final = 8_000
"""Maximum characters of a batch for a model. With its instructions it fits into a context window of 4,096 tokens."""
_FEW_EXCHANGES: Final = 5
"""Maximum exchanges that a small model is given at a time,"""
_FEW_CHARACTERS: Final = 3_000
"""and their maximum characters."""
_MESSAGES_PER_EXCHANGE: Final = 2
"""Number of messages that count as one exchange where the assistant does not reply, as in a channel."""
_BEFORE: Final = 50
"""Messages of the user read before a batch: for their display name, and for what the first message answers."""
_OUTDATED: Final = "the user said something newer"
"""The cause of a version of facts from which something was removed."""
_NEAREST: Final = 3
"""Known memories looked up for each message."""
_LOOKED_BACK: Final = 3
"""Messages before a batch of which it is read whether they ask."""
_PLAUSIBLE: Final = 0.2
"""Least probability that words ask for something, where a rule says that they do."""
_QUIET: Final = 0.1
"""Probability below which a message is not quoted: it tells nothing about its author."""
_TELLS: Final = 0.9
"""Probability from which a message is quoted that tells a value which could not be told from the rest."""
_DOUBTFUL: Final = -0.9
"""Log-odds of the salience model below which a message is fleeting, whatever it tells: "My coffee is cold."."""
_WORTH: Final = 0.5
"""Probability from which a message is worth a quote, and understood without what somebody else said before it,"""
_TELLS_SOME: Final = 0.5
"""if it tells anything with at least this probability."""
_SHORT_WISH: Final = 4
_LEAST_WORTH: Final = 0.4
"""Probability below which a quote is not worth keeping, or cannot be understood by itself."""
_LEAST_OPEN: Final = 0.4
"""The same of what is open,"""
_LEAST_DATED: Final = 0.3
"""and of what has a date, with which it ends."""
_SURELY_NOT: Final = 0.9
"""Probability from which words say nothing that is worth remembering."""
_COMMA: Final = re.compile("[,;，、،]")
_FEW: Final = 4
"""Messages up to which a batch is examined at once, because a change of thread would take longer."""
_COMPARED: Final = 4_000
"""Maximum characters of a message that are compared with known memories."""


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
        self._judge = None if encoder is None else SalienceJudge(store, encoder)
        self._encoder = encoder

    @property
    def asks_a_model(self) -> bool:
        """Whether a model is configured for extraction."""
        return self._chat is not None and self._chat.has("extract")

    @property
    def _asks_a_small_model(self) -> bool:
        return self._chat is not None and self._chat.is_small("extract")

    async def next_batch(self, scope: Scope, after: int, *, complete: bool) -> list[Message]:
        """Return the next messages to extract from: whole exchanges after sequence number `after`.

        With `complete`, an exchange without a reply is left for later.
        """
        page = await self._store.read(MessagesAfter(scope, after, _PAGE))
        exchanges, characters = self._profile.extract_exchanges if self.asks_a_model else _PAGE, _MOST_CHARACTERS
        if self._asks_a_small_model:
            exchanges, characters = min(exchanges, _FEW_EXCHANGES), _FEW_CHARACTERS
        return cut_batch(page, exchanges, complete=complete and self.asks_a_model, characters=characters)

    async def learn(
        self, scope: Scope, after: int, batch: Sequence[Message], settings: Mapping[str, SettingValue]
    ) -> ExtractionResult:
        """Extract and store the memories of a batch, in one or more transactions that also advance the position.

        Raises ModelError when a configured model does not answer, and SourcesChanged when another worker was faster.
        Nothing is lost then: call it again.
        """
        tally = _Tally(messages=len(batch))
        if not self.asks_a_model and not any(each.role == "user" and not each.replaced for each in batch):
            await self._store.apply([MarkExtracted(scope, after, batch[-1].seq)])
            return ExtractionResult(len(batch), 0, 0, {})
        context = await messages_around(self._store, scope, batch) if self.asks_a_model else []
        # Replaced versions of messages count as read, but nothing is extracted from them.
        newest = [message for message in batch if not message.replaced]
        before, others, known, tombstones = await asyncio.gather(
            self._store.read(Messages(scope, limit=_BEFORE, before=batch[0].seq)),
            between_others(self._store, scope, newest),
            self._store.read(Memories(scope, active=None)),
            self._store.read(Tombstones(scope)),
        )
        people = people_in([*before, *context, *batch], scope.user)
        owner = people[scope.user]
        zone = zone_from(settings, self._profile, scope.space)
        before = await self._telling(before)
        own = await self._without_model(scope, newest, before, others, people, owner, zone, known)
        given = BatchInput(scope, known, people, owner, zone, [*context, *newest], before)
        found = await self._find(given, newest, own) if newest else FoundCandidates([], {})
        candidates: Sequence[Candidate] = await self._stated(found.candidates)
        tally.dropped.update(found.dropped)
        tally.dropped.update({"no statement": len(found.candidates) - len(candidates)})
        near = {**found.near, **await self._near(scope, [each for each in candidates if each.text not in found.near])}
        usual = usual_language([*before, *batch], owner, known)
        meant = await meanings(candidates, people, self._embedder)
        heard = in_time_order([*context, *batch])
        # A bot may set the reminder that a message asks for at the same time.
        is_current = not self.asks_a_model and not any(each.category in DATED for each in candidates)
        while True:
            if not is_current:
                # While a model answered, a bot may have set the reminder that a message asks for.
                known = await self._store.read(Memories(scope, active=None))
                tombstones = await self._store.read(Tombstones(scope))
            now = ReconcileInput(
                scope, owner, people, heard, known, tombstones, zone, self._profile.keep_days, near, meant, usual
            )
            # In a thread, since comparing many memories would block the event loop.
            plan = await asyncio.to_thread(reconcile, candidates, now) if candidates or known else Plan()
            up_to = batch[-1].seq if not plan.rest else plan.rest[0].last - 1
            changes: list[Change] = [*plan.changes(), *await self._restate(scope, plan.restated, owner)]
            await self._store.apply([*changes, MarkExtracted(scope, after, up_to, len(tombstones))])
            tally.added += sum(draft.state == "active" for draft in plan.drafts)
            tally.quarantined += sum(draft.state == "quarantined" for draft in plan.drafts)
            tally.dropped.update(plan.dropped)
            if not plan.rest:
                break
            candidates, after, is_current = plan.rest, up_to, False
        dropped = {reason: number for reason, number in tally.dropped.items() if number}
        return ExtractionResult(tally.messages, tally.added, tally.quarantined, dropped)

    async def _find(self, given: BatchInput, batch: Sequence[Message], own: FoundWithoutModel) -> FoundCandidates:
        found = FoundCandidates(own.candidates, {})
        if self._chat is not None and self._chat.has("extract"):
            try:
                found = await ask_model(self._chat, given, batch, await self._shown(given, batch), own)
            except NoModel:
                pass  # The chain of models ends with "none".
            except ModelGarbled as error:
                _log.warning("messages of %s are extracted without a model: %s", given.scope.user, error)
        if self._judge is None:
            return found
        return await self._compared(self._judge, given, found)

    async def _without_model(
        self,
        scope: Scope,
        batch: Sequence[Message],
        before: Sequence[Message],
        others: Sequence[Message],
        people: Mapping[str, Person],
        owner: Person,
        zone: tzinfo,
        known: Sequence[MemoryRecord],
    ) -> FoundWithoutModel:
        """Find candidates with the salience model; by rules, where there is no encoder or it fails."""
        with_assistant = not among_people([*before, *others, *batch], owner)
        if self._judge is not None:
            try:
                readings = await self._read(batch, [*before, *others])
                judgements = await self._judge.judge(batch, before)
                own = [message for message in batch if with_assistant and message.author == owner.id]
                usual = usual_language([*before, *batch], owner, known)
                told = by_values(batch, readings, people, owner, zone, known, usual)
                # What is doubtful is no reason to leave out the words that it was read in.
                sure = [each for each in told if each.holds == "over" or not is_doubtful(each)]
                known_to_tell = {each.last for each in sure}
                judgements = {
                    seq: _with_reading(judgement, readings.get(seq), is_told=seq in known_to_tell)
                    for seq, judgement in judgements.items()
                }
                judgements = await self._with_changes(self._judge, scope, batch, judgements, known)
                parts = await self._judge.plain_parts(own, judgements)
            except ModelError as error:
                _log.warning("messages of %s are extracted by rules: %s", scope.user, error)
            else:
                given = batch, before, judgements, people, owner, zone, others, parts, sure
                few = len(batch) <= _FEW
                found = by_salience(*given) if few else await asyncio.to_thread(by_salience, *given)
                return FoundWithoutModel([*found, *(each for each in told if each not in sure)], judgements)
        found = await asyncio.to_thread(by_rules, batch, people, owner, zone, with_assistant=with_assistant)
        return FoundWithoutModel(found, {})

    async def _read(self, batch: Sequence[Message], around: Sequence[Message]) -> dict[int, Reading]:
        """Return what messages of people want and tell, by sequence number.

        A short message that tells nothing by itself is read after the question that it may answer: "Which nuts?"
        """
        said = {message.seq: composed(message) for message in batch if message.role == "user"}
        texts = {seq: text for seq, text in said.items() if text.strip()}
        if self._encoder is None or not texts:
            return {}
        readings = dict(zip(texts, await read_messages(self._encoder, list(texts.values())), strict=True))
        asked = {
            seq: question
            for seq, question in answered([*around, *batch]).items()
            if seq in readings and may_answer(texts[seq], readings[seq])
        }
        joined = [f"{question}\n{texts[seq]}" for seq, question in asked.items()]
        answers = await read_messages(self._encoder, joined) if joined else []
        for (seq, question), reading in zip(asked.items(), answers, strict=True):
            readings[seq] = reading.without_start(len(question) + 1)
        return readings

    async def _telling(self, before: Sequence[Message]) -> list[Message]:
        """Return earlier messages without those of people that only ask: nothing that is said goes on from these."""
        if self._encoder is None:
            return list(before)
        last = [each for each in before[-_LOOKED_BACK:] if each.role == "user" and each.text.strip()]
        wanted = await read_messages(self._encoder, [each.text for each in last]) if last else []
        asking = {each.seq for each, wants in zip(last, wanted, strict=True) if wants.intents.of("ask") >= _SURELY_NOT}
        return [each for each in before if each.seq not in asking]

    async def _stated(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates whose words say something: no questions, greetings, moods or tasks.

        Spoken questions have no question mark, so what the words want decides. Without an encoder rules have decided.
        """
        if self._encoder is None:
            return list(candidates)
        quotes = list(dict.fromkeys(each.quote for each in candidates if each.quote.strip() and each.matter is None))
        wanted = dict(zip(quotes, await read_messages(self._encoder, quotes), strict=True)) if quotes else {}
        return [
            each
            for each in candidates
            if each.matter is not None
            or each.quote not in wanted
            or _says(each, wanted[each.quote], asks_a_model=self.asks_a_model)
        ]

    @staticmethod
    async def _with_changes(
        judge: SalienceJudge,
        scope: Scope,
        batch: Sequence[Message],
        judgements: Mapping[int, Judgement],
        known: Sequence[MemoryRecord],
    ) -> dict[int, Judgement]:
        """Return judgements in which what makes a plain statement outdated is worth remembering."""
        said = [message for message in batch if message.seq in judgements]
        if all(judgements[each.seq].worth_remembering or not may_change_plainly(each.text) for each in said):
            return dict(judgements)
        compared = comparable(known)
        stored = await judge.vectors.stored(scope, sorted({max(memory.sources) for memory in compared}))
        rows = await judge.vectors.of(said)
        vectors = {**stored, **dict(zip((message.seq for message in said), rows, strict=True))}
        telling = await asyncio.to_thread(telling_changes, said, judgements, compared, vectors)
        return {**judgements, **{seq: judgements[seq].as_plain() for seq in telling}}

    async def _compared(self, judge: SalienceJudge, given: BatchInput, found: FoundCandidates) -> FoundCandidates:
        """Compare candidates with known memories by the vectors of their messages, for what they repeat or outdate."""
        notes = [each for each in found.candidates if each.matter is None]
        found = found._replace(near={each.text: frozenset() for each in found.candidates if each.matter is not None})
        if not notes:
            return found
        known = comparable(given.known)
        seqs = {seq for memory in known for seq in (min(memory.sources), max(memory.sources))}
        made = {each.last: each.sources[-1] for each in notes}
        try:
            stored = await judge.vectors.stored(given.scope, sorted(seqs))
            rows = await judge.vectors.of(list(made.values()))
            thresholds = dict(zip(made, await judge.same_meaning.thresholds(rows), strict=True))
        except ModelError as error:
            _log.warning("memories of %s are not compared with older ones: %s", given.scope.user, error)
            return found
        vectors = {**stored, **dict(zip(made, rows, strict=True))}

        def compare() -> FoundCandidates:
            near = {**found.near, **repeated(notes, known, vectors, thresholds)}
            return found._replace(candidates=with_outdated(found.candidates, known, vectors), near=near)

        return await asyncio.to_thread(compare)

    async def _shown(self, given: BatchInput, batch: Sequence[Message]) -> list[MemoryRecord]:
        """Return the known memories that messages may change: those near in meaning, and those that share words."""
        if self._asks_a_small_model:
            return []  # It is asked one thing at a time. Rules find what the new memories change.
        near: list[int] = []
        said = [message.text for message in batch if message.role == "user" and message.text.strip()]
        if self._embedder is not None and said and given.known:
            try:
                vectors = await self._embedder.embed(said)
            except ModelError as error:
                _log.warning("known memories are chosen by words alone: %s", error)
            else:
                for text, vector in zip(said, vectors, strict=True):
                    question = SearchNotes(given.scope, text, self._embedder.name, vector, limit=_NEAREST)
                    notes = await self._store.read(question)
                    near += [note.key.id for note in notes if note.key.kind == "memory"]
        return relevant(given.known, batch, near)

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
            notes = await self._store.read(SearchNotes(scope, text, self._embedder.name, vector, limit=5))
            found[text] = frozenset(
                note.key.id for note in notes if note.key.kind == "memory" and (note.similarity or 0.0) >= threshold
            )
        return found

    async def _restate(self, scope: Scope, restated: Sequence[str], owner: Person) -> list[PutFacts]:
        """Return the change that takes what new statements contradict out of the text of facts.

        The statements are memories, which are erased with their messages. The text has no sources, so it must not
        contain words of a message.
        """
        facts = await self._store.read(NewestFacts(scope)) if restated else None
        if facts is None:
            return []
        text = facts.text
        for words in restated:
            text = without_contradicted(text, words, owner.name)
        if text == facts.text:
            return []
        return [PutFacts(scope, text, cause=_OUTDATED, instead_of=facts.version)]


def _with_reading(judgement: Judgement, reading: Reading | None, *, is_told: bool) -> Judgement:
    """Return a judgement in which a message that tells something is worth remembering, and one that does not is not.

    What is found to be values need not be quoted for its own sake.
    """
    if reading is None:
        return judgement
    is_statement = reading.intents.best in {"tell", "correct"} and reading.tells >= _TELLS_SOME
    if is_statement and reading.worth >= _WORTH and judgement.margin >= _DOUBTFUL:
        judgement = judgement.as_clear()
    if reading.tells >= _TELLS and not is_told and max(judgement.plain, judgement.margin) >= _DOUBTFUL:
        return judgement.as_plain()
    if reading.tells < _QUIET:
        return judgement.as_quiet()
    return judgement


def _says(candidate: Candidate, reading: Reading, *, asks_a_model: bool) -> bool:
    wants = reading.intents
    if candidate.request:
        # Two or three words ("Nenn mich Jo.") are hard to read.
        short = length_in_words(candidate.quote) <= _SHORT_WISH and wants.best not in {"ask", "feel"}
        return short or wants.of("request", "forget", "correct", "reminders") >= _PLAUSIBLE
    if candidate.category == "reminder":
        if candidate.event is None and pattern("pointing").search(candidate.quote):
            return False
        return wants.of("remind", "request", "reminders") >= _PLAUSIBLE
    if wants.best == "ask" and not _COMMA.search(candidate.quote):
        return False
    if candidate.extractor == RULES:
        return wants.of("ask", "reminders") < _SURELY_NOT
    if candidate.outdates is not None:
        return True
    # What is quoted must be worth it, unless a model found so. With what it answers it is understood.
    is_quoted = candidate.extractor == SALIENCE and f'"{candidate.quote}' in candidate.text
    if is_quoted and not asks_a_model and len(candidate.sources) == 1:
        # What is lost or waited for is worth knowing until it is found or comes.
        least = _LEAST_OPEN if pattern("open").search(candidate.quote) else _LEAST_WORTH
        least = _LEAST_DATED if candidate.event is not None else least
        if reading.worth < least:
            return False
    # A statement is never dropped for a doubt: what is no statement must be plainly something else.
    return wants.best in {"tell", "correct"} or wants.of(wants.best) < _SURELY_NOT


def relevant(known: Sequence[MemoryRecord], batch: Sequence[Message], near: Collection[int] = ()) -> list[MemoryRecord]:
    """Return the known memories to show to a model with these messages, in the order in which they were stored.

    They share words with the messages, or are `near` to them in meaning (ids of memories). Others are not shown: a
    small model would repeat them.
    """
    said: set[str] = set()
    for message in batch:
        if message.role == "user":
            said |= statement(message.text[:_COMPARED]).words
    shared = {memory.id: len(statement(memory.text).words & said) for memory in known if memory.state == "active"}
    believed = [memory for memory in known if memory.state == "active" and (shared[memory.id] or memory.id in near)]
    ranked = sorted(
        believed, key=lambda memory: (memory.id not in near, -shared[memory.id], -memory.importance, -memory.id)
    )
    return sorted(ranked[:SHOWN], key=lambda memory: memory.id)


def cut_batch(
    page: Sequence[Message], exchanges: int, *, complete: bool, characters: int = _MOST_CHARACTERS
) -> list[Message]:
    """Return the messages of the first exchanges of a page. An exchange is what a user said and the replies to it.

    With `complete`, messages without a reply are left for later, unless they fill a whole page.
    """
    taken: list[Message] = []
    done = read = 0
    for place, message in enumerate(page):
        begins = message.role == "user" and place > 0 and page[place - 1].role != "user"
        done += begins
        read += len(message.text) if message.role == "user" else min(len(message.text), LONGEST_REPLY)
        enough = done >= exchanges or len(taken) >= _MESSAGES_PER_EXCHANGE * exchanges
        if taken and (enough or read > characters):
            return taken
        taken.append(message)
    if complete and len(page) < _PAGE:
        while taken and taken[-1].role == "user":
            taken.pop()
    return taken
