"""From records to a state: the tables, in their order, and all that is derived from them."""

from __future__ import annotations

from typing import Any, Final

from aforesaid.errors import InvalidInput
from aforesaid.store.ephemeral.state import Numbers, State, as_microseconds
from aforesaid.store.journalled.codec import decode
from aforesaid.store.journalled.lines import DamagedRecord, Record, read_line, sealed
from aforesaid.store.journalled.tables import BY_NAME, TABLES

NUMBERED: Final = {"messages": "log", "summaries": "summaries", "memories": "memories"}
"""Tables whose records have numbers that people see, by their name in files, and their name in a state."""


class UnknownRecord(ValueError):
    """A record is whole, but says nothing that can be read."""


def put(state: State, name: str, record: Record) -> None:
    """Put a record into its table."""
    table = BY_NAME.get(name)
    if table is None:
        raise UnknownRecord(f"there is no table {name!r}")
    try:
        key, value = table.unpack(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnknownRecord(f"a record of {name} cannot be read: {error!r}") from error
    getattr(state, table.state)[key] = value


def check_readable(record: Record) -> None:
    """Raise InvalidInput if a line of the journal could not be read back. It is read here, before it is written."""
    try:
        replay(State(), read_line(sealed(record)))
    except (DamagedRecord, UnknownRecord, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"this cannot be stored, because it could not be read back: {str(error)[:150]}") from error


def still(state: State) -> State:
    """Return the tables as they are now, for somebody who writes them down while others go on.

    The last number of each table is among them, so that a repair can name the last record too where that is lost.
    """
    copied = State()
    for table in TABLES:
        setattr(copied, table.state, dict(getattr(state, table.state)))
    for name in NUMBERED.values():
        if last := state.last_number(name):
            copied.given[name] = last
    return copied


def replay(state: State, record: Record) -> None:
    """Make the changes of a line of the journal. Making them twice is as good as once."""
    for name, packed in record["put"].items():
        for each in packed:
            put(state, name, each)
    for name, keys in record.get("gone", {}).items():
        table = BY_NAME[name]
        for key in keys:
            getattr(state, table.state).pop(decode(table.key, key), None)


def finish(state: State) -> State:
    """Bring the tables into their order, and derive from them what is not written down."""
    for table in TABLES:
        if table.numbered:
            rows: dict[int, Any] = getattr(state, table.state)
            setattr(state, table.state, dict(sorted(rows.items())))
    state.facts = dict(sorted(state.facts.items()))
    state.numbers = Numbers()
    for seq, entry in state.log.items():
        message = entry.message
        here = message.space, message.thread
        state.numbers.add(message)
        if entry.given_id is not None:
            state.by_given_id[here, entry.given_id] = seq
        said_then = here, as_microseconds(message.at)
        state.by_time[said_then] = (*state.by_time.get(said_then, ()), seq)
    for embedder, seq in state.vectors:
        if seq in state.log:
            state.embedded.setdefault((embedder, state.log[seq].message.text), seq)
    derive_threads(state)
    return state


def derive_threads(state: State) -> None:
    """Work out which sessions each thread has."""
    state.threads.clear()
    state.session_names.clear()
    for summary in state.summaries.values():
        state.threads.setdefault((summary.space, summary.thread), ())
    by_start = sorted(state.sessions.values(), key=lambda kept: (kept.stretch.started, kept.key))
    found: dict[tuple[str, str], list[int]] = {}
    for kept in by_start:
        here = kept.session.space, kept.session.thread
        state.session_names[here, kept.session.id] = kept.key
        found.setdefault(here, []).extend([kept.key] if kept.automatic else [])
    state.threads.update({here: tuple(keys) for here, keys in found.items()})
