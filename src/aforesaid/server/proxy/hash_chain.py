"""The ids that the proxy stores turns under: a hash chain.

The id of each stored turn is a hash of all questions of its conversation up to it: a hash chain. So a conversation is
found by its own prefix, in any server process and after a restart, and the store itself refuses to store a turn twice.
Answers are no part of the chain: clients shorten them, strip reasoning from them and have them written again. System
prompts are no part of it either.

An id is `turn:PARENT:NODE` for a question and `reply:NODE:HASH` for an answer, where NODE is the hash of the questions
up to this one and PARENT that of the questions before it. Two questions with one parent are versions of one turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from aforesaid.domain.message import Message
from aforesaid.server.proxy.turns import Turn

_HASH_BYTES: Final = 10


class Link(NamedTuple):
    """A turn in the hash chain of its conversation."""

    turn: Turn
    parent: str
    node: str

    @property
    def id(self) -> str:
        """The message id that the turn is stored under."""
        return f"turn:{self.parent}:{self.node}" if self.turn.role == "user" else reply_id(self.node, self.turn)


def root_of(user: str) -> str:
    """Return the begin of all hash chains of a user: two people's chains in one thread share no id."""
    return hashed("", user)


def chain(root: str, turns: Sequence[Turn]) -> list[Link]:
    """Return the turns with their places in the hash chain."""
    links, parent, node = [], root, root
    for turn in turns:
        if turn.role == "user":
            parent, node = node, hashed(node, turn.words)
        links.append(Link(turn, parent, node))
    return links


def reply_id(node: str, turn: Turn) -> str:
    """Return the message id of an answer."""
    return f"reply:{node}:{hashed(node, turn.words)}"


def version_id(name: str, replaces: str) -> str:
    """Return another message id for a turn whose own id an older version of it has."""
    return f"{name}:{hashed(name, replaces)}"


def node_of(question: Message) -> str:
    """Return the place of a stored question in its hash chain; one of its own if it was not stored by the proxy."""
    if question.id.startswith("turn:"):
        return question.id.split(":")[2]
    return hashed(root_of(question.user), question.id)


def hashed(before: str, words: str) -> str:
    """Return the hash of a text and of what comes before it."""
    return blake2b(f"{before}\0{words}".encode(), digest_size=_HASH_BYTES).hexdigest()
