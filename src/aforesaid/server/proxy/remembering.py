"""What the proxy does for the memory: store what is said, and add what is remembered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from aforesaid.context import Context, Item
from aforesaid.context.render import block
from aforesaid.domain.checks import MESSAGE_BYTES
from aforesaid.domain.memory_change import NoteAccess
from aforesaid.domain.message import Message
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.prompts import Line
from aforesaid.models.prompts.fence import enclosed, fence_line
from aforesaid.models.tokens import TokenCounter, counter_for
from aforesaid.profiles.recipe import LEAST_BUDGET, SectionName
from aforesaid.server.proxy.turns import Recognised, Turn, recognise, replaced, text_of, turns_of
from aforesaid.settings import Serving
from aforesaid.tasks import begin

_log: Final = logging.getLogger("aforesaid.server.proxy")

_PATIENCE_SECONDS: Final = 5.0
"""A memory that takes longer is left out: somebody waits for the reply."""
_COMPARED: Final = 12
_MOST_COMPARED: Final = 400
"""So many messages of the log are compared with what a client sends, beside twice as many as it sends; and at most."""
_ADDED: Final[tuple[SectionName, ...]] = ("instructions", "portrait", "memories", "summaries", "snippets", "date")
_REPLY_TOKENS: Final = 1_024
"""What is kept free for the reply where the client does not say."""
_EARLIER: Final = "What was said last, before the messages below:"

Storing: TypeAlias = Coroutine[Any, Any, None]


@dataclass(slots=True)
class Remembered:
    """What the memory did for one request."""

    state: str = "on"
    """`on`, or `failed` where it could not do its part."""
    messages: list[object] | None = None
    """What to send instead of the client's messages; None to send those."""
    tokens: int = 0
    """How many were added."""
    stored: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when what is new in the request is stored, or could not be."""


class Asking(NamedTuple):
    """Whose memory a request is about, and who asks."""

    person: UserMemory
    """A handle without an actor: what is looked at for the request is written down once, at its end."""
    actor: str
    """As the audit log calls it."""


class Remembering:
    """The memory's part in requests of one server."""

    def __init__(self, memory: Memory, serving: Serving) -> None:
        self._memory = memory
        self._window = serving.window
        self._most = serving.budget
        self._one_at_a_time: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()

    async def before(
        self, asking: Asking, body: dict[str, Any], model: str | None, finish: Callable[[Storing], None]
    ) -> Remembered:
        """Find what should be known to answer a request. Never raises.

        What is new in the request is stored, and who asked is written down, by work that `finish` sees to the end,
        whatever becomes of the request. The model need not wait for it, only those who hear its answer: `stored` tells
        when.
        """
        done, found = Remembered(), asyncio.Event()
        finish(self._take_turn(asking, body, model, done, found))
        await found.wait()
        return done

    async def _take_turn(
        self, asking: Asking, body: dict[str, Any], model: str | None, done: Remembered, found: asyncio.Event
    ) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), self._turn(asking.person):
                await self._before(asking, body, model, done, found)
        except Exception:
            # Whatever it is, somebody waits for a reply and gets one.
            if found.is_set():
                _log.exception("a request of %s was passed on, and could not be written down", asking.actor)
            else:
                _log.exception("a request goes on without memory")
            done.state = "failed"
        finally:
            found.set()
            done.stored.set()

    async def after(self, person: UserMemory, reply: str) -> bool:
        """Store what the assistant said. Never raises; False if it could not be stored."""
        said = turns_of([{"role": "assistant", "content": reply}], MESSAGE_BYTES)
        if not said:
            return True
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), self._turn(person):
                await person.add("assistant", said[0].text)
        except Exception:
            _log.exception("a reply could not be stored")
            return False
        return True

    async def _before(
        self, asking: Asking, body: dict[str, Any], model: str | None, done: Remembered, found: asyncio.Event
    ) -> None:
        person = asking.person
        messages: Sequence[object] = body["messages"]
        asked = text_of(_last_of_user(messages))
        # Beside one another, as mostly it is the last message alone that is new. A context knows nothing of what is
        # stored after it began, and tells the message that it answers by its text, should it be stored already.
        guess = begin(person.context(asked, model=model, most=self._most)) if asked.strip() else None
        try:
            await asyncio.sleep(0)  # it takes longest
            counter = counter_for(model)
            room = self._window - _size(counter, messages) - _asked_for(body)
            recognised = await self._recognised(person, messages)
            new, shown = recognised.new, list(recognised.known)
            if guess is None or room < LEAST_BUDGET:
                _log.info("nothing to add, or no room for it, beside %d messages", len(messages))
                found.set()
                await _store(person, new)
                return
            if len(new) == 1:
                context = await guess
            else:
                shown += await _store(person, new)
                new = ()
                last = next((each for each in reversed(shown) if each.role == "user"), None)
                context = await person.context(asked, model=model, answers=last, most=self._most)
        finally:
            if guess is not None:
                guess.cancel()
        seqs = frozenset(each.seq for each in shown)
        text, done.tokens = fitted(context, seqs, person.scope.user, counter, min(room, context.budget))
        if text:
            done.messages = replaced(messages, text)
        found.set()
        # In one transaction.
        await asyncio.gather(
            self._memory.store.apply([NoteAccess(person.scope, asking.actor, "context.read", "context")]),
            _store(person, new),
        )

    async def _recognised(self, person: UserMemory, messages: Sequence[object]) -> Recognised:
        """Tell what is new in a request."""
        sent = turns_of(messages, MESSAGE_BYTES)
        limit = min(_COMPARED + 2 * len(sent), _MOST_COMPARED)
        newest = await self._memory.store.messages(person.scope, within="thread", limit=limit)
        stored = [each for each in newest if each.user == person.scope.user and each.role in {"user", "assistant"}]
        return recognise(sent, stored, whole=len(newest) < limit)

    def _turn(self, person: UserMemory) -> asyncio.Lock:
        """Return what requests of one conversation take turns by, so that nothing is taken for new twice."""
        key = person.scope.space, person.scope.user, person.scope.thread
        lock = self._one_at_a_time.get(key)
        if lock is None:
            lock = self._one_at_a_time[key] = asyncio.Lock()
        return lock


async def _store(person: UserMemory, new: Sequence[Turn]) -> list[Message]:
    """Store what is new, and return it as it is in the log."""
    return [(await person.add(turn.role, turn.text)).message for turn in new]


def fitted(context: Context, shown: frozenset[int], user: str, counter: TokenCounter, most: int) -> tuple[str, int]:
    """Write down what is remembered in so many tokens, without what the client sent itself. Return how many it has.

    Of what was said last, the oldest goes first: marked as what it is, it takes more than the turns that it was.
    """
    added = [item for item in context.items if item.section in _ADDED]
    known = "\n\n".join(
        block(section, items, user)
        for section in _ADDED
        if (items := [item for item in added if item.section == section])
    )
    earlier = [
        fence_line(_line(item, user)) for item in context.items if item.section == "recent" and not item.shows & shown
    ]
    costs = [counter.count(f"{line}\n") for line in earlier]
    over = sum(item.tokens for item in added) + sum(costs) - most
    # Counted one by one first, and as a whole at the end, which decides.
    while True:
        while costs and over > 0:
            over -= costs.pop(0)
            del earlier[0]
        text = _joined(known, earlier)
        tokens = counter.count(text)
        over = tokens - most
        if over <= 0:
            return text, tokens
        if not earlier:
            text = counter.cut(text, most)
            return text, counter.count(text)


def _joined(known: str, earlier: Sequence[str]) -> str:
    last = f"{_EARLIER}\n{enclosed('messages', earlier)}" if earlier else ""
    return "\n\n".join(part for part in (known, last) if part)


def _line(item: Item, user: str) -> Line:
    return Line(item.name or (user if item.role == "user" else "you"), item.text, item.at, item.role)


def _last_of_user(messages: Sequence[object]) -> object:
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            return message.get("content")
    return None


def _size(counter: TokenCounter, messages: Sequence[object]) -> int:
    texts = [text_of(message.get("content")) for message in messages if isinstance(message, dict)]
    return counter.count_messages([{"role": "user", "content": text} for text in texts])


def _asked_for(body: dict[str, Any]) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        if isinstance(body.get(name), int):
            return int(body[name])
    return _REPLY_TOKENS
