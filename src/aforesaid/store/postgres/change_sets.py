"""Carrying out change sets inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isawaitable
from typing import Any, Final, NamedTuple, TypeVar, cast

from aforesaid.domain.change import AddNoteVectors, AddVectors, Change, Discard, Discarded
from aforesaid.domain.receipt import Result, Stored
from aforesaid.domain.transfer import as_expected
from aforesaid.store.contract import Progress
from aforesaid.store.dialects import for_postgres
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres import note_search, vectors
from aforesaid.store.postgres.answers import ANSWERS, LOOKUPS
from aforesaid.store.postgres.append import Appender
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.postgres.writes import WRITES
from aforesaid.store.questions import Question
from aforesaid.store.reporting import reporting
from aforesaid.store.rules import RULES
from aforesaid.store.rules.driving import Operation, Rule, run_waiting
from aforesaid.store.rules.purging import replace_version
from aforesaid.store.rules.retention import discard
from aforesaid.store.rules.spaces import spaces_of as spaces_of_change
from aforesaid.store.sql.appending import Prepared, Returning, prepare_change
from aforesaid.store.sql.upkeep import OLD, moment_of


class Discarding(NamedTuple):
    """A discard in the space that it was found to have something to do in."""

    step: Discard
    space: str | None
    """None where nothing is old enough in any space."""


async def locate(queries: Queries, step: Discard) -> Discarding:
    """Find a space in which something is old enough."""
    for old in OLD[step.what]:
        text = for_postgres(f"SELECT y.space {old} LIMIT 1")
        space = await queries.value(text, moment_of(step.what, step.before))
        if space is not None:
            return Discarding(step, space)
    return Discarding(step, None)


T = TypeVar("T")

Step = Change | Prepared | Returning | Discarding

_READS: Final = {**ANSWERS, **LOOKUPS}


def prepared(changes: Sequence[Change], progress: Progress | None = None) -> list[Step]:
    """Compute what a change set needs that needs no database."""
    return [_prepared(change) for change in reporting(changes, "prepared", progress)]


def _prepared(change: Change) -> Step:
    return Discarding(change, None) if isinstance(change, Discard) else prepare_change(change, hashed)


def can_share(steps: Sequence[Step]) -> bool:
    """Tell whether a change set may share a transaction: nothing in it can be refused because of what is stored."""
    return all(isinstance(step, Prepared) and not step.can_be_refused for step in steps)


def spaces_of(steps: Sequence[Step]) -> set[str]:
    """Return the spaces that a change set writes to."""
    found: set[str] = set()
    for step in steps:
        match step:
            case Prepared():
                found.add(step.draft.scope.space)
            case Returning():
                found.add(step.message.draft.scope.space)
            case Discarding():
                found.add(step.space or "")
            case _:
                found |= spaces_of_change(step)
    return found


async def append_all(transaction: WriteTransaction, change_sets: Sequence[Sequence[Step]]) -> list[tuple[Result, ...]]:
    """Carry out several change sets of messages alone, together."""
    sets = [[step for step in steps if isinstance(step, Prepared)] for steps in change_sets]
    appender = Appender(transaction, [step for steps in sets for step in steps])
    await appender.begin()
    results: list[tuple[Result, ...]] = [tuple([await appender.append(step) for step in steps]) for steps in sets]
    appender.write()
    return results


async def carry_out(
    transaction: WriteTransaction, steps: Sequence[Step], progress: Progress | None = None
) -> tuple[Result, ...]:
    """Carry out one change set."""
    messages = [step.message if isinstance(step, Returning) else step for step in steps]
    appender = Appender(transaction, [step for step in messages if isinstance(step, Prepared)])
    await appender.begin()
    results: list[Result] = []
    for step in reporting(steps, "stored", progress):
        if isinstance(step, Prepared):
            stored = await appender.append(step)
            if isinstance(stored, Stored) and stored.draft.replaces is not None:
                appender.write()
                await run_rule(transaction, replace_version(stored.draft))
            results.append(stored)
        elif isinstance(step, Returning):
            results.append(as_expected(step.change, await appender.restore(step)))
        else:
            appender.write()
            results.append(await _step(transaction, step))
    appender.write()
    return tuple(results)


async def _step(transaction: WriteTransaction, step: Step) -> Result:
    match step:
        case Discarding():
            return Discarded(0) if step.space is None else await run_rule(transaction, discard(*step))
        case AddVectors():
            vectors.add(transaction, step)
        case AddNoteVectors():
            note_search.add_vectors(transaction, step)
        case _:
            return cast("Result", await run_rule(transaction, RULES[type(step)](step)))
    return None


async def run_rule(transaction: WriteTransaction, rule: Rule[T]) -> T:
    """Carry out a rule in a transaction that has begun."""
    return await run_waiting(rule, lambda operation: _perform(transaction, operation))


async def run_alone(transaction: WriteTransaction, rule: Rule[T]) -> T:
    """Carry out a rule in a transaction of its own."""
    await transaction.begin()
    return await run_rule(transaction, rule)


async def _perform(transaction: WriteTransaction, operation: Operation) -> Any:  # noqa: ANN401 - the operation says it
    if isinstance(operation, Question):
        return await _READS[type(operation)](transaction.queries, operation)
    written = WRITES[type(operation)](transaction, operation)
    return await written if isawaitable(written) else written
