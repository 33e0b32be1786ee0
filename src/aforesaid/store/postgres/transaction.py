"""Carrying out change sets inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence

from aforesaid.domain.change import (
    AddMessage,
    AddNoteVectors,
    AddVectors,
    Archive,
    Change,
    PutFacts,
    PutSetting,
    RollBack,
    Spend,
)
from aforesaid.domain.memory_change import (
    AddMemory,
    AuditAccess,
    ChangeMemory,
    CountMemory,
    Forget,
    MarkExtracted,
    MemoryChange,
    PutDerived,
)
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Result
from aforesaid.domain.retention import Discard, PutMark
from aforesaid.domain.summary_change import AddView, Revise, Settle, SummaryChange, Walk
from aforesaid.domain.transfer import Restore, as_expected
from aforesaid.store.postgres import agenda, archive, known, note_search, notes, restoring, retention, vectors, views
from aforesaid.store.postgres.append import Appender, Prepared, Returning, prepare, prepare_return
from aforesaid.store.postgres.unit import Unit

Step = (
    AddVectors
    | AddNoteVectors
    | Spend
    | Prepared
    | Returning
    | Restore
    | retention.Discarding
    | PutMark
    | Archive
    | RollBack
    | SummaryChange
    | PutFacts
    | PutSetting
    | MemoryChange
)


def prepared(changes: Sequence[Change]) -> list[Step]:
    """Do the thinking about a change set that needs no database."""
    return [_prepared(change) for change in changes]


def _prepared(change: Change) -> Step:
    if isinstance(change, AddMessage):
        return prepare(change)
    if isinstance(change, Discard):
        return retention.Discarding(change, None)
    if isinstance(change, Restore):
        return prepare_return(change, change.row) if isinstance(change.row, Message) else change
    return change


def can_share(steps: Sequence[Step]) -> bool:
    """Tell whether a change set may share a transaction: nothing in it can be refused because of what is stored."""
    return all(isinstance(step, Prepared) and not step.can_be_refused for step in steps)


def spaces_of(steps: Sequence[Step]) -> set[str]:  # noqa: C901 - a case for each kind of change
    """Return the spaces that a change set writes to."""
    found: set[str] = set()
    for step in steps:
        match step:
            case Prepared() | Archive() | AddView() | AddMemory():
                found.add(step.draft.scope.space)
            case retention.Discarding():
                found.add(step.space or "")
            case PutMark():
                found.add("")
            case Returning():
                found.add(step.message.draft.scope.space)
            case Restore():
                found.add(restoring.space_of(step.row))
            case AddVectors() | AddNoteVectors():
                found.update(row.space for row in step.rows)
            case Walk():
                found.add(agenda.walked_space(step))
                found.update(touch.subject.space for touch in step.touched)
            case Settle():
                found.add(step.subject.space)
            case ChangeMemory():
                found.add(step.memory.space)
            case Spend():
                found.add("" if step.scope is None else step.scope.space)
            case _:
                found.add(step.scope.space)
    return found


async def append_all(unit: Unit, change_sets: Sequence[Sequence[Step]]) -> list[tuple[Result, ...]]:
    """Carry out several change sets of messages alone, together."""
    sets = [[step for step in steps if isinstance(step, Prepared)] for steps in change_sets]
    appender = Appender(unit, [step for steps in sets for step in steps])
    await appender.begin()
    results: list[tuple[Result, ...]] = [tuple([await appender.append(step) for step in steps]) for steps in sets]
    appender.write()
    return results


async def carry_out(unit: Unit, steps: Sequence[Step]) -> tuple[Result, ...]:
    """Carry out one change set."""
    messages = [step.message if isinstance(step, Returning) else step for step in steps]
    appender = Appender(unit, [step for step in messages if isinstance(step, Prepared)])
    await appender.begin()
    results: list[Result] = []
    for step in steps:
        if isinstance(step, Prepared):
            results.append(await appender.append(step))
        elif isinstance(step, Returning):
            results.append(as_expected(step.change, await appender.restore(step)))
        else:
            appender.write()
            results.append(await _step(unit, step))
    appender.write()
    return tuple(results)


async def _step(unit: Unit, step: Step) -> Result:  # noqa: C901, PLR0912 - a case for each kind of change
    match step:
        case Restore():
            return as_expected(step, await restoring.carry_out(unit, step.row))
        case retention.Discarding():
            return await retention.discard(unit, step)
        case PutMark():
            await retention.put_mark(unit, step)
        case Archive():
            return await archive.store_summary(unit, step)
        case RollBack():
            return await archive.roll_back(unit, step)
        case AddMemory() | ChangeMemory() | CountMemory() | Forget() | PutDerived() | MarkExtracted() | AuditAccess():
            return await known.carry_out(unit, step)
        case AddView():
            return await views.add(unit, step)
        case Revise():
            return await views.revise(unit, step)
        case Walk():
            await agenda.walk(unit, step)
        case Settle():
            agenda.settle(unit, step)
        case PutFacts():
            return await notes.put_facts(unit, step)
        case PutSetting():
            notes.put_setting(unit, step)
        case AddVectors():
            vectors.add(unit, step)
        case AddNoteVectors():
            note_search.add_vectors(unit, step)
        case Spend():
            notes.spend(unit, step)
    return None
