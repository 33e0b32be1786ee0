"""Going on without a damaged file whose content can be made again from the messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aforesaid.domain.clock import now
from aforesaid.domain.note import NoteKey
from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import State


def drop_derived(state: State, owner: Name, tables: Sequence[str]) -> None:
    """Drop what a damaged file of an account held, so that upkeep makes it again."""
    if "summaries" in tables:
        _drop_summaries(state, owner)
    if "vectors" in tables:
        _drop_vectors(state, owner)


def _drop_vectors(state: State, owner: Name) -> None:
    """Drop the vectors of an account, and have embedders begin again. Texts with a vector are not embedded twice."""
    mine = set(state.numbers.owned(owner))
    for key in [key for key in state.vectors if key[1] in mine]:
        del state.vectors[key]
    known = {
        *(NoteKey("summary", each.id) for each in state.summaries.values() if (each.space, each.user) == owner),
        *(NoteKey("memory", each.id) for each in state.memories.values() if (each.space, each.user) == owner),
    }
    for note in [key for key in state.note_vectors if key[1] in known]:
        del state.note_vectors[note]
    state.embedded.clear()
    for embedder, seq in state.vectors:
        state.embedded.setdefault((embedder, state.log[seq].message.text), seq)
    state.seen.clear()


def _drop_summaries(state: State, owner: Name) -> None:
    """Drop the summaries of an account, and what was derived for it, so that upkeep makes them again.

    Messages that these had archived are active again.
    """
    numbers = [number for number, each in state.summaries.items() if (each.space, each.user) == owner]
    state.given["summaries"] = state.last_number("summaries")
    for number in numbers:
        del state.summaries[number]
    for key in [key for key in state.note_vectors if key[1].kind == "summary" and key[1].id not in state.summaries]:
        del state.note_vectors[key]
    for derived in [key for key in state.derived if key[0] == owner]:
        del state.derived[derived]
    for seq in state.numbers.owned(owner):
        entry = state.log[seq]
        if not entry.message.active:
            state.log[seq] = replace(entry, message=replace(entry.message, active=True, chunk=None))
    for subject, planned in list(state.agenda.items()):
        if (subject.space, subject.user) == owner:
            state.agenda[subject] = replace(planned, due_at=now(), done_at=None, done_seq=0, failures=0, error=None)
