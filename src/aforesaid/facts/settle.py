"""What is to be done with candidates, next to what is known: stored, counted, put in the place of others, dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Final

from aforesaid.domain.memory import BY_HAND, FORGOTTEN, INSTRUCTION, MemoryDraft, MemoryRecord, Tombstone
from aforesaid.domain.memory_change import SOURCES_KEPT, AddMemory, CountMemory, MemoryChange, Superseded
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.facts.candidate import DATED, Candidate
from aforesaid.facts.people import Person
from aforesaid.facts.screen import screen
from aforesaid.facts.statement import contradicts, says_the_same, single, statement
from aforesaid.facts.timing import timing

REJECTED: Final = "rejected"
"""The reason of what a person did not approve."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What has to be known to decide."""

    scope: Scope
    owner: Person
    people: Mapping[str, Person]
    batch: Sequence[Message]
    """The messages that the candidates were found in, and what was said around them."""
    known: Sequence[MemoryRecord]
    """All memories of the user, in every state."""
    stones: Sequence[Tombstone]
    zone: tzinfo
    keep_days: Mapping[str, int]
    near: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Memories whose meaning is very near to a candidate's, by its text."""
    meanings: Mapping[str, float] = field(default_factory=dict)
    """How near candidates are to their sources in meaning, by their text, where words do not tell."""


@dataclass(slots=True)
class Plan:
    """What to do."""

    drafts: list[MemoryDraft] = field(default_factory=list)
    supersedes: list[tuple[Superseded, ...]] = field(default_factory=list)
    """For each draft, what it takes the place of."""
    counts: dict[int, CountMemory] = field(default_factory=dict)
    restated: list[str] = field(default_factory=list)
    """What contradicts something that was stated before: the text of facts has to follow."""
    dropped: Counter[str] = field(default_factory=Counter)
    rest: Sequence[Candidate] = ()
    """Candidates that can only be decided about once the others are stored."""

    def copy(self) -> Plan:
        """Return a plan that can go another way."""
        return Plan(
            [*self.drafts], [*self.supersedes], dict(self.counts), [*self.restated], Counter(self.dropped), self.rest
        )

    def changes(self) -> list[MemoryChange]:
        """Return the changes that carry it out."""
        new = zip(self.drafts, self.supersedes, strict=True)
        return [*(AddMemory(draft, supersedes=old) for draft, old in new), *self.counts.values()]


def settle(candidates: Sequence[Candidate], now: Situation) -> Plan:
    """Decide about candidates, in the order in which they were said."""
    plan = Plan()
    ordered = sorted(candidates, key=lambda candidate: candidate.last)
    place = 0
    for _, group in groupby(ordered, key=lambda candidate: candidate.last):
        together = list(group)
        longer = _with_message(plan.copy(), together, now)
        if longer is None:
            # What this message contradicts has to be stored first.
            plan.rest = ordered[place:]
            return plan
        plan, place = longer, place + len(together)
    return plan


def _with_message(plan: Plan, candidates: Sequence[Candidate], now: Situation) -> Plan | None:
    """Add what one message says to a plan. None where it contradicts what the plan itself is about to store."""
    for candidate in candidates:
        screened = screen(candidate, now.batch, now.owner, now.people, now.stones, now.meanings)
        if screened.dropped is not None:
            plan.dropped[screened.dropped] += 1
            continue
        draft = _draft(candidate, now, screened.quarantine)
        if _planned_before(draft, now, plan):
            continue
        clash = next((number for number, other in enumerate(plan.drafts) if _replaces(draft, other)), None)
        if clash is not None:
            if candidate.last > max(plan.drafts[clash].sources):
                return None
            # Both in one message: the later words hold.
            del plan.drafts[clash], plan.supersedes[clash]
        elif _known_before(candidate, draft, now, plan):
            continue
        _add(draft, candidate, now, plan)
    return plan


def _draft(candidate: Candidate, now: Situation, quarantine: str | None) -> MemoryDraft:
    times = timing(candidate.category, candidate.said, candidate.event, now.keep_days, now.zone)
    own = candidate.speaker.id == now.owner.id
    # A time that was over when it was named, as a bot refuses it, must not ring at once.
    ahead = times.remind_at is not None and times.remind_at > candidate.said
    return MemoryDraft(
        scope=now.scope,
        category=candidate.category,
        text=candidate.text,
        importance=candidate.importance,
        tags=(INSTRUCTION,) if candidate.request else (),
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
    )


def _planned_before(draft: MemoryDraft, now: Situation, plan: Plan) -> bool:
    """Count what is about to be stored already. Tell whether there is nothing more to do."""
    for number, other in enumerate(plan.drafts):
        if _same(draft, other, now):
            sources = tuple(sorted({*other.sources, *draft.sources}))[:SOURCES_KEPT]
            plan.drafts[number] = replace(other, times=other.times + 1, sources=sources)
            plan.dropped["known"] += 1
            return True
    return False


def _known_before(candidate: Candidate, draft: MemoryDraft, now: Situation, plan: Plan) -> bool:
    """Count what is known already. Tell whether there is nothing more to do."""
    for memory in now.known:
        if _was_carried_out(draft, memory):
            plan.dropped["known"] += 1
            return True
        if not _same(draft, memory, now):
            continue
        if memory.state in {"active", "quarantined"}:
            _count(candidate, memory, now, plan)
            plan.dropped["known"] += 1
            return True
        if memory.reason == REJECTED or _was_deactivated_later(candidate.said, memory):
            plan.dropped["deactivated"] += 1
            return True
    return False


def _was_carried_out(draft: MemoryDraft, memory: MemoryRecord) -> bool:
    """Tell whether a draft comes from a message that already led to a reminder, as when a bot was asked for one."""
    dated = draft.category in DATED and memory.category == "reminder" and memory.extractor == BY_HAND
    return dated and not set(draft.sources).isdisjoint(memory.sources)


def _was_deactivated_later(said: datetime, memory: MemoryRecord) -> bool:
    """Tell whether a memory stopped to hold after this was said. What is said later may hold again."""
    return memory.reason == FORGOTTEN or (memory.valid_to is not None and said <= memory.valid_to)


def _count(candidate: Candidate, memory: MemoryRecord, now: Situation, plan: Plan) -> None:
    before = plan.counts.get(memory.id)
    seqs = tuple(message.seq for message in candidate.sources)
    if set(seqs) <= set(memory.sources):
        # The same messages are looked through again, as after damage: they count once.
        return
    plan.counts[memory.id] = CountMemory(
        now.scope,
        memory.id,
        1 + (0 if before is None else before.times),
        candidate.said if before is None else max(before.seen_at, candidate.said),
        seqs if before is None else (*before.sources, *seqs),
    )


def _same(draft: MemoryDraft, other: MemoryDraft | MemoryRecord, now: Situation) -> bool:
    if draft.subject is not None and other.subject is not None and draft.subject != other.subject:
        return False
    if other.trust != "stated" and draft.speaker != other.speaker:
        return False
    if draft.event != other.event and draft.category in {"schedule", "reminder", "task"}:
        return False
    if says_the_same(draft.text, other.text, now.owner.names):
        return True
    near = isinstance(other, MemoryRecord) and other.id in now.near.get(draft.text, ())
    if not near:
        return False
    mine, theirs = statement(draft.text), statement(other.text)
    return mine.numbers == theirs.numbers and mine.denies == theirs.denies and not contradicts(draft.text, other.text)


def _replaces(draft: MemoryDraft, other: MemoryDraft | MemoryRecord) -> bool:
    """Tell whether two believed things about the same subject exclude one another."""
    if draft.state != "active" or other.state != "active" or draft.subject is None or draft.subject != other.subject:
        return False
    if not single(draft.subject):
        return False
    mine, theirs = statement(draft.text).claim, statement(other.text).claim
    liked = None if mine is None else mine.liked
    return liked is None or theirs is None or liked != theirs.liked


def _add(draft: MemoryDraft, candidate: Candidate, now: Situation, plan: Plan) -> None:
    since = draft.valid_from or candidate.said
    old = [memory for memory in now.known if _takes_the_place(draft, candidate, memory)]
    newer = [memory for memory in old if memory.valid_from > since]
    if newer:
        # It was said before what is known, and comes late: what is known goes on to hold.
        first = min(newer, key=lambda memory: memory.valid_from)
        draft = replace(draft, state="superseded", valid_to=first.valid_from, superseded_by=first.id)
        old = []
    plan.drafts.append(draft)
    plan.supersedes.append(tuple(Superseded(memory.id, memory.revision) for memory in old))
    if any(memory.trust == "stated" for memory in old):
        plan.restated.append(draft.text)


def _takes_the_place(draft: MemoryDraft, candidate: Candidate, memory: MemoryRecord) -> bool:
    if _replaces(draft, memory):
        return True
    if candidate.replaces != memory.id or draft.state != "active" or memory.state != "active":
        return False
    # A model may be wrong, or led astray: what it replaces must be about the same person and the same thing.
    if draft.subject is not None and memory.subject is not None and draft.subject != memory.subject:
        return False
    if memory.speaker != (draft.speaker or memory.user):
        return False
    shared = statement(draft.text).words & statement(memory.text).words
    called = {word for name in candidate.speaker.names for word in statement(name).words}
    return bool(shared - called)
