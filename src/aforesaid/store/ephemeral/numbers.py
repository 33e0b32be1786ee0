"""Which messages are a user's, and which were said in a thread: found without looking at the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from aforesaid.domain.message import Message

Name: TypeAlias = tuple[str, str]
"""A space and a name in it, of a person or of a thread."""


class Numbers:
    """The sequence numbers of messages, in order. On top of others, it holds only what is new."""

    __slots__ = ("_below", "_gone", "_owned", "_said")

    def __init__(self, below: Numbers | None = None) -> None:
        """Start with what is below."""
        self._below = below
        self._owned: dict[Name, list[int]] = {}
        self._said: dict[Name, list[int]] = {}
        self._gone: set[int] = set()

    def add(self, message: Message) -> None:
        """Add the newest message."""
        self._owned.setdefault((message.space, message.user), []).append(message.seq)
        self._said.setdefault((message.space, message.thread), []).append(message.seq)

    def remove(self, seqs: Collection[int]) -> None:
        """Take messages out for good."""
        self._gone.update(seqs)
        if self._below is None:
            self._sort_out()

    def owned(self, person: Name) -> Sequence[int]:
        """Return a user's messages, oldest first. Not to be changed."""
        below = () if self._below is None else self._below.owned(person)
        return self._joined(below, self._owned.get(person, []))

    def said(self, thread: Name) -> Sequence[int]:
        """Return the messages of a thread, oldest first. Not to be changed."""
        below = () if self._below is None else self._below.said(thread)
        return self._joined(below, self._said.get(thread, []))

    def take_over(self, newer: Numbers) -> None:
        """Add what another, on top of this one, has."""
        for mine, theirs in ((self._owned, newer._owned), (self._said, newer._said)):
            for name, seqs in theirs.items():
                mine.setdefault(name, []).extend(seqs)
        if newer._gone:
            self.remove(newer._gone)

    def _joined(self, below: Sequence[int], own: list[int]) -> Sequence[int]:
        every = [*below, *own] if below and own else own or below
        return [seq for seq in every if seq not in self._gone] if self._gone else every

    def _sort_out(self) -> None:
        for table in (self._owned, self._said):
            for name in list(table):
                table[name] = [seq for seq in table[name] if seq not in self._gone]
                if not table[name]:
                    del table[name]
        self._gone.clear()
