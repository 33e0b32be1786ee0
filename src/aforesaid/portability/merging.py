"""Merges two users of a space into one: the rows of one become the other's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.details import with_reply_to
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, sequence_number
from aforesaid.domain.scope import Scope, chat_name, chat_thread, direct_thread, is_chat
from aforesaid.domain.transfer import ForgottenRow, MemoryRow, Row, SettingRow, UserRow
from aforesaid.errors import AforesaidError, SourcesChanged, StoreDamaged
from aforesaid.store import Store
from aforesaid.store.dumping import NAMES, RowImporter
from aforesaid.store.memories import MarkExtracted, NewestFacts, PutFacts
from aforesaid.store.messages import UserLedger
from aforesaid.store.people import AuditAccess, Settings


@dataclass(frozen=True, slots=True)
class Merged:
    """What two users that became one have together."""

    messages: int
    """Number of messages that moved, in all versions."""
    memories: int
    settings: int
    """Number of settings that the remaining user did not have."""


async def merge(store: Store, gone: Scope, kept: Scope, actor: str) -> Merged:
    """Make all that is stored of one user another's, and erase the first.

    Everything is stored anew before anything is erased, and can be repeated after a crash. Summaries are made again
    from the messages of both.
    """
    settings = {setting.key for setting in await store.read(Settings(kept))}
    facts = await store.read(NewestFacts(gone))
    taken: set[tuple[str, str]] = set()
    rows: list[Row] = []
    extracted = last = 0
    async for page in store.dump():
        for row in page:
            match row:
                case Message() if row.space == gone.space and gone.user in {row.user, row.author}:
                    last = row.seq if row.user == gone.user else last
                    rows.append(row)
                case Message() if row.space == gone.space:
                    taken.add((row.thread, row.id))
                case UserRow() if (row.space, row.user) == gone[:2]:
                    extracted = row.extracted
                case _:
                    rows += _moved(row, gone, kept, settings)
    ids = _new_ids([row for row in rows if isinstance(row, Message)], gone.user, kept.user, taken)
    refused: list[str] = []

    def refuse(row: Row, _: str, error: AforesaidError) -> None:
        refused.append(f"{NAMES[type(row)]}: {error}")

    before = (await store.read(UserLedger(kept))).last_seq
    intake = RowImporter(store, refuse)
    await intake.take(_message(row, gone, kept, ids) if isinstance(row, Message) else row for row in rows)
    await intake.finish()
    if refused:
        raise StoreDamaged(f"{len(refused)} rows could not be moved, nothing was erased; the first: {refused[0]}")
    own = await store.read(NewestFacts(kept))
    known_facts = "" if own is None else own.text
    if facts is not None and facts.text and facts.text not in known_facts:
        text = f"{known_facts}\n{facts.text}".strip()
        await store.apply([PutFacts(kept, text, facts.cause, actor)])
    now = (await store.read(UserLedger(kept))).last_seq
    if last and extracted >= last and now > before:
        # The moved memories tell already what they say. If the user's own messages wait to be read, all are read.
        with suppress(SourcesChanged):
            await store.apply([MarkExtracted(kept, before, now)])
    await store.purge(gone, actor)
    moved = f"{intake.fresh['message']:,} messages, {intake.fresh['memory']:,} memories of {gone.user}"
    await store.apply([AuditAccess(kept, actor, "merge", moved)])
    return Merged(intake.fresh["message"], intake.fresh["memory"], intake.fresh["setting"])


def _new_ids(moved: Sequence[Message], gone: str, kept: str, taken: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return new ids, by thread and id, for messages whose id another message has in the thread that they move to."""
    mark = blake2b(gone.encode(), digest_size=4).hexdigest()
    found = {}
    for row in moved:
        if sequence_number(row.id) is None:
            thread = _thread(row.thread, gone, kept)
            # What stays in its thread is there twice until the first is erased.
            if thread == row.thread or (thread, row.id) in taken:
                found[row.thread, row.id] = f"{row.id[:_LONGEST_ID]}~{mark}"
    return found


_LONGEST_ID: Final = 240
"""Characters of an id that are kept when it gets a mark."""


def _message(row: Message, gone: Scope, kept: Scope, ids: Mapping[tuple[str, str], str]) -> Message:
    details = row.details
    if row.reply_to and (answered := ids.get((row.thread, row.reply_to))):
        details = with_reply_to(details or "{}", answered)
    return replace(
        row,
        id=ids.get((row.thread, row.id), row.id),
        user=kept.user if row.user == gone.user else row.user,
        author=kept.user if row.author == gone.user else row.author,
        thread=_thread(row.thread, gone.user, kept.user),
        details=details,
    )


def _moved(row: Row, gone: Scope, kept: Scope, settings: set[str]) -> Iterator[Row]:
    """Yield a row beside the messages as the remaining user's, if it is the other's and moves."""
    mine = gone.space, gone.user
    match row:
        case MemoryRow() if (row.memory.space, row.memory.user) == mine:
            versions = tuple(replace(each, before=_memory(each.before, gone, kept)) for each in row.versions)
            yield MemoryRow(_memory(row.memory, gone, kept), versions)
        case SettingRow() if (row.space, row.user) == mine and row.setting.key not in settings:
            yield row._replace(user=kept.user)
        case ForgottenRow() if (row.space, row.user) == mine:
            yield row._replace(user=kept.user)
        case ContextReceipt() if (row.space, row.user) == mine:
            # Its first half says when it was made.
            half = len(row.id) // 2
            again = row.id[:half] + blake2b(f"{row.id} {kept.user}".encode(), digest_size=16).hexdigest()[:half]
            yield replace(row, id=again, user=kept.user)
        case _:
            return


def _thread(thread: str, gone: str, kept: str) -> str:
    if thread == direct_thread(gone):
        return direct_thread(kept)
    is_own = is_chat(thread) and thread == chat_thread(gone, chat_name(thread))
    return chat_thread(kept, chat_name(thread)) if is_own else thread


def _memory(memory: MemoryRecord, gone: Scope, kept: Scope) -> MemoryRecord:
    about = None if memory.about in {gone.user, kept.user} else memory.about
    speaker = kept.user if memory.speaker == gone.user else memory.speaker
    return replace(memory, user=kept.user, speaker=speaker, about=about)
