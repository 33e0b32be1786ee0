"""Decides for each candidate whether to store it, count it as known, let it supersede memories, or drop it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.memory import (
    BY_HAND,
    DOUBTED,
    EDITED,
    FORGOTTEN,
    INSTRUCTION,
    SOURCES_KEPT,
    TAKEN_BACK,
    MemoryDraft,
    MemoryRecord,
    Superseded,
    Tombstone,
)
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.facts.admission import admit
from aforesaid.facts.candidate import DATED, Candidate
from aforesaid.facts.people import Person, whom
from aforesaid.facts.settling import SURE, as_past, ended, is_doubtful, over_by, settle
from aforesaid.facts.statement import contradicts, least_shared, name_stems, says_the_same, single, statement
from aforesaid.facts.timing import timing
from aforesaid.facts.values import LIVING, SINGLE, key_of, names, renamed, same_value
from aforesaid.models.offline.memories.keys import says_less
from aforesaid.models.salience import Judgement
from aforesaid.models.superseding import (
    RELATED,
    OlderWords,
    StatementWords,
    SupersedingModel,
    load_plain_superseding,
    load_superseding,
    may_change_plainly,
    statement_words,
)
from aforesaid.store.memories import AddMemory, ChangeMemory, CountMemory
from aforesaid.store.operations import Change
from aforesaid.text.languages import guess_language, language_told
from aforesaid.text.sentences import length_in_words
from aforesaid.text.words import fold

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray


class KnownMemories:
    """The memories of a user, in the order given, by what they have in common with new statements."""

    def __init__(self, known: Sequence[MemoryRecord], names: Collection[str]) -> None:
        """`names` are those of the user. They do not count as words of a statement."""
        self._known = known
        self._names = tuple(names)
        self._name_stems = name_stems(names)
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)
        self._by_claim: defaultdict[str, list[int]] = defaultdict(list)
        self._by_text: defaultdict[str, list[int]] = defaultdict(list)
        self._by_source: defaultdict[int, list[int]] = defaultdict(list)
        self._by_subject: defaultdict[str, list[int]] = defaultdict(list)
        self._by_id: dict[int, int] = {}
        self._without_words: list[int] = []
        self._reminders_by_hand: list[int] = []
        for place, memory in enumerate(known):
            self._add(place, memory)

    def maybe_same(self, text: str, near: Iterable[int] = ()) -> list[MemoryRecord]:
        """Return every memory that may say the same as a text, and reminders that were set by hand.

        `near` are the ids of memories that mean nearly the same.
        """
        mine = statement(text, self._names)
        words = mine.words - self._name_stems
        places = {*self._by_text.get(text, ()), *self._reminders_by_hand}
        places.update(self._by_id[memory] for memory in near if memory in self._by_id)
        if mine.claim is not None:
            places.update(self._by_claim.get(mine.claim.key, ()))
        if not words:
            places.update(self._without_words)
        shared = Counter(chain.from_iterable(self._by_word.get(word, ()) for word in words))
        least = least_shared(len(words))
        places.update(place for place, number in shared.items() if number >= least)
        return self._in_order(places)

    def maybe_outdated(self, subject: str | None, message: int | None, memory: int | None) -> list[MemoryRecord]:
        """Return every memory about a subject, every one that rests on a message, and one with an id."""
        places = set() if message is None else set(self._by_source.get(message, ()))
        if subject is not None:
            places.update(self._by_subject.get(subject, ()))
        if memory is not None and memory in self._by_id:
            places.add(self._by_id[memory])
        return self._in_order(places)

    def _add(self, place: int, memory: MemoryRecord) -> None:
        found = statement(memory.text, self._names)
        words = found.words - self._name_stems
        for word in words:
            self._by_word[word].append(place)
        if not words:
            self._without_words.append(place)
        if found.claim is not None:
            self._by_claim[found.claim.key].append(place)
        self._by_text[memory.text].append(place)
        for seq in memory.sources:
            self._by_source[seq].append(place)
        if memory.subject is not None:
            self._by_subject[memory.subject].append(place)
        self._by_id[memory.id] = place
        if memory.category == "reminder" and memory.extractor == BY_HAND:
            self._reminders_by_hand.append(place)

    def _in_order(self, places: Iterable[int]) -> list[MemoryRecord]:
        return [self._known[place] for place in sorted(places)]


REJECTED: Final = "rejected"
"""Why a memory is deactivated: a person did not approve it."""


@dataclass(frozen=True, slots=True)
class ReconcileInput:
    """What `reconcile` decides by."""

    scope: Scope
    owner: Person
    people: Mapping[str, Person]
    batch: Sequence[Message]
    """The messages that the candidates come from, and messages around them."""
    known: Sequence[MemoryRecord]
    """All memories of the user, in every state."""
    tombstones: Sequence[Tombstone]
    zone: tzinfo
    keep_days: Mapping[str, int]
    near: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Ids of memories that mean nearly the same, by the text of a candidate."""
    meanings: Mapping[str, float] = field(default_factory=dict)
    """Similarity of meaning between candidates and their sources, by text, where they share few words."""
    language: str | None = None
    """The language that the owner speaks mostly."""


@dataclass(slots=True)
class Plan:
    """The changes that candidates lead to."""

    drafts: list[MemoryDraft] = field(default_factory=list)
    supersedes: list[tuple[Superseded, ...]] = field(default_factory=list)
    """For each draft, the memories that it supersedes."""
    counts: dict[int, CountMemory] = field(default_factory=dict)
    ends: dict[int, ChangeMemory] = field(default_factory=dict)
    """Values that are over, without others in their place."""
    restated: list[str] = field(default_factory=list)
    """Texts that contradict what a user stated before; the text of facts must be changed too."""
    dropped: Counter[str] = field(default_factory=Counter)
    rest: Sequence[Candidate] = ()
    """Candidates that can be decided only after the drafts are stored."""

    @property
    def gone(self) -> set[int]:
        """The memories that the plan changes already: a second change would meet another revision."""
        return {old.memory for group in self.supersedes for old in group} | self.ends.keys()

    def copy(self) -> Plan:
        """Return a copy that can be changed independently."""
        return Plan(
            [*self.drafts],
            [*self.supersedes],
            dict(self.counts),
            dict(self.ends),
            [*self.restated],
            Counter(self.dropped),
            self.rest,
        )

    def changes(self) -> list[Change]:
        new = zip(self.drafts, self.supersedes, strict=True)
        return [*(AddMemory(draft, supersedes=old) for draft, old in new), *self.counts.values(), *self.ends.values()]


def reconcile(candidates: Sequence[Candidate], given: ReconcileInput) -> Plan:
    """Return what to do with candidates, in the order in which they were said.

    Stops at a message that contradicts a draft of the same plan; the remaining candidates are in `Plan.rest`.
    """
    notes = any(candidate.matter is None for candidate in candidates)
    plan, known = Plan(), KnownMemories(given.known if notes else (), given.owner.names)
    ordered = sorted(candidates, key=lambda candidate: candidate.last)
    place = 0
    for _, group in groupby(ordered, key=lambda candidate: candidate.last):
        together = list(group)
        longer = _with_message(plan.copy(), together, given, known)
        if longer is None:
            # The draft that this message contradicts must be stored first.
            plan.rest = ordered[place:]
            return plan
        plan, place = longer, place + len(together)
    _end_what_is_over(plan, given)
    return plan


def _end_what_is_over(plan: Plan, given: ReconcileInput) -> None:
    """Add what is over by what was said, or not mentioned any more, to a whole plan."""
    gone = plan.gone
    known = [
        each for each in given.known if each.state == "active" and each.id not in gone and each.id not in plan.counts
    ]
    for each in over_by(given.batch, [*known, *plan.drafts], given.owner):
        if isinstance(each.known, MemoryRecord):
            at = max(each.known.valid_from, each.since)
            past = replace(each.known, state="expired", active=False, valid_to=at, reason=each.reason)
            plan.ends[past.id] = ChangeMemory(past, "end")
        else:
            past_draft = replace(each.known, state="expired", valid_to=each.since, reason=each.reason)
            plan.drafts[plan.drafts.index(each.known)] = past_draft


def _with_message(
    plan: Plan, candidates: Sequence[Candidate], given: ReconcileInput, known: KnownMemories
) -> Plan | None:
    """Add the candidates of one message to a plan. Returns None if one contradicts a draft of an earlier message."""
    for candidate in candidates:
        admission = admit(candidate, given.batch, given.owner, given.people, given.tombstones, given.meanings)
        if admission.dropped is not None:
            plan.dropped[admission.dropped] += 1
            continue
        draft = _draft(candidate, given, admission.quarantine)
        if candidate.matter is not None:
            if not _with_value(plan, candidate, draft, given):
                return None
            continue
        if _planned_before(candidate, draft, given, plan):
            continue
        clash = next((number for number, other in enumerate(plan.drafts) if _replaces(draft, other, candidate)), None)
        if clash is not None:
            if candidate.last > max(plan.drafts[clash].sources):
                return None
            # Both are in one message: the later statement counts.
            del plan.drafts[clash], plan.supersedes[clash]
        elif _known_before(candidate, draft, given, plan, known):
            continue
        _add(draft, candidate, plan, known)
    return plan


def _with_value(plan: Plan, candidate: Candidate, draft: MemoryDraft, given: ReconcileInput) -> bool:
    """Add a value to a plan, or what it ends. Returns False if that touches a draft of an earlier message."""
    if draft.state != "active":
        plan.drafts.append(draft)
        plan.supersedes.append(())
        return True
    language, said = draft.language or guess_language(candidate.quote), candidate.said
    gone = plan.gone
    own = [each for each in given.known if each.matter and each.speaker == draft.speaker and each.id not in gone]
    if candidate.value is not None and any(
        each.state == "deactivated"
        and each.subject == draft.subject
        and same_value(candidate.value, each.value or "", language)
        and (each.reason == REJECTED or _was_deactivated_later(said, each))
        for each in own
    ):
        plan.dropped["deactivated"] += 1
        return True
    active = sorted((each for each in own if each.state == "active"), key=lambda each: (each.valid_from, each.id))
    planned = [each for each in plan.drafts if each.matter and each.speaker == draft.speaker and each.state == "active"]
    settled = settle(candidate, [*active, *planned], language)
    if candidate.holds == "own" and settled.repeats is None and is_doubtful(candidate):
        doubted: list[MemoryDraft | MemoryRecord] = [*own]
        doubted += [each for each in plan.drafts if each.matter and each.speaker == draft.speaker]
        if not any(_confirms(candidate, each, language) for each in doubted):
            plan.drafts.append(replace(draft, state="expired", valid_to=said, reason=DOUBTED))
            plan.supersedes.append(())
            return True
        candidate, draft = candidate._replace(confidence=SURE), replace(draft, confidence=SURE, times=2)
        settled = settle(candidate, [*active, *planned], language)
    touched = (*settled.replaces, *settled.ends)
    if any(isinstance(each, MemoryDraft) and max(each.sources) < candidate.last for each in touched):
        return False
    repeated_one = settled.repeats
    if isinstance(repeated_one, MemoryDraft):
        number = plan.drafts.index(repeated_one)
        sources = tuple(sorted({*repeated_one.sources, *draft.sources}))[:SOURCES_KEPT]
        plan.drafts[number] = replace(repeated_one, times=repeated_one.times + 1, sources=sources)
    elif repeated_one is not None:
        _count(candidate, repeated_one, given, plan)
    over = [] if settled.ends or candidate.holds != "over" else _short_notes(candidate, given, plan.gone, language)
    for each in (*settled.ends, *over):
        if isinstance(each, MemoryRecord) and each.valid_from <= said:
            _end(each, candidate, given, plan)
    if not settled.is_stored:
        plan.dropped["known"] += 1
        return True
    replaced = [each for each in settled.replaces if isinstance(each, MemoryRecord)]
    if candidate.matter in LIVING and candidate.value is not None:
        candidate, draft = _with_relation(candidate, draft, replaced, language)
        _call_by_new_name(candidate, replaced, given, plan)
    if candidate.matter in SINGLE and candidate.holds == "own":
        replaced += [each for each in _in_other_words(candidate, draft, given) if each.id not in plan.gone]
    later = [each for each in replaced if each.valid_from > said]
    if later:
        first = min(later, key=lambda each: each.valid_from)
        draft, replaced = replace(draft, state="superseded", valid_to=first.valid_from, superseded_by=first.id), []
    elif candidate.holds == "over":
        draft = as_past(draft, candidate)
    replaced = [*replaced, *(note for each in replaced for note in _notes_of(each, given, plan.gone))]
    plan.drafts.append(draft)
    plan.supersedes.append(tuple({each.id: Superseded(each.id, each.revision) for each in replaced}.values()))
    if any(each.trust == "stated" for each in replaced):
        plan.restated.append(candidate.quote)
    return True


def _confirms(candidate: Candidate, known: MemoryDraft | MemoryRecord, language: str) -> bool:
    """Return whether a doubtful value was told before, in another message."""
    is_other = known.reason == DOUBTED and candidate.last not in known.sources and known.subject == candidate.subject
    return is_other and same_value(candidate.value or "", known.value or "", language)


def _with_relation(
    candidate: Candidate, draft: MemoryDraft, replaced: Sequence[MemoryRecord], language: str
) -> tuple[Candidate, MemoryDraft]:
    """Return a corrected name with the relation that the wrong one had."""
    value, told = candidate.value or "", next((each.value for each in replaced if each.value), "")
    whole = renamed(told, value, language) if candidate.corrects and told else value
    if whole == value:
        return candidate, draft
    text = whole.join(draft.text.rsplit(value, 1))
    return candidate._replace(value=whole, text=text), replace(draft, value=whole, text=text)


def _call_by_new_name(
    candidate: Candidate, replaced: Sequence[MemoryRecord], given: ReconcileInput, plan: Plan
) -> None:
    """Let what is known about a person be about the name that the person has now."""
    new = candidate.value or ""
    names = {fold(each.value): each.value for each in replaced if each.value}
    for memory in given.known:
        old = names.get(fold(memory.about)) if memory.about is not None and memory.matter else None
        if old is None or memory.state != "active" or memory.id in plan.gone or memory.matter is None:
            continue
        subject, text = key_of(memory.matter, new), memory.text.replace(memory.about or old, new, 1)
        plan.ends[memory.id] = ChangeMemory(replace(memory, about=new, subject=subject, text=text), "edit")


def _in_other_words(candidate: Candidate, draft: MemoryDraft, given: ReconcileInput) -> list[MemoryRecord]:
    """Return active memories that tell another value of a matter as a sentence, as those stated by hand do."""
    value = fold(candidate.value or "")
    return [
        each
        for each in given.known
        if each.matter is None
        and each.state == "active"
        and each.subject == draft.subject
        and each.speaker == draft.speaker
        and each.valid_from <= candidate.said
        and value not in fold(each.text)
    ]


def _end(memory: MemoryRecord, candidate: Candidate, given: ReconcileInput, plan: Plan) -> None:
    about = [
        each
        for each in given.known
        if memory.matter in LIVING
        and each.state == "active"
        and each.matter is not None
        and each.about is not None
        and same_value(each.about, memory.value or "", memory.language or "english")
    ]
    for each in (memory, *about, *_notes_of(memory, given, plan.gone)):
        if each.id in plan.gone:
            continue
        plan.counts.pop(each.id, None)
        plan.ends[each.id] = ChangeMemory(ended(each, candidate), "end")


def _is_note(memory: MemoryRecord, gone: Collection[int]) -> bool:
    """Return whether a memory is an active quote of what somebody said, and not among those that are gone."""
    return (
        memory.matter is None
        and memory.state == "active"
        and memory.id not in gone
        and memory.trust != "stated"
        and memory.category in {"fact", "other", "preference"}
        and memory.kind != INSTRUCTION
    )


def _notes_of(memory: MemoryRecord, given: ReconcileInput, gone: Collection[int]) -> list[MemoryRecord]:
    """Return the notes that quote the words in which a value was told."""
    value = fold(memory.value or "")
    return [
        each
        for each in given.known
        if _is_note(each, gone) and not set(each.sources).isdisjoint(memory.sources) and value in fold(each.text)
    ]


def _short_notes(
    candidate: Candidate, given: ReconcileInput, gone: Collection[int], language: str
) -> list[MemoryRecord]:
    """Return the short notes that name the value of a candidate, which is over."""
    return [
        each
        for each in given.known
        if _is_note(each, gone)
        and each.speaker == candidate.speaker.id
        and max(each.sources, default=0) < candidate.last
        and length_in_words(each.text) <= _SHORT_NOTE
        and candidate.value is not None
        and names(each.text, candidate.value, language)
    ]


def _draft(candidate: Candidate, given: ReconcileInput, quarantine: str | None) -> MemoryDraft:
    times = timing(candidate.category, candidate.said, candidate.event, given.keep_days, given.zone)
    own = candidate.speaker.id == given.owner.id
    # A reminder whose time was already over when it was said must not be delivered at once.
    ahead = times.remind_at is not None and times.remind_at > candidate.said
    return MemoryDraft(
        scope=given.scope,
        category=candidate.category,
        text=candidate.text,
        importance=candidate.importance,
        sources=tuple(message.seq for message in candidate.sources),
        state="active" if quarantine is None else "quarantined",
        speaker=candidate.speaker.id,
        subject=candidate.subject,
        event=candidate.event,
        remind_at=times.remind_at if ahead else None,
        expires_at=candidate.until or times.expires_at,
        valid_from=candidate.said,
        extractor=candidate.extractor,
        trust="said" if own else "reported",
        reason=quarantine or "",
        kind=INSTRUCTION if candidate.request else candidate.kind,
        about=candidate.about or whom(candidate.text, candidate.subject, candidate.speaker, given.owner, given.people),
        said_at=candidate.said,
        language=candidate.language or _language_of(candidate, given),
        confidence=candidate.confidence,
        matter=candidate.matter,
        value=candidate.value,
    )


def _language_of(candidate: Candidate, given: ReconcileInput) -> str:
    words = candidate.quote or candidate.text
    if given.language is None or candidate.speaker.id != given.owner.id:
        return guess_language(words, names=candidate.speaker.names)
    return language_told(words, given.language) or given.language


def _planned_before(candidate: Candidate, draft: MemoryDraft, given: ReconcileInput, plan: Plan) -> bool:
    """If a draft of the plan says the same, count this one there and return True."""
    for number, other in enumerate(plan.drafts):
        if _same(draft, other, given, candidate.outdates):
            sources = tuple(sorted({*other.sources, *draft.sources}))[:SOURCES_KEPT]
            plan.drafts[number] = replace(other, times=other.times + 1, sources=sources)
            plan.dropped["known"] += 1
            return True
    return False


def _known_before(
    candidate: Candidate, draft: MemoryDraft, given: ReconcileInput, plan: Plan, known: KnownMemories
) -> bool:
    """If a memory already says the same, count this draft there or drop it, and return True."""
    for memory in known.maybe_same(draft.text, given.near.get(draft.text, ())):
        if _was_carried_out(draft, memory):
            plan.dropped["known"] += 1
            return True
        if not _same(draft, memory, given, candidate.outdates) or _refines(draft, candidate, memory):
            continue
        if memory.state in {"active", "quarantined"}:
            _count(candidate, memory, given, plan)
            plan.dropped["known"] += 1
            return True
        if memory.reason == REJECTED or _was_deactivated_later(candidate.said, memory):
            plan.dropped["deactivated"] += 1
            return True
    return False


def _refines(draft: MemoryDraft, candidate: Candidate, memory: MemoryRecord) -> bool:
    """Return whether a model's sentence says all that an active memory says, and more."""
    if candidate.replaces != memory.id or memory.state != "active":
        return False
    names = candidate.speaker.names
    return statement(memory.text, names).words < statement(draft.text, names).words


def _was_carried_out(draft: MemoryDraft, memory: MemoryRecord) -> bool:
    """Return whether the draft's message already led to a reminder by hand, as when a bot was asked for one."""
    dated = draft.category in DATED and memory.category == "reminder" and memory.extractor == BY_HAND
    return dated and not set(draft.sources).isdisjoint(memory.sources)


def _was_deactivated_later(said: datetime, memory: MemoryRecord) -> bool:
    """Return whether a memory was ended after this was said. Saying it later makes it valid again.

    One that ended with its message says nothing about other messages, nor about a newer version of that one.
    """
    if memory.reason in {TAKEN_BACK, EDITED}:
        return False
    return memory.reason == FORGOTTEN or (memory.valid_to is not None and said <= memory.valid_to)


def _count(candidate: Candidate, memory: MemoryRecord, given: ReconcileInput, plan: Plan) -> None:
    before = plan.counts.get(memory.id)
    seqs = tuple(message.seq for message in candidate.sources)
    if set(seqs) <= set(memory.sources):
        # The same messages are processed again, for example after a repair: count them once.
        return
    plan.counts[memory.id] = CountMemory(
        given.scope,
        memory.id,
        1 + (0 if before is None else before.times),
        candidate.said if before is None else max(before.seen_at, candidate.said),
        seqs if before is None else (*before.sources, *seqs),
    )


def _same(draft: MemoryDraft, other: MemoryDraft | MemoryRecord, given: ReconcileInput, outdates: int | None) -> bool:
    """Return whether a draft says the same as another or as a memory, in other words or not.

    What makes a message's memory outdated does not mean the same: "the gym is on Thursdays now".
    """
    if draft.subject is not None and other.subject is not None and draft.subject != other.subject:
        return False
    if other.trust != "stated" and draft.speaker != other.speaker:
        return False
    if other.matter is not None:
        return False
    if draft.event != other.event and draft.category in {"schedule", "reminder", "task"}:
        return False
    if says_the_same(draft.text, other.text, given.owner.names):
        return True
    near = isinstance(other, MemoryRecord) and other.id in given.near.get(draft.text, ())
    if not near or outdates in other.sources:
        return False
    names = given.owner.names
    mine, theirs = statement(draft.text, names), statement(other.text, names)
    alike = mine.numbers == theirs.numbers and mine.denies == theirs.denies
    return alike and not contradicts(draft.text, other.text, names)


def _replaces(draft: MemoryDraft, other: MemoryDraft | MemoryRecord, candidate: Candidate) -> bool:
    """Return whether a draft makes an active statement outdated, or excludes one about the same subject."""
    if draft.state != "active" or other.state != "active" or other.matter is not None:
        return False
    if candidate.outdates in other.sources and draft.speaker == other.speaker and other.trust != "stated":
        return True
    if draft.subject is None or draft.subject != other.subject:
        return False
    if not single(draft.subject):
        return False
    names = candidate.speaker.names
    mine, theirs = statement(draft.text, names).claim, statement(other.text, names).claim
    liked = None if mine is None else mine.liked
    if liked is None or theirs is None:
        return not says_less(draft.text, other.text, names)
    return liked != theirs.liked


def _add(draft: MemoryDraft, candidate: Candidate, plan: Plan, known: KnownMemories) -> None:
    since = draft.valid_from or candidate.said
    # A memory has one successor: the first draft of the plan that makes it outdated.
    taken = {old.memory for group in plan.supersedes for old in group}
    maybe = known.maybe_outdated(draft.subject, candidate.outdates, candidate.replaces)
    old = [memory for memory in maybe if memory.id not in taken and _supersedes(draft, candidate, memory)]
    old = [memory for memory in old if not _says_something_else(memory, draft, old)]
    newer = [memory for memory in old if memory.valid_from > since]
    if newer:
        # It arrives late and was said before the known memory, which therefore stays active.
        first = min(newer, key=lambda memory: memory.valid_from)
        draft = replace(draft, state="superseded", valid_to=first.valid_from, superseded_by=first.id)
        old = []
    plan.drafts.append(draft)
    plan.supersedes.append(tuple(Superseded(memory.id, memory.revision) for memory in old))
    if any(memory.trust == "stated" for memory in old):
        plan.restated.append(draft.text)


def _says_something_else(memory: MemoryRecord, draft: MemoryDraft, old: Sequence[MemoryRecord]) -> bool:
    """Return whether another memory of the same message is what a draft makes outdated: the home, and not the name."""
    if memory.subject == draft.subject or memory.subject is None:
        return False
    return any(
        other.subject == draft.subject is not None and not set(other.sources).isdisjoint(memory.sources)
        for other in old
    )


def _supersedes(draft: MemoryDraft, candidate: Candidate, memory: MemoryRecord) -> bool:
    if _replaces(draft, memory, candidate):
        return True
    if candidate.replaces != memory.id or draft.state != "active" or memory.state != "active":
        return False
    # A model may be wrong or manipulated: what it replaces must be about the same person and topic.
    if draft.subject is not None and memory.subject is not None and draft.subject != memory.subject:
        return False
    if memory.speaker != (draft.speaker or memory.user):
        return False
    names = candidate.speaker.names
    shared = statement(draft.text, names).words & statement(memory.text, names).words
    return bool(shared - name_stems(names))


MOST_COMPARED: Final = 1_000
"""Maximum memories that a statement is compared with, the newest ones."""
_SHORT_NOTE: Final = 9
"""Maximum words of a note that says little more than one thing."""
_DAY_SECONDS: Final = 86_400


class _Statement(NamedTuple):
    """A statement of a person that may be outdated."""

    seq: int
    """The message that says it."""
    said: datetime
    text: str
    vector: NDArray[np.float32]

    @property
    def words(self) -> StatementWords:
        """The words by which it is compared with others."""
        return statement_words(self.text)


def comparable(known: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the newest memories that may be outdated: active ones that were extracted, and are no requests."""
    found = [
        memory
        for memory in known
        if memory.state == "active"
        and memory.sources
        and memory.trust != "stated"
        and memory.kind != INSTRUCTION
        and memory.matter is None
    ]
    return sorted(found, key=lambda memory: (memory.valid_from, memory.id))[-MOST_COMPARED:]


def repeated(
    candidates: Sequence[Candidate],
    known: Sequence[MemoryRecord],
    vectors: Mapping[int, NDArray[np.float32]],
    thresholds: Mapping[int, float],
) -> dict[str, frozenset[int]]:
    """Return the ids of memories whose message means nearly the same as that of a candidate, by the candidate's text.

    Only candidates that consist of a message's own words are compared. `thresholds` are the cosines from which two
    messages mean the same, by the candidate's message. An answer that is quoted with its question repeats nothing:
    "yes, I do" means something else after another question.
    """
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    compared = [memory for memory in known if min(memory.sources) in vectors]
    quoted = [candidate for candidate in candidates if candidate.has_original_words]
    found: dict[str, frozenset[int]] = {candidate.text: frozenset() for candidate in quoted}
    alone = [candidate for candidate in quoted if len(candidate.sources) == 1]
    if not compared or not alone:
        return found
    old = np.stack([vectors[min(memory.sources)] for memory in compared])
    cosines = np.stack([vectors[candidate.last] for candidate in alone]) @ old.T
    for candidate, row in zip(alone, cosines, strict=True):
        near = (compared[place] for place in np.flatnonzero(row >= thresholds[candidate.last]))
        found[candidate.text] |= {memory.id for memory in near if min(memory.sources) != candidate.last}
    return found


def with_outdated(
    candidates: Sequence[Candidate], known: Sequence[MemoryRecord], vectors: Mapping[int, NDArray[np.float32]]
) -> list[Candidate]:
    """Return candidates, each with the message whose memory it makes outdated, if there is one.

    `known` are memories to compare with, oldest first; `vectors` those of messages, by sequence number. Earlier
    candidates are compared with too. Messages without a vector are left out.
    """
    older = _statements(known, vectors, len(candidates))
    found: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda each: each.last):
        seq = candidate.last
        plain = candidate.matter is None and not candidate.request and candidate.category != "reminder"
        if not plain or seq not in vectors:
            found.append(candidate)
            continue
        new = _Statement(seq, candidate.said, candidate.quote or candidate.text, vectors[seq])
        own = older[candidate.speaker.id]
        outdates = own.outdated_by(new)
        found.append(candidate._replace(outdates=outdates))
        if outdates is not None:
            own.remove(outdates)
        own.add(new)
    return found


def telling_changes(
    messages: Sequence[Message],
    judgements: Mapping[int, Judgement],
    known: Sequence[MemoryRecord],
    vectors: Mapping[int, NDArray[np.float32]],
) -> frozenset[int]:
    """Return the messages that make a plain statement outdated, but seem not worth remembering by themselves.

    "Tom and I broke up" is worth remembering where "My boyfriend is called Tom" is known. `messages` are in the order
    of their sequence numbers, and `known` are memories to compare with, oldest first.
    """
    read = [message for message in messages if message.seq in judgements and message.seq in vectors]
    # A person has few plain statements, so all others are left out before words are compared.
    compared = [memory for memory in known if max(memory.sources) in vectors]
    plain = load_plain_superseding().are_plain(_rows(vectors, [max(memory.sources) for memory in compared]))
    older = _statements(
        [memory for memory, is_plain in zip(compared, plain, strict=True) if is_plain], vectors, len(read)
    )
    found = set()
    for message in read:
        new = _Statement(message.seq, message.at, message.text, vectors[message.seq])
        own = older[message.author]
        if not judgements[message.seq].worth_remembering:
            if (outdated := own.plainly_outdated_by(new)) is None:
                continue
            own.remove(outdated)
            found.add(message.seq)
        own.add(new)
    return frozenset(found)


def _rows(vectors: Mapping[int, NDArray[np.float32]], seqs: Sequence[int]) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415

    return np.stack([vectors[seq] for seq in seqs]) if seqs else np.zeros((0, _dimensions()), dtype=np.float32)


def _dimensions() -> int:
    return len(load_superseding().new) - 1


def _statements(
    known: Sequence[MemoryRecord], vectors: Mapping[int, NDArray[np.float32]], room: int
) -> defaultdict[str, _Statements]:
    """Return the statements of memories by their speakers, with room for more."""
    most = len(known) + room
    found: defaultdict[str, _Statements] = defaultdict(lambda: _Statements(most))
    for memory in known:
        seq = max(memory.sources)
        if seq in vectors:
            found[memory.speaker].add(_Statement(seq, memory.valid_from, memory.text, vectors[seq]))
    return found


class _Statements:
    """Statements of one person in columns, in the order in which they were added."""

    def __init__(self, most: int) -> None:
        """Make room for `most` statements."""
        import numpy as np  # noqa: PLC0415 - loaded with the first vector

        self._model = load_superseding()
        self._plain_model = load_plain_superseding()
        self._words = OlderWords()
        self._count = 0
        self._seqs = np.zeros(most, dtype=np.int64)
        self._seconds = np.zeros(most)
        self._vectors = np.zeros((most, _dimensions()), dtype=np.float32)
        self._current = np.zeros(most, dtype=bool)
        """Which statements no later one made outdated."""
        self._plain = np.zeros(most, dtype=bool)
        """Which statements are plain ones."""

    def add(self, new: _Statement) -> None:
        place, self._count = self._count, self._count + 1
        self._words.add(new.words)
        self._seqs[place] = new.seq
        self._seconds[place] = new.said.timestamp()
        self._vectors[place] = new.vector
        self._current[place] = True
        self._plain[place] = self._plain_model.are_plain(new.vector[None])[0]

    def remove(self, seq: int) -> None:
        self._current[self._seqs == seq] = False

    def outdated_by(self, new: _Statement) -> int | None:
        """Return the message of the older statement that a new one makes outdated, or None."""
        chosen = self._older_than(new)
        margins = self._margins(self._model, self._model.says_change(new.vector), new, chosen)
        if may_change_plainly(new.text):
            plain = self._plain[chosen]
            margins[plain] = self._plain_margins(new, chosen[plain])
        return self._likeliest(chosen, margins)

    def plainly_outdated_by(self, new: _Statement) -> int | None:
        """Return the message of the plain statement that a new one makes outdated, or None."""
        chosen = self._older_than(new)
        chosen = chosen[self._plain[chosen]]
        if not len(chosen) or not may_change_plainly(new.text):
            return None
        return self._likeliest(chosen, self._plain_margins(new, chosen))

    def _older_than(self, new: _Statement) -> NDArray[np.int64]:
        """Return the places of the older statements that are still current."""
        import numpy as np  # noqa: PLC0415

        return np.flatnonzero(self._current[: self._count] & (self._seqs[: self._count] < new.seq))

    def _plain_margins(self, new: _Statement, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how clearly a new statement makes each of some plain ones outdated."""
        import numpy as np  # noqa: PLC0415

        model = self._plain_model
        margins = self._margins(model.model, model.says_change(new.text, new.vector), new, chosen)
        return np.where(self._vectors[chosen] @ new.vector >= RELATED, margins, np.float32(-np.inf))

    def _margins(
        self, model: SupersedingModel, says_change: float, new: _Statement, chosen: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return how clearly a new statement makes each of some older ones outdated."""
        import numpy as np  # noqa: PLC0415

        if not len(chosen):
            return np.zeros(0, dtype=np.float32)
        vectors = self._vectors[chosen]
        days = np.maximum(new.said.timestamp() - self._seconds[chosen], 0) / _DAY_SECONDS
        compared = self._words.compare(vectors @ new.vector, days.astype(np.float32), new.words, chosen)
        return model.margins(says_change, model.changes_later(vectors), compared)

    def _likeliest(self, chosen: NDArray[np.int64], margins: NDArray[np.float32]) -> int | None:
        """Return the message of the statement with the largest margin, if it is large enough."""
        if not len(chosen):
            return None
        best = int(margins.argmax())
        return int(self._seqs[chosen[best]]) if margins[best] >= 0 else None
