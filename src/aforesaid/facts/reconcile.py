"""Decides for each candidate whether to store it, count it as known, let it supersede memories, or drop it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Final

from aforesaid.domain.memory import (
    BY_HAND,
    EDITED,
    FORGOTTEN,
    INSTRUCTION,
    SOURCES_KEPT,
    TAKEN_BACK,
    AddMemory,
    CountMemory,
    MemoryChange,
    MemoryDraft,
    MemoryRecord,
    Superseded,
    Tombstone,
)
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.facts.admission import admit
from aforesaid.facts.candidate import DATED, Candidate
from aforesaid.facts.known_memories import KnownMemories
from aforesaid.facts.people import Person, whom
from aforesaid.facts.statement import contradicts, name_stems, says_the_same, single, statement
from aforesaid.facts.timing import timing
from aforesaid.models.offline.memories.keys import says_less
from aforesaid.text.languages import guess_language

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


@dataclass(slots=True)
class Plan:
    """The changes that candidates lead to."""

    drafts: list[MemoryDraft] = field(default_factory=list)
    supersedes: list[tuple[Superseded, ...]] = field(default_factory=list)
    """For each draft, the memories that it supersedes."""
    counts: dict[int, CountMemory] = field(default_factory=dict)
    restated: list[str] = field(default_factory=list)
    """Texts that contradict what a user stated before; the text of facts must be changed too."""
    dropped: Counter[str] = field(default_factory=Counter)
    rest: Sequence[Candidate] = ()
    """Candidates that can be decided only after the drafts are stored."""

    def copy(self) -> Plan:
        """Return a copy that can be changed independently."""
        return Plan(
            [*self.drafts], [*self.supersedes], dict(self.counts), [*self.restated], Counter(self.dropped), self.rest
        )

    def changes(self) -> list[MemoryChange]:
        """Return the changes to apply."""
        new = zip(self.drafts, self.supersedes, strict=True)
        return [*(AddMemory(draft, supersedes=old) for draft, old in new), *self.counts.values()]


def reconcile(candidates: Sequence[Candidate], given: ReconcileInput) -> Plan:
    """Return what to do with candidates, in the order in which they were said.

    Stops at a message that contradicts a draft of the same plan; the remaining candidates are in `Plan.rest`.
    """
    plan, known = Plan(), KnownMemories(given.known, given.owner.names)
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
    return plan


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
        expires_at=times.expires_at,
        valid_from=candidate.said,
        extractor=candidate.extractor,
        trust="said" if own else "reported",
        reason=quarantine or "",
        kind=INSTRUCTION if candidate.request else candidate.kind,
        about=candidate.about or whom(candidate.text, candidate.subject, candidate.speaker, given.owner, given.people),
        said_at=candidate.said,
        language=guess_language(candidate.quote or candidate.text, names=candidate.speaker.names),
        confidence=candidate.confidence,
    )


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
    if draft.state != "active" or other.state != "active":
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
