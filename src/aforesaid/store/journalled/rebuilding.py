"""Going on without a damaged file of an account: its content is made again from the messages, as far as it can be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from aforesaid.domain.checks import now
from aforesaid.domain.memory import NoteKey
from aforesaid.domain.message import Message
from aforesaid.domain.scope import SESSION_SILENCE, Session, opening_message
from aforesaid.store.ephemeral.state import KeptSession, Name, State
from aforesaid.store.journalled.layout import DamagedFile
from aforesaid.store.journalled.loading import derive_threads

_TAKES_NOTHING_AWAY: Final = frozenset(
    {"memory.add", "memory.supersede", "memory.expire", "memory.read", "memory.search"}
)


def rebuild(state: State, owner: Name, file: DamagedFile, damaged: Collection[Path]) -> None:
    """Bring the account of a damaged file into a consistent state, from which upkeep makes again what is missing.

    Messages that are lost stay lost; only what refers to them is mended.

    The intact records of the file are in `state`. `damaged` has the paths of all damaged files.
    """
    if "messages" in file.tables:
        _go_on_without_lost_messages(state)
    if "summaries" in file.tables:
        _drop_summaries(state, owner)
    if "vectors" in file.tables:
        _drop_vectors(state, owner)
    if "memories" in file.tables:
        audited = file.path.with_name("audit.json") not in damaged
        _relearn(state, owner, audited=audited)
    if "extracted" in file.tables:
        _restore_marks(state, owner)


def _go_on_without_lost_messages(state: State) -> None:
    """Drop references to messages that are gone, and bring the sessions to what is left.

    Summaries stay as they are: they may be all that is left of a lost message.
    """
    for key in [key for key in state.vectors if key[1] not in state.log]:
        del state.vectors[key]
    for number, memory in list(state.memories.items()):
        if any(seq not in state.log for seq in memory.sources):
            left = tuple(seq for seq in memory.sources if seq in state.log)
            state.memories[number] = replace(memory, sources=left)
    said: dict[tuple[Name, str], list[Message]] = {}
    for seq, entry in list(state.log.items()):
        message = entry.message
        said.setdefault(((message.space, message.thread), message.session), []).append(message)
        if message.replaces is not None and message.replaces not in state.log:
            state.log[seq] = replace(entry, message=replace(message, replaces=None))
    for place in [place for place in state.session_names if place not in said]:
        del state.sessions[state.session_names[place]]
    sessions = [kept.session for kept in state.sessions.values()]
    timeouts = {(session.space, session.thread): session.timeout for session in sessions}
    for (thread, name), messages in said.items():
        times = [message.at for message in messages]
        known = state.session_names.get((thread, name))
        if known is None:
            # A session belongs to whoever opened it, so messages of others can be in one that is gone.
            timeout = timeouts.get(thread, timedelta(microseconds=SESSION_SILENCE))
            made = Session(name, *thread, messages[0].user, min(times), max(times), len(times), timeout)
            number = state.number("sessions")
            state.sessions[number] = KeptSession(number, made, automatic=opening_message(name) is not None)
        elif state.sessions[known].session.messages != len(times):
            kept = state.sessions[known]
            session = replace(kept.session, started_at=min(times), last_activity=max(times), messages=len(times))
            state.sessions[known] = replace(kept, session=session)
    derive_threads(state)


def _relearn(state: State, owner: Name, *, audited: bool) -> None:
    """Drop what belongs to memories that are gone, and have the messages of the account looked through again.

    A request to forget may have been lost. So messages from before the last one that the audit log knows of, and from
    before any other time when somebody took a memory away, are not looked through again; without the log, none are.
    """
    for memory in [number for number in state.versions if number not in state.memories]:
        if _owner_of_version(state, memory) == owner:
            del state.versions[memory]
    for key in [key for key in state.note_vectors if key[1].kind == "memory" and key[1].id not in state.memories]:
        del state.note_vectors[key]
    for number, memory_record in list(state.memories.items()):
        if memory_record.superseded_by is not None and memory_record.superseded_by not in state.memories:
            state.memories[number] = replace(memory_record, superseded_by=None)
    if audited:
        last = max(
            (each.at for each in state.audit.values() if _took_away(each.action, (each.space, each.user), owner)),
            default=None,
        )
        known = [
            seq for seq in state.numbers.owned(owner) if last is not None and state.log[seq].message.stored_at <= last
        ]
        state.extracted[owner] = min(state.extracted.get(owner, 0), max(known, default=0))


def _owner_of_version(state: State, memory: int) -> Name:
    before = state.versions[memory][0].before
    return before.space, before.user


def _took_away(action: str, whose: Name, owner: Name) -> bool:
    return whose == owner and (
        action == "forget" or (action.startswith("memory.") and action not in _TAKES_NOTHING_AWAY)
    )


def _restore_marks(state: State, owner: Name) -> None:
    """Work out again up to where memories were extracted, and which archive was the last, where that was lost."""
    sources = [seq for each in state.memories.values() if (each.space, each.user) == owner for seq in each.sources]
    if owner not in state.extracted and sources:
        state.extracted[owner] = max(sources)
    chunks = [state.log[seq].message.chunk or 0 for seq in state.numbers.owned(owner)]
    last = max([state.chunks.get(owner, 0), *chunks])
    if last:
        state.chunks[owner] = last


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
