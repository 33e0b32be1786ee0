"""Recognising the conversation that a request goes on with.

A conversation is found by the hash chain of its questions (`hash_chain`), or by the texts of its turns if its beginning
is missing. Different chats can begin with the same messages: examples, or instructions that a program writes. So a
question is taken for an edited version of a stored one only if the app sends the id of the chat, or if an answer that
this server passed on stands before it in the request. Otherwise it begins a new chat.

A client whose provider stores the history sends the id of the reply that it goes on from. The reply is stored with that
id as metadata, so the place in the chain is found again too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cachetools import LRUCache

from aforesaid.domain.message import Message
from aforesaid.domain.message_filter import MessageFilter
from aforesaid.domain.scope import Scope, chat_thread
from aforesaid.errors import NotFound
from aforesaid.memory import Memory
from aforesaid.server.proxy.caller import Caller
from aforesaid.server.proxy.hash_chain import Link, chain, hashed, node_of, root_of
from aforesaid.server.proxy.turns import Turn, align
from aforesaid.store import questions

_PART: Final = "part:"
"""Begins the ids of turns that a client sends in the place of its older messages, such as a summary of them."""
_COMPARED: Final = 12
_MOST_COMPARED: Final = 400
"""Messages of a thread that are compared with a request: twice as many as it has turns and 12 more, at most 400."""
_HISTORY: Final = 40
"""Turns that a request is taken to have when the provider has its history: as many messages are not repeated to it."""
_REPLIES: Final = 100_000
"""Replies of which the place in a conversation is held in memory. Others are looked up in the store."""
REPLY_ID: Final = "response"
"""The metadata key of a stored reply that has the id by which the provider and the client know it."""
FROM_CLIENT: Final = "from_client"
"""The metadata key of a stored answer that a client sent and this server did not pass on. It may be an example."""
_SENT_AGAIN: Final = timedelta(minutes=30)
"""A single message that is sent again within this time is taken for a new try at its answer, as the profiles' sessions
end after this silence; later it begins a new chat."""


class NewTurn(NamedTuple):
    """A turn to be stored."""

    turn: Turn
    id: str
    replaces: str | None = None
    """The id of the earlier version of this turn."""


class Place(NamedTuple):
    """A place in a conversation, after the question with this hash."""

    thread: str
    node: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where a request belongs, and what of it is new."""

    thread: str
    """The thread to store in."""
    node: str
    """The hash of all questions: the answer is stored under it."""
    new: tuple[NewTurn, ...] = ()
    known: frozenset[int] = frozenset()
    """Sequence numbers of the stored messages that the client has."""
    here: frozenset[int] = field(default=frozenset(), repr=False)
    """Sequence numbers of the newest messages of the conversation's thread."""
    answered_by: str | None = None
    """The id of the answer that the next one replaces."""


class Conversations:
    """Recognises conversations in one store."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._replies: LRUCache[tuple[str, str, str], Place] = LRUCache(_REPLIES)

    async def find(
        self, caller: Caller, turns: Sequence[Turn], *, asks: bool, previous: str | None = None
    ) -> Conversation:
        """Return the conversation that a request goes on with, or a new one.

        `asks` says whether the last message of the request is a question; otherwise it is the result of a tool.
        `previous` is the id of the reply that the request goes on from, if the provider has the history.
        """
        scope = caller.person(caller.thread).scope
        if previous is not None and (begin := await self._place_of(scope, previous, caller.thread)) is not None:
            return await self._after_reply(scope, begin, turns, asks=asks)
        if caller.thread is not None and _has_news_alone(caller, turns):
            return await self._next_message(scope, turns)
        links = chain(root_of(scope.user), turns)
        place, found = await self._deepest(scope, links, caller.thread)
        last: Message | None = None
        if found is not None:
            tail = await self._tail(scope, found.thread, len(turns))
            place = _last_stored(links, place, tail)
            edits = caller.sends_history or _has_answer(links, found, tail)
            if caller.thread is None and not edits:
                last = await self._newest(scope)
            goes_on = _is_retry(found, last, tail) if len(turns) == 1 else _newest_node(tail) == links[place].node
            if edits or caller.thread is not None or goes_on:
                continued = _continued(links, place, tail, found.thread, asks=asks, edits=edits)
                return _chosen_again(continued, found, tail)
        if len(turns) > 1 and (aligned := await self._aligned(scope, turns, caller, asks=asks)) is not None:
            return aligned
        if caller.thread is not None:
            tail = await self._tail(scope, scope.thread, len(turns))
            begun = _continued(links, -1, tail, scope.thread, asks=asks)
            return begun if caller.sends_history else replace(begun, new=_as_said(links), answered_by=None)
        first = links[0].node if links else root_of(scope.user)
        # A chat that begins as an earlier one did gets another thread; two servers that store it choose the same one.
        thread = chat_thread(scope.user, first if last is None else f"{first}-{last.seq}")
        return _continued(links, -1, (), thread, asks=asks)

    def note_reply(self, scope: Scope, reply: str, there: Conversation) -> None:
        """Remember to which place of a conversation a reply belongs, by the id that the provider gave it.

        A reply that only calls tools is not stored, so this is the only record of it.
        """
        self._replies[scope.space, scope.user, reply] = Place(there.thread, there.node)

    async def _place_of(self, scope: Scope, reply: str, thread: str | None) -> Place | None:
        """Return the place of a reply; None if the request names another thread than that of the reply."""
        place = self._replies.get((scope.space, scope.user, reply))
        if place is None:
            with_id = MessageFilter(role="assistant", metadata=((REPLY_ID, reply),))
            found = await self._memory.store.read(questions.Messages(scope, limit=1, versions=True, where=with_id))
            if found and found[0].id.startswith("reply:"):
                place = Place(found[0].thread, found[0].id.split(":")[1])
        if thread is not None:
            return place if place is not None and place.thread == scope.thread else None
        # A chat that was begun without this server goes on in a thread of its own.
        unknown = hashed(root_of(scope.user), reply)
        return place or Place(chat_thread(scope.user, unknown), unknown)

    async def _after_reply(self, scope: Scope, place: Place, turns: Sequence[Turn], *, asks: bool) -> Conversation:
        """Return the conversation of a request that goes on from a reply.

        Another question after the same reply is a version of the one that was asked there before.
        """
        tail = await self._tail(scope, place.thread, _HISTORY)
        links = chain(place.node, turns)
        if links:
            return _continued(links, _last_stored(links, -1, tail), tail, place.thread, asks=asks)
        seqs = frozenset(message.seq for message in tail)
        return Conversation(place.thread, place.node, (), seqs, seqs)

    async def _next_message(self, scope: Scope, turns: Sequence[Turn]) -> Conversation:
        """Return the conversation of a client that names a thread and sends only what is new: no turn, one or more.

        A request without turns has results of tools, which belong to the newest question.
        """
        tail = await self._tail(scope, scope.thread, len(turns))
        here = frozenset(message.seq for message in tail)
        asked = [message for message in tail if message.role == "user"][-max(1, len(turns)) :]
        node = node_of(asked[-1]) if asked else root_of(scope.user)
        said = [(turn.role, turn.words) for turn in turns]
        stored = [("user", Turn("user", message.text).words) for message in asked]
        if said and said == stored and _is_retry(asked[-1], tail[-1], tail):
            answers = [message for message in tail if message.seq > asked[-1].seq]
            known = frozenset(message.seq for message in (*asked, *answers))
            return Conversation(scope.thread, node, (), known, here, answers[-1].id if answers else None)
        links = chain(node, turns)
        return Conversation(scope.thread, links[-1].node if links else node, _as_said(links), frozenset(), here)

    async def _deepest(self, scope: Scope, links: Sequence[Link], thread: str | None) -> tuple[int, Message | None]:
        """Return the place of the last question that is stored with all before it, and a message of its conversation.

        The answer that the client has last says most exactly which conversation it is: two chats can begin with the
        same questions.
        """
        questions = [place for place, link in enumerate(links) if link.turn.role == "user"]
        if not questions:
            return -1, None
        last = questions[-1]
        answer = next((link for link in reversed(links[:last]) if link.turn.role == "assistant"), None)
        found = None if answer is None else await self._stored(scope, answer.id, thread)
        if answer is not None and found is not None and _passed_on(found):
            return next(place for place in reversed(questions) if links[place].node == answer.node), found
        for place in questions[:-3:-1]:
            if (found := await self._stored(scope, links[place].id, thread)) is not None:
                return place, found
        return await self._bisected(scope, links, questions[:-2], thread)

    async def _bisected(
        self, scope: Scope, links: Sequence[Link], questions: Sequence[int], thread: str | None
    ) -> tuple[int, Message | None]:
        """Search for the last stored question. Questions are stored in order, so those before it are stored too."""
        low, high, best = 0, len(questions), None
        while low < high:
            middle = (low + high) // 2
            found = await self._stored(scope, links[questions[middle]].id, thread)
            if found is None:
                high = middle
            else:
                low, best = middle + 1, found
        return (questions[low - 1] if low else -1), best

    async def _stored(self, scope: Scope, name: str, thread: str | None) -> Message | None:
        try:
            found = await self._memory.store.read(questions.MessageById(scope, name))
        except NotFound:
            return None
        return found if thread is None or found.thread == scope.thread else None

    async def _aligned(self, scope: Scope, turns: Sequence[Turn], caller: Caller, *, asks: bool) -> Conversation | None:
        """Recognise a request whose beginning is missing, by the texts of its turns."""
        limit = _compared(len(turns))
        newest = await self._memory.store.read(
            questions.Messages(scope, within="user" if caller.thread is None else "thread", limit=limit)
        )
        threads: dict[str, list[Message]] = {}
        for message in newest:
            if message.user == scope.user and not message.id.startswith(_PART):
                threads.setdefault(message.thread, []).append(message)
        whole = len(newest) < limit
        found = [(align(turns, stored, whole=whole), stored) for stored in threads.values()]
        best, stored = max(found, key=lambda each: (len(each[0].known), each[1][-1].seq), default=(None, []))
        if best is None or not best.known:
            return None
        asked = next((message for message in reversed(best.known) if message.role == "user"), None)
        node = root_of(scope.user) if asked is None else node_of(asked)
        edits = caller.sends_history or any(map(_passed_on, best.known))
        if caller.thread is None and not edits and _newest_node(stored) != node:
            return None
        # What stands before the known turns was never stored, such as a summary that the client made: it is new.
        ahead = [NewTurn(turn, f"{_PART}{hashed(turn.role, turn.words)}") for turn in turns[: best.first]]
        rest = chain(node, turns[best.end :])
        new, answered_by = _versions(rest, stored if edits else ())
        after = [message for message in stored if message.seq > best.known[-1].seq]
        if not rest and asks and turns[-1].role == "user" and after:
            answered_by = after[-1].id
        return Conversation(
            best.known[-1].thread,
            rest[-1].node if rest else node,
            (*ahead, *new),
            frozenset(message.seq for message in (*best.known, *(() if rest else after))),
            frozenset(message.seq for message in stored),
            answered_by,
        )

    async def _tail(self, scope: Scope, thread: str, turns: int) -> list[Message]:
        there = scope._replace(thread=thread)
        found = await self._memory.store.read(questions.Messages(there, within="thread", limit=_compared(turns)))
        return [message for message in found if message.user == scope.user]

    async def _newest(self, scope: Scope) -> Message | None:
        found = await self._memory.store.read(questions.Messages(scope, limit=1))
        return found[0] if found else None


def _has_news_alone(caller: Caller, turns: Sequence[Turn]) -> bool:
    """Return whether a request has only what is new in its thread, and not the history before it."""
    if not turns:
        return True
    alone = len(turns) == 1 or (caller.provider_has_history and all(turn.role == "user" for turn in turns))
    return alone and not caller.sends_history


def _passed_on(message: Message) -> bool:
    """Return whether a stored message is an answer that this server passed on."""
    return message.role == "assistant" and not message.metadata.get(FROM_CLIENT)


def _has_answer(links: Sequence[Link], found: Message, tail: Sequence[Message]) -> bool:
    """Return whether a request has an answer that this server passed on, possibly cut: then it is the same chat."""
    if _passed_on(found):
        return True
    answers = {link.node: link.turn.words for link in links if link.turn.role == "assistant"}
    for message in filter(_passed_on, tail):
        sent = answers.get(message.id.split(":")[1]) if message.id.startswith("reply:") else None
        words = Turn("assistant", message.text).words
        if sent is not None and (sent in words or words in sent):
            return True
    return False


def _newest_node(tail: Sequence[Message]) -> str | None:
    """Return the place of the newest question in the hash chain."""
    return next((node_of(message) for message in reversed(tail) if message.role == "user"), None)


def _continued(
    links: Sequence[Link], place: int, tail: Sequence[Message], thread: str, *, asks: bool, edits: bool = True
) -> Conversation:
    """Return a conversation that is stored up to the question at `place`, or from its beginning if that is -1.

    `edits` says whether another question at the same place is a version of a stored one.
    """
    if edits and place >= 0 and _edited_back(links, place, tail):
        place -= 1
        while place >= 0 and links[place].turn.role != "user":
            place -= 1
    rest = list(links[place + 1 :])
    answered_by = None
    if place >= 0:
        node = links[place].node
        answers = _answers(tail, node)
        if answers:
            # The log has the answer as the model gave it. What a client sends of it may be cut or changed.
            rest = [link for link in rest if link.node != node]
        if asks and links[-1] is links[place]:
            answered_by = answers[-1].id if answers else None
    new, replaced = _versions(rest, tail if edits else ())
    seqs = frozenset(message.seq for message in tail)
    node = links[-1].node if links else ""
    return Conversation(thread, node, tuple(new), seqs, seqs, answered_by or replaced)


def _chosen_again(there: Conversation, found: Message, tail: Sequence[Message]) -> Conversation:
    """Let an older version of an answer count again, if the client goes on with it instead of the newest one."""
    if not found.replaced or found.role != "assistant":
        return there
    turn, (_, node, words, *_) = Turn("assistant", found.text), found.id.split(":")
    answers = _answers(tail, node)
    if not answers or not there.new or answers[-1].id.startswith(f"reply:{node}:{words}"):
        return there
    return replace(there, new=(NewTurn(turn, f"reply:{node}:{words}", answers[-1].id), *there.new))


def _last_stored(links: Sequence[Link], place: int, tail: Sequence[Message]) -> int:
    """Return the place of the last question from `place` on that is among the stored messages."""
    nodes = {node_of(message) for message in tail if message.role == "user"}
    later = (each for each in range(place + 1, len(links)) if links[each].turn.role == "user")
    return max((each for each in later if links[each].node in nodes), default=place)


def _edited_back(links: Sequence[Link], place: int, tail: Sequence[Message]) -> bool:
    """Return whether the last question is an older version of the one that counts."""
    asked = links[place]
    others = [message for message in tail if message.id.startswith(f"turn:{asked.parent}:")]
    return asked is links[-1] and bool(others) and all(node_of(message) != asked.node for message in others)


def _as_said(links: Sequence[Link]) -> tuple[NewTurn, ...]:
    return tuple(NewTurn(link.turn, link.id) for link in links)


def _versions(links: Sequence[Link], tail: Sequence[Message]) -> tuple[list[NewTurn], str | None]:
    """Return what to store of new turns, and the answer that the answer to them replaces.

    If the conversation went on with another question at this place, the first question is an edited version of it.
    """
    first = next((link for link in links if link.turn.role == "user"), None)
    edited: Message | None = None
    if first is not None:
        others = [
            message
            for message in tail
            if message.id.startswith(f"turn:{first.parent}:") and node_of(message) != first.node
        ]
        edited = others[-1] if others else None
    new = [NewTurn(each.turn, each.id, edited.id if edited is not None and each is first else None) for each in links]
    if edited is None or first is not links[-1]:
        return new, None
    answers = _answers(tail, node_of(edited))
    return new, answers[-1].id if answers else None


def _answers(tail: Sequence[Message], node: str) -> list[Message]:
    return [message for message in tail if message.id.startswith(f"reply:{node}:")]


def _is_retry(question: Message, last: Message | None, tail: Sequence[Message]) -> bool:
    """Return whether a question that is sent again, alone, asks for another answer instead of being said once more.

    It does if nothing was said since but the answer, and that not long ago. `last` is the newest message of all.
    """
    after = [message for message in tail if message.seq > question.seq]
    if last is None or last.thread != question.thread or any(message.role == "user" for message in after):
        return False
    return not after or datetime.now(UTC) - last.stored_at < _SENT_AGAIN


def _compared(turns: int) -> int:
    return min(_COMPARED + 2 * turns, _MOST_COMPARED)
