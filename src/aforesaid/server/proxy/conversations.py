"""Recognising the chat that a request goes on with.

A chat is its questions and its answers. It is found by their hash chain (`hash_chain`), or by the texts of its turns if
its beginning is missing. A thread holds one chat in all its versions: a tree of turns, of which one branch counts. A
request that leaves this branch, because a turn was edited, written anew or returned to, makes its own branch the one
that counts; the other is set aside (`store.erasing.SetAside`).

Different chats can begin alike. An answer that was passed on once belongs to one chat. Where a request has no such
answer before it leaves the branch, it may be an edit or another chat; then nothing that a person said is set aside, and
the request becomes a chat of its own. An app that sends the id of its chat leaves no such doubt.

A client whose provider stores the history sends the id of the reply that it goes on from. The reply is stored with that
id as metadata, so its place in the chain is found again too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from cachetools import LRUCache

from aforesaid.domain.caches import TwoGenerationCache
from aforesaid.domain.checks import Role
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, chat_name, chat_thread
from aforesaid.errors import NotFound
from aforesaid.extras import re
from aforesaid.memory import Memory
from aforesaid.server.proxy.app_prompts import own_words
from aforesaid.server.proxy.caller import Caller
from aforesaid.store.messages import MessageById, Messages, VersionsOf

_SPOKEN: Final = ("user", "assistant")
_NOT_TEXT: Final = {
    "image": "[image]",
    "image_url": "[image]",
    "input_image": "[image]",
    "input_audio": "[audio]",
    "document": "[file]",
    "file": "[file]",
    "input_file": "[file]",
}
_LEAST_RUN: Final = 2
"""Minimum number of consecutive turns that match, where something unknown stands before them. One turn, such as "ok",
matches by chance."""


class Turn(NamedTuple):
    role: Role
    text: str

    @property
    def words(self) -> str:
        """The text without differences in white space: what turns are compared by."""
        return " ".join(self.text.split())


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which turns of a request are in the log."""

    known: tuple[Message, ...]
    first: int
    end: int


NOTHING_KNOWN: Final = Alignment((), 0, 0)


def turns_of(messages: Sequence[object], limit: int) -> list[Turn]:
    """Return what people and the assistant said. System prompts are no turns, nor is the use of tools (`tool_steps`).

    A text of more bytes than `limit` is cut: the model gets all of it, and its beginning is stored.
    """
    turns = []
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") in _SPOKEN:
            text = text_of(message.get("content"))
            if message["role"] == "user":
                text = own_words(text)
            text = storable(text, limit)
            if text.strip():
                turns.append(Turn(message["role"], text))
    return turns


def text_of(content: object) -> str:
    """Return the text of a message. Images, audio and files leave a word such as `[image]`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts: list[str] = []
    for part in content:
        if isinstance(part, Mapping):
            text = part.get("text")
            kind = str(part.get("type"))
            parts.append(text if isinstance(text, str) else _NOT_TEXT.get(kind, ""))
    return "\n".join(part for part in parts if part)


def role_of(message: object) -> object:
    return message.get("role") if isinstance(message, Mapping) else None


def storable(text: str, limit: int) -> str:
    """Return the beginning of a text that a store can hold, of at most `limit` bytes."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore").replace("\0", "")


def align(sent: Sequence[Turn], stored: Sequence[Message], *, whole: bool) -> Alignment:
    """Find the turns of a request that are in the log. `stored` are the newest messages of a thread, oldest first.

    The known turns end as late in the request, and then as late in the log, as possible, and lead back turn by turn to
    the beginning of the request; or to the beginning of `stored`, unless that is the `whole` thread. If there are none,
    two or more turns count that have something unknown before them. All of a request can be known only if the log ends
    there, or with the answer to it: then the request is sent again. Otherwise somebody says the same once more.
    """
    kept = [Turn(message.role, message.text) for message in stored]
    runs = _runs(sent, kept)
    unknown_before: Alignment | None = None
    for end in range(len(sent), 0, -1):
        for place in range(len(kept), 0, -1):
            if end == len(sent) and not _sent_again(kept[place:], end):
                break
            run = runs[end][place]
            if run and (run == end or (run == place and not whole)):
                return Alignment(tuple(stored[place - run : place]), 0, end)
            if run >= _LEAST_RUN and unknown_before is None:
                unknown_before = Alignment(tuple(stored[place - run : place]), end - run, end)
    return unknown_before or NOTHING_KNOWN


def _sent_again(after: Sequence[Turn], end: int) -> bool:
    """Return whether a request of `end` turns may be a repetition, if these messages follow it in the log."""
    return not after or (end >= _LEAST_RUN and all(turn.role == "assistant" for turn in after))


def _runs(sent: Sequence[Turn], kept: Sequence[Turn]) -> list[list[int]]:
    """Return how many turns are the same, counted back from each place in the request and each place in the log.

    Each pair of turns is compared once, so that a request of a thousand turns does not stop the server.
    """
    theirs = [(turn.role, turn.words) for turn in kept]
    runs = [[0] * (len(kept) + 1)]
    for turn in sent:
        role, said = turn.role, turn.words
        before, row = runs[-1], [0]
        for place, (other_role, words) in enumerate(theirs):
            # Either side may have more of an answer that was broken off.
            begun = role == "assistant" and (said.startswith(words) or words.startswith(said))
            same = role == other_role and (said == words or begun)
            row.append(before[place] + 1 if same else 0)
        runs.append(row)
    return runs


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
    return link.id.split(":")[1]


def node_of(message: Message) -> str:
    """Return the place of a stored turn in its hash chain; one of its own if it was not stored by the proxy."""
    return message.id.split(":")[2] if is_link(message) else hashed(root_of(message.user), message.id)


def base_id(link: Message) -> str:
    """Return the id of the first row of a stored turn."""
    return ":".join(link.id.split(":")[:3])


def hashed(before: str, words: str) -> str:
    return blake2b(f"{before}\0{words}".encode(), digest_size=_HASH_BYTES).hexdigest()


_PART: Final = "part:"
"""Begins the ids of turns that a client sends in the place of its older messages, such as a summary of them."""
_COMPARED: Final = 12
_MOST_COMPARED: Final = 400
"""Messages of a thread that are compared with a request: twice as many as it has turns and 12 more, at most 400."""
_HISTORY: Final = 40
"""Turns that a request is taken to have when the provider has its history: as many messages are not repeated to it."""
_WHOLE_CHAT: Final = 10_000
"""Maximum messages of a chat that another chat takes over, when it turns out to be one of its own."""
_ALIKE: Final = 20
"""Maximum chats that begin alike among which the one of a request is looked for, and answers that are looked up."""
_REPLIES: Final = 100_000
"""Replies of which the place in a conversation is held in memory. Others are looked up in the store."""
REPLY_ID: Final = "response"
"""The metadata key of a stored reply that has the id by which the provider and the client know it."""
FROM_CLIENT: Final = "from_client"
"""The metadata key of a stored answer that came with a request: an example, or a further row of an earlier answer."""
_RECOGNISED: Final = re.compile(r"[0-9a-f]{20}(-[0-9]+)?")
"""Names of chats that were recognised: a place in the hash chain, and what tells chats apart that begin alike."""
_SENT_AGAIN: Final = timedelta(minutes=30)
"""A beginning that is sent again within this time is taken for a new try at its answer, as the profiles' sessions end
after this silence; later it begins a new chat."""


class NewTurn(NamedTuple):
    turn: Turn
    id: str
    replaces: str | None = None
    """The id of the row of the same turn that was set aside before."""
    metadata: dict[str, Any] | None = None


class Place(NamedTuple):
    thread: str
    node: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where a request belongs, and what of it is new."""

    thread: str
    node: str
    """The hash of all turns: the answer is stored after it."""
    new: tuple[NewTurn, ...] = ()
    known: frozenset[int] = frozenset()
    """Sequence numbers of the stored messages that the client has."""
    here: frozenset[int] = field(default=frozenset(), repr=False)
    """Sequence numbers of the newest messages of the conversation's thread."""
    aside: tuple[int, ...] = ()
    """Messages to set aside once the request is stored: the branch that it leaves."""
    answers: tuple[int, ...] = ()
    """Messages to set aside once there is a new answer: the older ones to the same question, and what followed them."""
    newest: int = 0
    """The number of the newest message of the thread: rows that are added for a turn are told apart by it."""


class _Fork(NamedTuple):
    """Where a request leaves the branch of a thread that counts."""

    there: Conversation
    path: tuple[Message, ...]
    """The stored messages of the request's turns, one row of each, oldest first."""
    shared: tuple[Message, ...]
    """Those of them that both have in common."""
    unknown: int
    """How many of the request's turns are stored nowhere in the thread."""
    leaves: bool
    """Whether it leaves a branch that another chat may have, or goes on from an answer that was passed on again."""
    repeats: bool
    """Whether the request has nothing new: it asks for another answer."""


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
        root = root_of(scope.user, caller.thread)
        if previous is not None and (place := await self._place_of(scope, previous, caller.thread)) is not None:
            found = await self._fork_in(scope, place, chain(place.node, turns), _HISTORY, asks=asks)
            return await self._settled(caller, scope, found, begun_at_reply=True)
        if caller.thread is not None and _has_news_alone(caller, turns):
            return await self._next_message(scope, turns)
        links = chain(root, turns)
        stored = await self._deepest(scope, links, caller.thread)
        fork: _Fork | None = None
        if stored is not None:
            fork = await self._fork_in(scope, Place(stored.thread, root), links, len(links), asks=asks)
        if len(turns) > 1 and (fork is None or fork.unknown > 1):
            aligned = await self._aligned(scope, turns, caller, asks=asks)
            if aligned is not None and (fork is None or aligned.unknown < fork.unknown):
                return await self._settled(caller, scope, aligned)
        if fork is not None:
            return await self._settled(caller, scope, fork, links)
        if caller.thread is not None:
            begun = await self._fork_in(scope, Place(scope.thread, root), links, len(turns), asks=asks)
            # Several turns of which none is known are no edit of the first one: the client cut or changed its history.
            return await self._settled(caller, scope, begun if len(turns) == 1 else _beside(begun))
        thread = chat_thread(scope.user, links[0].node if links else root)
        return Conversation(thread, links[-1].node if links else root, tuple(map(_as_said, links)))

    def note_reply(self, scope: Scope, reply: str, thread: str, node: str) -> None:
        """Remember to which place of a conversation a reply belongs, by the id that the provider gave it.

        A reply that only calls tools is not stored, so this is the only record of it.
        """
        self._replies[scope.space, scope.user, reply] = Place(thread, node)

    async def _place_of(self, scope: Scope, reply: str, thread: str | None) -> Place | None:
        """Return the place of a reply; None if the request names another thread than that of the reply."""
        place = self._replies.get((scope.space, scope.user, reply))
        if place is None:
            with_id = MessageFilter(role="assistant", metadata=((REPLY_ID, reply),))
            found = await self._memory.store.read(Messages(scope, limit=1, versions=True, where=with_id))
            if found and is_link(found[0]):
                place = Place(found[0].thread, node_of(found[0]))
        if thread is not None:
            return place if place is not None and place.thread == scope.thread else None
        # A chat that was begun without this server goes on in a thread of its own.
        unknown = hashed(root_of(scope.user), reply)
        return place or Place(chat_thread(scope.user, unknown), unknown)

    async def _next_message(self, scope: Scope, turns: Sequence[Turn]) -> Conversation:
        """Return the conversation of a client that names a thread and sends only what is new: no turn, one or more.

        A request without turns has results of tools, which belong to the newest question.
        """
        tail = await self._tail(scope, scope.thread, _compared(len(turns)))
        here = frozenset(message.seq for message in tail)
        shown = [message for message in tail if not message.replaced]
        asked = [message for message in shown if message.role == "user"][-max(1, len(turns)) :]
        said = [(turn.role, turn.words) for turn in turns]
        stored = [("user", Turn("user", message.text).words) for message in asked]
        newest = tail[-1].seq if tail else 0
        if said and said == stored and _is_retry(asked[-1], shown[-1], shown):
            answers = tuple(message.seq for message in shown if message.seq > asked[-1].seq)
            known = frozenset((*(message.seq for message in asked), *answers))
            return Conversation(scope.thread, node_of(asked[-1]), (), known, here, answers=answers, newest=newest)
        node = node_of(shown[-1]) if shown else root_of(scope.user, scope.thread)
        if not turns and asked:
            node = node_of(asked[-1])
        links = chain(node, turns)
        new = tuple(map(_as_said, links))
        return Conversation(scope.thread, links[-1].node if links else node, new, frozenset(), here, newest=newest)

    async def _deepest(self, scope: Scope, links: Sequence[Link], thread: str | None) -> Message | None:
        """Return the last turn that is stored after all turns before it.

        That is usually the last answer, or the question after it if that is sent again. Turns are stored in order, so
        otherwise it is searched for by halves.
        """
        places = [place for place, link in enumerate(links) if link.turn.role == "assistant"]
        if places and (found := await self._stored(scope, links[places[-1]].id, thread)) is not None:
            return found
        low, high, best = 0, places[-1] if places else len(links), None
        while low < high:
            middle = (low + high) // 2
            found = await self._stored(scope, links[middle].id, thread)
            if found is None:
                high = middle
            else:
                low, best = middle + 1, found
        return best

    async def _stored(self, scope: Scope, name: str, thread: str | None) -> Message | None:
        try:
            found = await self._memory.store.read(MessageById(scope, name))
        except NotFound:
            return None
        return found if thread is None or found.thread == scope.thread else None

    async def _fork_in(self, scope: Scope, place: Place, links: Sequence[Link], turns: int, *, asks: bool) -> _Fork:
        """Lay a request of so many turns along a thread: its newest messages, or all if it leaves them further back."""
        tail = await self._tail(scope, place.thread, _compared(turns))
        fork = _fork(_Tree(tail), *place, links, asks=asks)
        if not fork.shared and len(tail) >= _compared(turns):
            tail = await self._tail(scope, place.thread, _WHOLE_CHAT)
            fork = _fork(_Tree(tail), *place, links, asks=asks)
        return fork

    async def _settled(
        self,
        caller: Caller,
        scope: Scope,
        fork: _Fork,
        links: Sequence[Link] = (),
        *,
        begun_at_reply: bool = False,
    ) -> Conversation:
        """Decide whether a request that leaves the branch that counts is an edit, or another chat."""
        there = fork.there
        if caller.sends_history or not (fork.leaves or fork.repeats):
            return there
        if begun_at_reply and caller.thread is None:
            passed_on = 0  # several requests may go on from one reply: none of them hides another
        else:
            passed_on = await self._passed_on(scope, fork.shared, everywhere=caller.thread is None)
        if passed_on == 1:
            return there
        if caller.thread is not None:
            return _beside(fork).there if fork.leaves else there
        if not fork.leaves and (begun_at_reply or await self._is_new_try(scope, fork, passed_on)):
            return there
        return await self._apart(scope, fork, whole=begun_at_reply or bool(links), at_reply=begun_at_reply)

    async def _passed_on(self, scope: Scope, path: Sequence[Message], *, everywhere: bool) -> int:
        """Return how many chats can have all these turns: how often the rarest of the answers was passed on.

        0: none of the answers was, so any number of chats can have them.
        """
        least = 0
        answers = [message for message in path if message.role == "assistant"]
        for message in list(reversed(answers))[:_ALIKE]:
            where = MessageFilter(given_id=base_id(message))
            alike = Messages(scope, limit=_ALIKE, versions=True, where=where)
            seqs = [row.seq for row in await self._memory.store.read(alike)]
            rows = await self._memory.store.read(VersionsOf(scope, seqs))
            times = sum(_passed_on(row) for row in rows if everywhere or row.thread == message.thread)
            if times == 1:
                return 1
            least = min(least or times, times or least)
        return least

    async def _is_new_try(self, scope: Scope, fork: _Fork, passed_on: int) -> bool:
        """Return whether a request that is sent again asks for another answer, and is not of another chat.

        It does if nothing was said since. It also does if only the answer was, not long ago, unless several chats got
        the answers before: one of them would lose the turn that it went on with.
        """
        newest = await self._memory.store.read(Messages(scope, limit=1))
        last = newest[0] if newest else None
        if last is None or last.thread != fork.there.thread:
            return False
        return not fork.there.answers or (not passed_on and _is_recent(last))

    async def _apart(self, scope: Scope, fork: _Fork, *, whole: bool, at_reply: bool) -> Conversation:
        """Return a new chat that has the turns of the request. Two servers that store it choose the same thread.

        `whole` says whether it has all turns that lead to the fork, also those that were not read.
        """
        there, path = fork.there, fork.path
        if whole and path and parent_of(path[0]) != root_of(scope.user):
            path = _Tree(await self._tail(scope, there.thread, _WHOLE_CHAT)).path_to(node_of(path[-1]))
        copies = [
            NewTurn(Turn(message.role, message.text), base_id(message), None, _copied(message)) for message in path
        ]
        new = [each for each in there.new if each.replaces is None]
        thread = chat_thread(scope.user, there.node if at_reply else f"{there.node}-{there.newest}")
        if path and await self._tail(scope, thread, 1):
            begin = Place(thread, parent_of(path[0]))
            links = chain(begin.node, [each.turn for each in (*copies, *new)])
            return (await self._fork_in(scope, begin, links, len(links), asks=True)).there
        known = frozenset(message.seq for message in path)
        return Conversation(thread, there.node, (*copies, *new), known, known)

    async def _aligned(self, scope: Scope, turns: Sequence[Turn], caller: Caller, *, asks: bool) -> _Fork | None:
        """Recognise a request whose beginning is missing, or changed, by the texts of its turns."""
        limit = _compared(len(turns))
        newest = await self._memory.store.read(
            Messages(scope, within="user" if caller.thread is None else "thread", limit=limit)
        )
        threads: dict[str, list[Message]] = {}
        for message in newest:
            mine = message.user == scope.user and (
                caller.thread is not None or _RECOGNISED.fullmatch(chat_name(message.thread))
            )
            if mine and not message.id.startswith(_PART):
                threads.setdefault(message.thread, []).append(message)
        whole = len(newest) < limit
        found = [(align(turns, stored, whole=whole), stored) for stored in threads.values()]
        best, stored = max(found, key=lambda each: (len(each[0].known), each[1][-1].seq), default=(None, []))
        if best is None or not best.known:
            return None
        last = best.known[-1]
        asked = next((message for message in reversed(stored) if message.role == "user"), None)
        if caller.thread is None and not any(map(_passed_on, best.known)) and asked not in best.known:
            return None
        # What stands before the known turns was never stored, such as a summary that the client made: it is new.
        ahead = [NewTurn(turn, f"{_PART}{hashed(turn.role, turn.words)}") for turn in turns[: best.first]]
        tree = _Tree(stored)
        fork = _fork(tree, last.thread, node_of(last), chain(node_of(last), turns[best.end :]), asks=asks, at=last)
        there = replace(fork.there, new=(*ahead, *fork.there.new))
        return fork._replace(there=there, path=best.known, shared=best.known, repeats=fork.repeats and not ahead)

    async def _tail(self, scope: Scope, thread: str, limit: int) -> list[Message]:
        """Return the newest messages of a thread that are the user's, with all versions."""
        there = scope._replace(thread=thread)
        found = await self._memory.store.read(Messages(there, within="thread", limit=limit, versions=True))
        return [message for message in found if message.user == scope.user]


class _Tree:
    """The turns of a thread, with all their rows, in the order of time."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.all = frozenset(message.seq for message in messages)
        self.newest = max(self.all, default=0)
        self.rows: dict[str, list[Message]] = {}
        for message in sorted(messages, key=lambda each: each.seq):
            if not message.taken_back:
                self.rows.setdefault(node_of(message), []).append(message)
        self.branch = [message for message in messages if is_link(message) and not message.replaced]
        """The turns that count, one after the other."""

    def row(self, node: str) -> Message | None:
        """Return the row of a turn that counts, or else its newest one."""
        rows = self.rows.get(node)
        return None if rows is None else next((row for row in rows if not row.replaced), rows[-1])

    def path_to(self, node: str) -> tuple[Message, ...]:
        """Return the turns that lead to one, as far as they are known, oldest first."""
        path: list[Message] = []
        while (row := self.row(node)) is not None:
            path.append(row)
            if not is_link(row):
                break
            node = parent_of(row)
        return tuple(reversed(path))

    def answer_like(self, parent: str, turn: Turn) -> Message | None:
        """Return an answer at a place of which a client may have sent a part, or more than it."""
        found = []
        for rows in self.rows.values():
            if rows[0].role == "assistant" and is_link(rows[0]) and parent_of(rows[0]) == parent:
                words = Turn("assistant", rows[0].text).words
                if words in turn.words or turn.words in words:
                    found.append(self.row(node_of(rows[0])))
        return max((row for row in found if row is not None), key=lambda row: (not row.replaced, row.seq), default=None)


def _fork(
    tree: _Tree, thread: str, place: str, links: Sequence[Link], *, asks: bool, at: Message | None = None
) -> _Fork:
    """Lay a request along the turns of a thread. `links` are its turns after a place; `at` is the row there."""
    nodes = {link.node: number for number, link in enumerate(links, 1)}
    done = max((nodes[node] for node in tree.rows if node in nodes), default=0)
    node = links[done - 1].node if done else place
    path = list(tree.path_to(node)) or ([] if at is None else [at])
    rest = list(links[done:])
    while rest:
        turn = rest[0].turn
        known = tree.row(hashed(node, turn.words))
        if (known is None or known.role != turn.role) and turn.role == "assistant":
            known = tree.answer_like(node, turn)
        if known is None or known.role != turn.role:
            break
        path.append(known)
        node = node_of(known)
        del rest[0]
    rest = chain(node, [link.turn for link in rest])
    on_path = {row.seq for row in path}
    common = max((number for number, row in enumerate(tree.branch, 1) if row.seq in on_path), default=0)
    shared = tuple(row for row in path if not row.replaced)
    left = tree.branch[common:]
    later = [*(row.role for row in path if row.replaced), *(link.turn.role for link in rest)]
    if later[:1] == ["user"]:  # an answer that the client leaves out is not replaced by anything
        while left and left[0].role == "assistant":
            del left[0]
    again = [
        NewTurn(Turn(row.role, row.text), f"{base_id(row)}:{tree.newest}", row.id, _copied(row))
        for row in path
        if row.replaced and is_link(row)
    ]
    new = (*again, *map(_as_said, rest))
    seqs = tuple(row.seq for row in left)
    there = Conversation(
        thread,
        rest[-1].node if rest else node,
        new,
        tree.all,
        tree.all,
        aside=seqs if new else (),
        answers=seqs if asks and not new else (),
        newest=tree.newest,
    )
    answer = next((row for row in reversed(shared) if row.role == "assistant"), None)
    if new:
        leaves = bool(left) or (answer is not None and sum(map(_passed_on, tree.rows[node_of(answer)])) > 1)
    else:
        leaves = asks and any(row.role == "user" for row in left)
    return _Fork(there, tuple(path), shared, len(rest), leaves, asks and not new)


def _beside(fork: _Fork) -> _Fork:
    """Return the same without anything that is set aside: the turns are stored after what is there."""
    return fork._replace(there=replace(fork.there, aside=(), answers=()), leaves=False, repeats=False)


def _as_said(link: Link) -> NewTurn:
    return NewTurn(link.turn, link.id, None, {FROM_CLIENT: True} if link.turn.role == "assistant" else None)


def _copied(row: Message) -> dict[str, Any] | None:
    kept = dict(row.metadata)
    return {**kept, FROM_CLIENT: True} if row.role == "assistant" else kept or None


def _has_news_alone(caller: Caller, turns: Sequence[Turn]) -> bool:
    """Return whether a request has only what is new in its thread, and not the history before it."""
    if not turns:
        return True
    alone = len(turns) == 1 or (caller.provider_has_history and all(turn.role == "user" for turn in turns))
    return alone and not caller.sends_history


def _passed_on(message: Message) -> bool:
    """Return whether a stored message is an answer that this server passed on."""
    return message.role == "assistant" and not message.metadata.get(FROM_CLIENT)


def _is_retry(question: Message, last: Message, tail: Sequence[Message]) -> bool:
    """Return whether a question that is sent again, alone, asks for another answer instead of being said once more.

    It does if nothing was said since but the answer, and that not long ago. `last` is the newest message.
    """
    after = [message for message in tail if message.seq > question.seq]
    return all(message.role == "assistant" for message in after) and (not after or _is_recent(last))


def _is_recent(message: Message) -> bool:
    return datetime.now(UTC) - message.stored_at < _SENT_AGAIN


def _compared(turns: int) -> int:
    return min(_COMPARED + 2 * turns, _MOST_COMPARED)
