"""What the proxy does for the memory: store what is said, and add what is remembered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from recollect.context import Context, Item
from recollect.context.render import block
from recollect.domain.checks import MESSAGE_BYTES
from recollect.domain.message import Message
from recollect.memory import Memory, UserMemory
from recollect.models.prompts import Line, fence
from recollect.models.tokens import TokenCounter, counter_for
from recollect.profiles.recipe import LEAST_BUDGET, SectionName
from recollect.server.proxy.turns import Recognised, recognise, replaced, text_of, turns_of
from recollect.settings import Serving

_log: Final = logging.getLogger("recollect.server.proxy")

_PATIENCE_SECONDS: Final = 5.0
"""A memory that takes longer is left out: somebody waits for the reply."""
_COMPARED: Final = 20
_MOST_COMPARED: Final = 400
"""So many messages of the log are compared with what a client sends, beside twice as many as it sends; and at most."""
_ADDED: Final[tuple[SectionName, ...]] = ("portrait", "memories", "summaries", "snippets")
_REPLY_TOKENS: Final = 1_024
"""What is kept free for the reply where the client does not say."""
_EARLIER: Final = "What was said last, before the messages below:"


@dataclass(slots=True)
class Remembered:
    """What the memory did for one request."""

    state: str = "on"
    """`on`, or `failed` where it could not do its part."""
    messages: list[object] | None = None
    """What to send instead of the client's messages; None to send those."""
    tokens: int = 0
    """How many were added."""


class Remembering:
    """The memory's part in requests of one server."""

    def __init__(self, memory: Memory, serving: Serving) -> None:
        self._memory = memory
        self._window = serving.window
        self._most = serving.budget
        self._one_at_a_time: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()

    async def before(self, person: UserMemory, body: dict[str, Any], model: str | None) -> Remembered:
        """Store what is new in a request, and find what should be known to answer it. Never raises."""
        done = Remembered()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._before(person, body, model, done)
        except Exception:
            # Whatever it is, somebody waits for a reply and gets one.
            _log.exception("a request goes on without memory")
            done.state = "failed"
        return done

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

    async def _before(self, person: UserMemory, body: dict[str, Any], model: str | None, done: Remembered) -> None:
        messages: Sequence[object] = body["messages"]
        asked = text_of(_last_of_user(messages))
        counter = counter_for(model)
        room = self._window - _size(counter, messages) - _asked_for(body)
        async with self._turn(person):
            if not asked.strip() or room < LEAST_BUDGET:
                _log.info("nothing to add, or no room for it, beside %d messages", len(messages))
                await _store(person, await self._recognised(person, messages))
                return
            # Beside one another: mostly it is the last message alone that is new, and that is told from others by its
            # text, whether it is stored already or not.
            guess = asyncio.ensure_future(person.context(asked, model=model, most=self._most))
            try:
                found = await self._recognised(person, messages)
                stored = await _store(person, found)
                if len(found.new) == 1:
                    context = await guess
                else:
                    last = next((each for each in reversed(stored) if each.role == "user"), None)
                    context = await person.context(asked, model=model, answers=last, most=self._most)
            finally:
                guess.cancel()
        shown = frozenset(each.seq for each in stored)
        text = written(context, shown, person.scope.user)
        if text:
            most = min(room, context.budget)
            tokens = counter.count(text)
            if tokens > most:
                text = counter.cut(text, most)
                tokens = counter.count(text)
            done.messages = replaced(messages, text)
            done.tokens = tokens

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


async def _store(person: UserMemory, found: Recognised) -> list[Message]:
    """Store what is new. Return all that the client has, as it is in the log."""
    added = [(await person.add(turn.role, turn.text)).message for turn in found.new]
    return [*found.known, *added]


def written(context: Context, shown: frozenset[int], user: str) -> str:
    """Write down what is remembered, without what the client sent itself."""
    parts = []
    for section in _ADDED:
        items = [item for item in context.items if item.section == section]
        if items:
            parts.append(block(section, items, user))
    earlier = [item for item in context.items if item.section == "recent" and not item.shows & shown]
    if earlier:
        parts.append(f"{_EARLIER}\n{fence(_line(item, user) for item in earlier)}")
    return "\n\n".join(parts)


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
