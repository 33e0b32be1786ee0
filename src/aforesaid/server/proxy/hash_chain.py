"""The ids that the proxy stores turns under: a hash chain.

The id of each stored turn has the hash of all turns of its chat up to it, questions and answers. So a place in a chat
is found by the turns before it, in any server process and after a restart, and the store itself refuses to store a turn
twice. System prompts are no part of the chain.

An id is `turn:PARENT:NODE` for a question and `reply:PARENT:NODE` for an answer, where NODE is the hash of the turns up
to this one and PARENT that of the turns before it. Turns with one parent are versions of one turn, so the turns of a
thread are a tree. A further row of the same turn, such as one that counts again, has something appended to its id.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

from aforesaid.domain.caches import TwoGenerationCache
from aforesaid.domain.message import Message
from aforesaid.server.proxy.turns import Turn

_HASH_BYTES: Final = 10
_KINDS: Final = {"user": "turn", "assistant": "reply"}
_NODES: Final[TwoGenerationCache[bytes, str]] = TwoGenerationCache(50_000)
"""The places of turns by the hash of the place before and of the text as it was sent. Clients send all turns with each
request, and removing differences in white space takes several times as long as hashing them. No text is held."""


class Link(NamedTuple):
    """A turn in the hash chain of its chat."""

    turn: Turn
    parent: str
    node: str

    @property
    def id(self) -> str:
        """The message id that the turn is stored under."""
        return f"{_KINDS[self.turn.role]}:{self.parent}:{self.node}"


def root_of(user: str, thread: str | None = None) -> str:
    """Return the begin of the hash chains of a user, or of those in a thread that the app names.

    So two people's chains in one thread share no id, nor do chats with ids and those that have to be recognised.
    """
    return hashed("" if thread is None else thread, user)


def chain(parent: str, turns: Iterable[Turn]) -> list[Link]:
    """Return turns with their places in the hash chain, after the turn with the hash `parent`."""
    links = []
    for turn in turns:
        key = blake2b(f"{parent}\0{turn.text}".encode(), digest_size=16).digest()
        node = _NODES.get(key)
        if node is None:
            _NODES.put(key, node := hashed(parent, turn.words))
        links.append(Link(turn, parent, node))
        parent = node
    return links


def is_link(message: Message) -> bool:
    """Return whether a stored message was stored by the proxy, as a turn of a chat."""
    return message.id.startswith(("turn:", "reply:"))


def parent_of(link: Message) -> str:
    """Return the place in the hash chain that a stored turn follows."""
    return link.id.split(":")[1]


def node_of(message: Message) -> str:
    """Return the place of a stored turn in its hash chain; one of its own if it was not stored by the proxy."""
    return message.id.split(":")[2] if is_link(message) else hashed(root_of(message.user), message.id)


def base_id(link: Message) -> str:
    """Return the id of the first row of a stored turn."""
    return ":".join(link.id.split(":")[:3])


def hashed(before: str, words: str) -> str:
    """Return the hash of a text and of what comes before it."""
    return blake2b(f"{before}\0{words}".encode(), digest_size=_HASH_BYTES).hexdigest()
