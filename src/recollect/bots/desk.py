"""The desk that all messages of a bot go over: stored first, answered in the order of their thread, told when not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self
from weakref import WeakValueDictionary

from cachetools import LRUCache

from recollect.assistant import NOT_DURABLE, Answer, Assistant, Turn, is_command
from recollect.bots.contract import Address, Deleted, Edited, Equipped, Heard, Platform, Pressed
from recollect.bots.lanes import Lanes
from recollect.bots.reminding import Reminding
from recollect.bots.sending import Sender
from recollect.bots.splitting import split
from recollect.bots.tally import Tally
from recollect.domain.message import Message
from recollect.domain.receipt import Receipt
from recollect.domain.report import Component
from recollect.errors import ModelError, NotFound, RecollectError, StoreError
from recollect.memory import Memory, UserMemory

_log: Final = logging.getLogger("recollect.bots")

AT_ONCE: Final = 32
"""So many threads are answered side by side."""
MOST_WAITING: Final = 20
"""So many messages of a thread wait for an answer; what comes on top is stored and not answered."""
PATIENCE: Final = 10.0
"""When a bot stops, what it is about to say gets so many seconds."""
_TOLD: Final = 10_000
_STORED_AT_ONCE: Final = 16_000
"""A reply of more units is stored in parts: four bytes for each fit into what a message may be."""
_SHORT: Final = 20
"""What a two-step command asks for is not longer."""
_ANSWER: Final = "re:"
"""Before the id of a message: the id of the reply to it."""


class Desk:
    """Takes in what a platform hands in, and answers through it. Use it with `async with`.

    When `hear` returns, the message is stored. Whatever is handed in again, as after a crash, is recognised by its id:
    stored once, and answered once.
    """

    def __init__(
        self,
        memory: Memory,
        platform: Platform,
        *,
        assistant: Assistant | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        at_once: int = AT_ONCE,
        patience: float = PATIENCE,
    ) -> None:
        self.tally = Tally()
        self.assistant = assistant or Assistant(memory)
        self.memory = memory
        self._platform = platform
        self._sender = Sender(platform, self.tally)
        self._reminding = Reminding(memory, platform, self._sender, self.tally, clock)
        self._lanes = Lanes(at_once)
        self._patience = patience
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._told: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(_TOLD)
        self._answering: set[tuple[str, str, str]] = set()

    async def __aenter__(self) -> Self:
        self._reminding.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reminding.stop()
        left = await self._lanes.finish(self._patience)
        if left:
            _log.warning("%d messages were not answered, because the bot stopped; all of them are stored", left)

    async def hear(self, heard: Heard) -> None:
        """Store a message. When this returns, it is stored; the answer follows, if the bot is meant."""
        self.tally.heard += 1
        lane = _lane(heard.address)
        text = _whole(heard)
        if not text.strip():
            return
        async with self._turn(lane):
            user = self._user(heard.address)
            try:
                if await self._route(user, heard, text):
                    return
                receipt = await user.add("user", text, id=heard.id, at=heard.at, name=_clean(heard.name))
            except RecollectError as error:
                self._not_stored(heard, error)
                return
            self.tally.stored += not receipt.duplicate
            self._tell(heard.address, receipt)
            if heard.wanted and await self._unanswered(user, heard, receipt):
                self._answer(heard, receipt.message)

    async def edited(self, edit: Edited) -> None:
        """Store the new words of a message behind the old ones, which stay in the log."""
        text = _clean(edit.text)
        if not text or not text.strip():
            return
        stamp = edit.at.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        async with self._turn(_lane(edit.address)):
            user = self._user(edit.address)
            before = await self._message(user, edit.id)
            if before is None or before.text == text:
                # What was never stored, as a command, or was not changed, as a link that got its preview.
                return
            name = _clean(edit.name)
            await user.add("user", f"(edited) {text}", id=f"{edit.id}:edited:{stamp}", at=edit.at, name=name)
            self.tally.edits += 1

    async def deleted(self, deletion: Deleted) -> None:
        """Store that a message was deleted on the platform. It stays in the log; `purge` and `forget` erase."""
        async with self._turn(_lane(deletion.address)):
            before = await self._message(self._user(deletion.address), deletion.id)
            if before is None:
                return
            # Whoever deletes it, it belongs to the person who said it.
            user = self._user(deletion.address._replace(user=before.user))
            said = before.at.astimezone(UTC)
            await user.add(
                "tool",
                f"(deleted the message of {said:%Y-%m-%d %H:%M} UTC)",
                id=f"{deletion.id}:deleted",
                at=deletion.at,
                author=before.author,
                name=before.name,
            )
            self.tally.deletions += 1

    async def pressed(self, pressed: Pressed) -> None:
        """Take a button for the word that it stands for, and send the answer."""
        self._say(pressed.address, await self.press(pressed))

    async def press(self, pressed: Pressed) -> Answer:
        """Take a button for the word that it stands for, and return the answer: where the platform wants it back."""
        async with self._turn(_lane(pressed.address)):
            user = self._user(pressed.address)
            answer = await self.assistant.router.step(user, pressed.word, stay=True)
        return answer or Answer("That question is not open any more.")

    async def command(self, address: Address, text: str) -> Answer:
        """Carry out a command when it is its turn, and return the answer: where the platform wants it back."""
        self.tally.commands += 1
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        async def job() -> None:
            try:
                answer = await self.assistant.router.answer(self._user(address), text)
            except BaseException as error:
                # Whatever it is, somebody waits for it.
                done.set_exception(error)
                raise
            done.set_result(answer or Answer("That did not work."))

        self._lanes.add(_lane(address), job)
        return await done

    async def remind(self) -> int:
        """Deliver the reminders whose time has come, now; return how many. It also happens by itself."""
        return await self._reminding.deliver()

    async def idle(self) -> None:
        """Wait until everything is answered that was heard."""
        await self._lanes.idle()

    def health(self) -> Component:
        """Say how the bot is doing."""
        parts = self._platform.parts() if isinstance(self._platform, Equipped) else ()
        return self.tally.component(self._platform.name, self._lanes.waiting(), parts)

    def _user(self, address: Address) -> UserMemory:
        return self.memory.user(address.user, space=address.space, thread=address.thread)

    def _turn(self, lane: tuple[str, str]) -> asyncio.Lock:
        """Return what those who store into one thread take turns by, in the order in which they came."""
        lock = self._turns.get(lane)
        if lock is None:
            lock = self._turns[lane] = asyncio.Lock()
        return lock

    async def _route(self, user: UserMemory, heard: Heard, text: str) -> bool:
        """Take care of commands and of what they asked for; False for everything else."""
        router = self.assistant.router
        if heard.wanted and is_command(text):
            self.tally.commands += 1
            if router.asks_back(text):
                # At once: the next message may be what it asks for.
                answer = await router.answer(user, text)
                self._say(heard.address, answer or Answer(""), heard.id)
            else:
                await router.leave(user)
                self._lanes.add(_lane(heard.address), lambda: self._command(user, heard, text))
            return True
        if not heard.wanted and len(text) > _SHORT:
            return False
        answer = await router.step(user, text)
        if answer is not None:
            self._say(heard.address, answer, heard.id)
        return answer is not None

    async def _command(self, user: UserMemory, heard: Heard, text: str) -> None:
        async with self._platform.typing(heard.address):
            answer = await self.assistant.router.answer(user, text)
        if answer is not None:
            await self._sender.send(heard.address, answer, heard.id)

    def _say(self, to: Address, answer: Answer, answers: str | None = None) -> None:
        self._lanes.add(_lane(to), lambda: self._sender.send(to, answer, answers))

    def _answer(self, heard: Heard, message: Message) -> None:
        lane = _lane(heard.address)
        if self._lanes.waiting(lane) >= MOST_WAITING:
            self.tally.skipped += 1
            if self._lanes.waiting(lane) == MOST_WAITING:
                self._say(
                    heard.address, Answer("(that is a lot at once: I keep all of it, and answer what came first)")
                )
            return
        key = (*lane, heard.id)
        self._answering.add(key)

        async def job() -> None:
            try:
                await self._reply(heard, message)
            finally:
                self._answering.discard(key)

        self._lanes.add(lane, job)

    async def _reply(self, heard: Heard, message: Message) -> None:
        """Answer a message that is stored; store the reply, then send it."""
        user = self._user(heard.address)
        turn = Turn(user, message.text, message, heard.name, heard.people, heard.called, heard.quoted)
        answer, failure = None, None
        async with self._platform.typing(heard.address):
            try:
                answer = await self.assistant.requested(turn)
                if answer is None:
                    answer = Answer(await self._written(turn))
            except ModelError as error:
                failure = Answer(f"(the model could not answer: {error}; what you said is stored)")
        if answer is not None and answer.text.strip():
            for number, part in enumerate(split(answer.text, _STORED_AT_ONCE), 1):
                tail = "" if number == 1 else f":{number}"
                self._tell(heard.address, await user.add("assistant", part, id=f"{_ANSWER}{heard.id}{tail}"))
            self.tally.answered += 1
        else:
            self.tally.unanswered += 1
            failure = failure or Answer("(the model wrote nothing; what you said is stored)")
        await self._sender.send(heard.address, failure or answer or Answer(""), heard.id)

    async def _written(self, turn: Turn) -> str:
        async with aclosing(self.assistant.answer(turn)) as pieces:
            return "".join([piece async for piece in pieces])

    async def _unanswered(self, user: UserMemory, heard: Heard, receipt: Receipt) -> bool:
        """Tell whether a message still has to be answered. One that was handed in before may have been."""
        if not receipt.duplicate:
            return True
        if (*_lane(heard.address), heard.id) in self._answering:
            return False
        return await self._message(user, f"{_ANSWER}{heard.id}") is None

    @staticmethod
    async def _message(user: UserMemory, message: str) -> Message | None:
        """Return a message of the user's thread by its id."""
        try:
            return await user.message(message, within="thread")
        except NotFound:
            return None

    def _tell(self, to: Address, receipt: Receipt) -> None:
        """Say what a person should know about how their words are kept: once, and again when it is over."""
        news = frozenset((*receipt.notices, *(() if receipt.durable else (NOT_DURABLE,))))
        key = (to.space, to.user)
        before = self._told.get(key, frozenset())
        if news == before:
            return
        self._told[key] = news
        for notice in sorted(news - before):
            self._say(to, Answer(f"({notice})"))
        if NOT_DURABLE in before - news:
            self._say(to, Answer("(what you say is kept for good again, and so is what you said meanwhile)"))

    def _not_stored(self, heard: Heard, error: RecollectError) -> None:
        self.tally.failed(f"a message could not be stored: {error}")
        if isinstance(error, StoreError):
            _log.error("a message of %s in %s could not be stored: %s", heard.address.user, heard.address.space, error)
        if heard.wanted:
            self._say(heard.address, Answer(f"(I could not store that, so I will not remember it: {error})"), heard.id)


def _lane(address: Address) -> tuple[str, str]:
    """Return what keeps its order: a thread of a space, or the direct chat with a person."""
    return address.space, f"direct:{address.user}" if address.thread is None else address.thread


def _whole(heard: Heard) -> str:
    """Return a message with what came along with it."""
    notes = "\n".join(f"[attached: {each}]" for each in heard.attachments)
    return "\n".join(part for part in (_clean(heard.text) or "", _clean(notes) or "") if part)


def _clean(text: str | None) -> str | None:
    """Put a sign in the place of what no store can hold, for the sender cannot see it."""
    return None if text is None else text.replace("\0", "\ufffd").encode(errors="replace").decode()
