"""The files of one account, and what is in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import in_time_order
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.summary import Summary
from aforesaid.store.ephemeral.state import Entry, Name, State
from aforesaid.store.journalled.document import Section
from aforesaid.store.journalled.layout import Record
from aforesaid.store.journalled.tables import BY_NAME, pack_message, shown_id

SHORT_TERM: Final = 50
MID_TERM: Final = 200
"""Sizes of the two windows in messages; the first has the newest."""

_PLAIN_NAME: Final = re.compile(r"[a-z0-9_-]{1,100}")
_LONGEST_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class File:
    """A file of an account, and the tables whose records are in it."""

    name: str
    tables: tuple[str, ...]
    window: bool = False
    """Whether it only shows what is in the whole history."""
    derived: bool = False
    """Whether all that is in it can be made again from the messages."""
    log: bool = False
    """Whether it holds the messages, which nothing makes again. The windows repeat the newest of them."""


FILES: Final = (
    File("account.json", ("users", "settings", "extracted", "chunks", "spending")),
    File("whole_history.json", ("messages", "sessions"), log=True),
    File("short_term.json", ("messages",), window=True),
    File("mid_term.json", ("messages",), window=True),
    File("history_context.json", ("summaries", "derived"), derived=True),
    File("memories.json", ("memories", "memory_versions", "facts", "forgotten")),
    File("vectors.json", ("vectors", "note_vectors"), derived=True),
    File("audit.json", ("audit",)),
    File("receipts.json", ("receipts",)),
)
COMPONENTS: Final = ("short_term", "mid_term", "whole_history", "history_context")


def folder_name(name: Name) -> str:
    """Return the name of an account's folder: its id where that is a safe name, something like it otherwise."""
    space, user = name
    if space == DEFAULT_SPACE and _PLAIN_NAME.fullmatch(user):
        return f"account_{user}"
    readable = re.sub(r"[^\w-]", "_", user if space == DEFAULT_SPACE else f"{user}@{space}")[:_LONGEST_NAME]
    # Two ids may look alike to a file system that does not tell capitals apart.
    digest = blake2b(f"{space}\0{user}".encode(), digest_size=6).hexdigest()
    return f"account_{readable}~{digest}"


class Account:
    """What is written about one account."""

    def __init__(self, state: State, name: Name, rows: dict[str, list[Any]]) -> None:
        """`rows` has the keys of the account's records, by table."""
        self._state = state
        self._name = name
        self._rows = rows
        by_time = in_time_order(state.log[seq].message for seq in rows.get("messages", []))
        self._seqs = [message.seq for message in by_time]

    def about(self, file: File) -> Record:
        """Return what is said at the head of a file, for people."""
        match file.name.removesuffix(".json"):
            case "account":
                return self._record()
            case "history_context":
                return self._status("history_context") | {"context": self._context()}
            case component if component in COMPONENTS:
                return self._status(component)
            case _:
                return {"account_id": shown_id(self._name[1])}

    def sections(self, file: File) -> Iterator[Section]:
        """Return the records of a file."""
        if file.window:
            window = self._seqs[-SHORT_TERM:] if file.name == "short_term.json" else self._mid_term()
            yield "messages", "listed", (("", pack_message(seq, self._state.log[seq])) for seq in window)
            return
        for name in file.tables:
            table = BY_NAME[name]
            rows: dict[Any, Any] = getattr(self._state, table.state)
            keys = self._rows.get(name, [])
            yield name, "listed", [("", table.pack(key, rows[key])) for key in keys]

    def _mid_term(self) -> list[int]:
        return self._seqs[-SHORT_TERM - MID_TERM : -SHORT_TERM]

    def _record(self) -> Record:
        parts = {component: self._status(component) for component in COMPONENTS}
        space, user = self._name
        return {
            "account_id": shown_id(user),
            "space": space,
            "created_at": self._state.owners[self._name].isoformat(),
            "memory_status": {
                component: "active" if part["message_count"] else "initialized" for component, part in parts.items()
            },
            "components": parts,
        }

    def _status(self, component: str) -> Record:
        entries = [self._state.log[seq] for seq in self._covered(component)]
        return {
            "account_id": shown_id(self._name[1]),
            "status": "active" if entries else "initializing",
            "last_update": self._last_update(component, entries).isoformat(),
            "message_count": len(entries),
            "health_check": moment(now()).isoformat(),
        }

    def _covered(self, component: str) -> list[int]:
        if component == "short_term":
            return self._seqs[-SHORT_TERM:]
        if component == "mid_term":
            return self._mid_term()
        if component == "whole_history":
            return self._seqs
        newest = self._history()
        return [] if newest is None else [seq for seq in self._seqs if newest.first <= seq <= newest.last]

    def _last_update(self, component: str, entries: list[Entry]) -> datetime:
        newest = self._history() if component == "history_context" else None
        if newest is not None:
            return newest.created_at
        return max([entry.message.stored_at for entry in entries[-1:]], default=self._state.owners[self._name])

    def _history(self) -> Summary | None:
        summaries = [self._state.summaries[number] for number in self._rows.get("summaries", [])]
        active = [summary for summary in summaries if summary.active and summary.kind == "history"]
        return active[-1] if active else None

    def _context(self) -> Record:
        """Return the newest analysis; before there is one, a baseline that says so."""
        newest = self._history()
        if newest is None:
            return {"baseline": True, "text": "", "initialized_at": self._state.owners[self._name].isoformat()}
        return {"baseline": False, "text": newest.text, "generated_at": newest.created_at.isoformat()}
