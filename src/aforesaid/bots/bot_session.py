"""The session of a bot: stores messages first, answers each thread in order, and reports what failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from time import time
from types import TracebackType
from typing import Final, Self
from weakref import WeakValueDictionary

from cachetools import LRUCache

from aforesaid.assistant import NOT_DURABLE, Answer, Assistant, failure, is_command
from aforesaid.background import BackgroundLoop
from aforesaid.bots.contract import Address, Attended, Deleted, Edited, Equipped, IncomingMessage, Platform, Pressed
from aforesaid.bots.message_times import MessageTimes
from aforesaid.bots.pending_replies import PendingReplies, PendingReply
from aforesaid.bots.per_thread_queue import PerThreadQueue
from aforesaid.bots.reminding import Reminding
from aforesaid.bots.replying import Replying, found
from aforesaid.bots.sending import Sender
from aforesaid.bots.stats import BotStats
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component
from aforesaid.errors import AforesaidError, StoreError
from aforesaid.memory import Memory, UserMemory

_log: Final = logging.getLogger("aforesaid.bots")

AT_ONCE: Final = 32
"""Maximum threads answered at the same time."""
MOST_WAITING: Final = 20
"""Maximum messages of a thread waiting for an answer; further ones are stored and not answered."""
PATIENCE: Final = 10.0
"""Maximum seconds that a stopping bot waits for replies in progress."""
_CATCH_UP: Final = 60.0
"""Seconds between two checks for replies that are still pending."""
_TOLD: Final = 10_000
_SHORT: Final = 20
"""Maximum characters of an answer to a two-step command."""


class BotSession:
    """Takes in what a platform hands in, and answers through it. Use it with `async with`.

    When `hear` returns, the message is stored. Whatever is handed in again, as after a crash, is recognised by its id:
    stored once, and answered once. What could not be answered before the bot stopped is answered when it runs again.
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
        self.stats = BotStats()
        self.assistant = assistant or Assistant(memory)
        self.memory = memory
        self._platform = platform
        self._sender = Sender(platform, self.stats)
        self._times = MessageTimes()
        self._reminding = Reminding(memory, platform, self._sender, self.stats, self._times, clock)
        self._queue = PerThreadQueue(at_once)
        self._patience = patience
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._told: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(_TOLD)
        self._not_stored_for: LRUCache[Address, None] = LRUCache(_TOLD)
        """Who was told that a message could not be stored, and not yet that it works again."""
        self._replying = Replying(platform, self.assistant, self.stats, self._times)
        self._pending = PendingReplies(memory, platform.name)
        self._answering: set[str] = set()
        """What is noted as pending and is being taken care of."""
        self._catching_up: BackgroundLoop | None = None
        self._asked: set[asyncio.Future[Answer]] = set()
        """Answers to commands that somebody waits for."""

    async def __aenter__(self) -> Self:
        self._reminding.start()
        catching_up = BackgroundLoop(f"{self._platform.name} catching up", self._catch_up, log=_log)
        self._catching_up = self.memory.loops.add(catching_up)
        self._catching_up.start(_CATCH_UP)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reminding.stop()
        if self._catching_up is not None:
            await self._catching_up.stop()
        left = await self._queue.finish(self._patience)
        for waiting in self._asked:
            if not waiting.done():
                waiting.set_result(Answer("The bot is stopping. Send the command again when it is back."))
        if left:
            _log.warning("%d messages are stored, and answered when the bot runs again, because it stopped", left)

    async def hear(self, heard: IncomingMessage) -> None:
        """Store a message. When this returns, it is stored; the answer follows, if the bot is meant."""
        self.stats.heard += 1
        lane = heard.address.thread_key
        text = _whole(heard)
        if not text.strip():
            return
        async with self._turn(lane):
            user = self._user(heard.address)
            try:
                if await self._route(user, heard, text) or await found(user, heard.id) is not None:
                    return
                await self._store(user, heard, text)
            except AforesaidError as error:
                self._not_stored(heard, error)

    async def resume(self) -> None:
        """Answer what was taken in and not answered, because the bot was stopped or could not send."""
        try:
            await self._resume()
        except StoreError as error:
            _log.warning("what was not answered before is answered when the store works again: %s", error)

    async def _resume(self) -> None:
        for pending in await self._pending.left():
            if pending.key in self._answering or not self._reachable(pending.address):
                continue
            if pending.command is not None:
                told = f"(I was stopped before I had answered {pending.command}. Send it again if you still want it.)"
                self._say(pending.address, Answer(told), pending.id, pending=pending)
                continue
            message = await found(self._user(pending.address), pending.id)
            if message is None:
                # It was erased in between, or never stored: then the platform delivers it again.
                await self._pending.settle(pending)
                continue
            heard = IncomingMessage(
                pending.address, pending.id, message.text, message.at, message.name, called=pending.called
            )
            self._do(pending.address, partial(self._reply, heard, message, pending), pending)

    async def edited(self, edit: Edited) -> None:
        """Store the new words of a message behind the old ones, which stay in the log."""
        text = _clean(edit.text)
        if not text or not text.strip():
            return
        stamp = edit.at.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        async with self._turn(edit.address.thread_key):
            user = self._user(edit.address)
            before = await found(user, edit.id)
            if before is None or before.text == text:
                # What was never stored, as a command, or was not changed, as a link that got its preview.
                return
            name = _clean(edit.name)
            at = self._times.received(edit.address.thread_key, edit.at)
            await user.add("user", f"(edited) {text}", id=f"{edit.id}:edited:{stamp}", at=at, name=name)
            self.stats.edits += 1

    async def deleted(self, deletion: Deleted) -> None:
        """Store that a message was deleted on the platform. It stays in the log; `purge` and `forget` erase."""
        async with self._turn(deletion.address.thread_key):
            before = await found(self._user(deletion.address), deletion.id)
            if before is None:
                return
            # Whoever deletes it, it belongs to the person who said it.
            user = self._user(deletion.address._replace(user=before.user))
            said = before.at.astimezone(UTC)
            await user.add(
                "tool",
                f"(deleted the message of {said:%Y-%m-%d %H:%M} UTC)",
                id=f"{deletion.id}:deleted",
                at=self._times.received(deletion.address.thread_key, deletion.at),
                author=before.author,
                name=before.name,
            )
            self.stats.deletions += 1

    async def pressed(self, pressed: Pressed) -> None:
        """Take a button for the word that it stands for, and send the answer."""
        pending = None
        if pressed.id is not None:
            pending = PendingReply(pressed.address, pressed.id, time(), command="a button")
            if self._pending.knows(pending):
                return
            await self._note_pending(pending)
        self._say(pressed.address, await self.press(pressed), pending=pending)

    async def press(self, pressed: Pressed) -> Answer:
        """Take a button for the word that it stands for, and return the answer: where the platform wants it back."""
        async with self._turn(pressed.address.thread_key):
            user = self._user(pressed.address)
            answer = await self.assistant.router.step(user, pressed.word, stay=True)
        return answer or Answer("That question is not open any more.")

    async def command(self, address: Address, text: str) -> Answer:
        """Carry out a command when it is its turn, and return the answer: where the platform wants it back."""
        self.stats.commands += 1
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        async def job() -> None:
            try:
                answer = await self.assistant.router.answer(self._user(address), text)
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
                raise
            if not done.done():
                done.set_result(answer or Answer("That did not work."))

        self._asked.add(done)
        try:
            self._queue.add(address.thread_key, job)
            return await done
        finally:
            self._asked.discard(done)

    async def remind(self) -> int:
        """Deliver the reminders whose time has come, now; return how many. It also happens by itself."""
        return await self._reminding.deliver()

    async def idle(self) -> None:
        """Wait until everything is answered that was heard."""
        await self._queue.idle()

    def health(self) -> Component:
        """Say how the bot is doing."""
        parts = self._platform.parts() if isinstance(self._platform, Equipped) else ()
        return self.stats.component(self._platform.name, self._queue.waiting(), parts)

    def _user(self, address: Address) -> UserMemory:
        return self.memory.user(address.user, space=address.space, thread=address.thread)

    def _turn(self, lane: tuple[str, str]) -> asyncio.Lock:
        """Return what those who store into one thread take turns by, in the order in which they came."""
        lock = self._turns.get(lane)
        if lock is None:
            lock = self._turns[lane] = asyncio.Lock()
        return lock

    async def _route(self, user: UserMemory, heard: IncomingMessage, text: str) -> bool:
        """Take care of commands and of what they asked for; False for everything else."""
        router = self.assistant.router
        if heard.wanted and is_command(text):
            pending = PendingReply(heard.address, heard.id, time(), command=text.split(maxsplit=1)[0])
            if self._pending.knows(pending):
                return True
            self.stats.commands += 1
            await self._note_pending(pending)
            if router.asks_back(text):
                # At once: the next message may be what it asks for.
                answer = await router.answer(user, text)
                self._say(heard.address, answer or Answer(""), heard.id, pending=pending)
            else:
                await router.leave(user)
                self._do(heard.address, lambda: self._command(user, heard, text), pending)
            return True
        if not heard.wanted and len(text) > _SHORT:
            return False
        return await self._step(user, heard, text)

    async def _step(self, user: UserMemory, heard: IncomingMessage, text: str) -> bool:
        """Take what a two-step command asked for; False where nothing was asked, or the text does not fit."""
        router = self.assistant.router
        pending = PendingReply(heard.address, heard.id, time(), command="that")
        if self._pending.knows(pending):
            return True
        if not await router.is_open(user):
            return False
        await self._note_pending(pending)
        answer = await router.step(user, text)
        if answer is None:
            await self._settle(pending)
            return False
        self._say(heard.address, answer, heard.id, pending=pending)
        return True

    async def _command(self, user: UserMemory, heard: IncomingMessage, text: str) -> bool:
        async with self._platform.typing(heard.address):
            answer = await self.assistant.router.answer(user, text)
        return answer is None or await self._sender.send(heard.address, answer, heard.id)

    def _say(
        self, to: Address, answer: Answer, answers: str | None = None, *, pending: PendingReply | None = None
    ) -> None:
        self._do(to, lambda: self._sender.send(to, answer, answers), pending)

    async def _note_pending(self, pending: PendingReply) -> None:
        self._answering.add(pending.key)
        await self._pending.note(pending)

    async def _settle(self, pending: PendingReply) -> None:
        await self._pending.settle(pending)
        self._answering.discard(pending.key)

    async def _catch_up(self) -> float:
        """Send what could not be sent before. Return after how many seconds to try again."""
        if self.stats.connected:
            await self._resume()
            await self._probe()
        return _CATCH_UP

    def _reachable(self, to: Address) -> bool:
        return not isinstance(self._platform, Attended) or self._platform.reachable(to)

    def _do(self, to: Address, answer: Callable[[], Awaitable[bool]], pending: PendingReply | None) -> None:
        """Have something done when it is its turn. What was pending is settled if that says so."""

        async def job() -> None:
            try:
                if await answer() and pending is not None:
                    await self._pending.settle(pending)
            finally:
                if pending is not None:
                    self._answering.discard(pending.key)

        if pending is not None:
            self._answering.add(pending.key)
        self._queue.add(to.thread_key, job)

    async def _store(self, user: UserMemory, heard: IncomingMessage, text: str) -> None:
        """Store a message, and have it answered."""
        lane = heard.address.thread_key
        answered = heard.wanted and self._queue.waiting(lane) < MOST_WAITING
        pending = PendingReply(heard.address, heard.id, time(), called=heard.called)
        at = self._times.received(lane, heard.at)
        adding = user.add("user", text, id=heard.id, at=at, name=_clean(heard.name))
        if answered:
            # At once, but the note first: whatever a kill leaves behind is noted and comes again, or noted and stored.
            try:
                _, receipt = await asyncio.gather(self._note_pending(pending), adding)
            except AforesaidError:
                await self._settle(pending)
                raise
        else:
            receipt = await adding
        self.stats.stored += not receipt.duplicate
        self._store_works()
        self._tell(heard.address, receipt)
        if answered:
            self._do(heard.address, lambda: self._reply(heard, receipt.message, pending), pending)
        elif heard.wanted:
            self.stats.skipped += 1
            if self._queue.waiting(lane) == MOST_WAITING:
                told = "(that is a lot at once: I keep all of it, and answer what came first)"
                self._say(heard.address, Answer(told))

    async def _reply(self, heard: IncomingMessage, message: Message, pending: PendingReply) -> bool:
        """Answer a message that is stored; store the reply, then send it. False if it could not be sent."""
        answer, name = await self._replying.reply(
            self._user(heard.address), heard, message, lambda receipt: self._tell(heard.address, receipt)
        )
        return await self._sender.send(
            heard.address,
            answer,
            heard.id,
            once=name,
            skip=pending.sent,
            sent=lambda parts: self._pending.sent(pending, parts),
        )

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
            self._say(to, Answer("(What you say is stored durably again, and so is what you said in between.)"))

    def _not_stored(self, heard: IncomingMessage, error: AforesaidError) -> None:
        self.stats.failed(f"a message could not be stored: {error}")
        if isinstance(error, StoreError):
            _log.error("a message of %s in %s could not be stored: %s", heard.address.user, heard.address.space, error)
        if heard.wanted:
            if isinstance(error, StoreError):
                self._not_stored_for[heard.address] = None
            told = f"(I could not store that, so I will not remember it. {failure(error)})"
            self._say(heard.address, Answer(told), heard.id)

    async def _probe(self) -> None:
        """Find out whether a store that failed works again, so that those whom it failed are told without asking."""
        if self._not_stored_for and await self._pending.can_write():
            self._store_works()

    def _store_works(self) -> None:
        """Tell everybody whose message could not be stored that it can be now."""
        while self._not_stored_for:
            to, _ = self._not_stored_for.popitem()
            self._say(to, Answer("(I can store messages again. What I could not store is lost to me: send it again.)"))


def _whole(heard: IncomingMessage) -> str:
    """Return a message with what came along with it."""
    notes = "\n".join(f"[attached: {each}]" for each in heard.attachments)
    return "\n".join(part for part in (_clean(heard.text) or "", _clean(notes) or "") if part)


def _clean(text: str | None) -> str | None:
    """Put a sign in the place of what no store can hold, for the sender cannot see it."""
    return None if text is None else text.replace("\0", "\ufffd").encode(errors="replace").decode()
