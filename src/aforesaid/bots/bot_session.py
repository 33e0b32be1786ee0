"""The session of a bot: stores messages first, answers each thread in order, and reports failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import Final, Self
from weakref import WeakValueDictionary

from cachetools import LRUCache

from aforesaid.assistant import NOT_DURABLE, Answer, Assistant, Phrases, SentContext, Turn, failure, is_command, notices
from aforesaid.assistant.commands import Names, meant
from aforesaid.assistant.wishes import addressed, without_address
from aforesaid.background import BackgroundLoop
from aforesaid.bots.contract import (
    Address,
    BotStats,
    Deleted,
    Edited,
    Equipped,
    IncomingMessage,
    MessageTimes,
    Platform,
    Pressed,
    is_reachable,
)
from aforesaid.bots.reminding import Reminding
from aforesaid.bots.sending import PendingReplies, PendingReply, PerThreadQueue, Sender, split
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component
from aforesaid.errors import AforesaidError, NotFound, StoreError, WrongState
from aforesaid.facts.candidate import ADDRESS
from aforesaid.memory import Memory, UserMemory

_STORED_AT_ONCE: Final = 16_000
"""Longer replies are stored in parts. At four bytes per unit, a part stays below the maximum message size."""
_ANSWER: Final = "re:"
"""Prefix: the id of a reply is this and the id of the message that it answers."""


async def found(user: UserMemory, message: str, *, versions: bool = False) -> Message | None:
    """Return a message of the user's thread by its id, as `UserMemory.message` does; None if there is none."""
    try:
        return await user.message(message, within="thread", versions=versions)
    except NotFound:
        return None


def _part(name: str, number: int) -> str:
    return name if number == 1 else f"{name}:{number}"


_MOST_PEOPLE: Final = 10_000
"""Maximum number of people whose notices are remembered."""


class StorageNotices:
    def __init__(self, say: Callable[[Address, str], None]) -> None:
        """`say` sends the text of a key to an address."""
        self._say = say
        self._sent: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(_MOST_PEOPLE)
        """The notices of each person's last receipt."""
        self._failed: LRUCache[Address, bool] = LRUCache(_MOST_PEOPLE)
        """Addresses that got a notice about a failed write, and no notice yet that writing works again; True if a
        message was lost."""

    @property
    def failing(self) -> bool:
        """Whether somebody waits for the notice that writing works again."""
        return bool(self._failed)

    def stored(self, to: Address, receipt: Receipt) -> None:
        """Send the notices of a receipt that are new, and say when messages are stored durably again."""
        found = notices(receipt)
        key = (to.space, to.user)
        before = self._sent.get(key, frozenset())
        if found == before:
            return
        self._sent[key] = found
        for notice in sorted(found - before):
            self._say(to, notice)
        if NOT_DURABLE in before - found:
            self._say(to, "bot.durable_again")

    def knows_failure(self, to: Address) -> bool:
        """Return whether somebody was told that a message could not be stored, and not yet that storing works again."""
        return to in self._failed

    def store_failed(self, to: Address, *, lost: bool) -> None:
        """Note that a message of somebody could not be stored. It is `lost` if it is not delivered again."""
        self._failed[to] = lost or self._failed.get(to, False)

    def store_works(self) -> None:
        """Tell everybody whose message could not be stored that storing works again."""
        while self._failed:
            to, lost = self._failed.popitem()
            self._say(to, "bot.stores_again_lost" if lost else "bot.stores_again")


_log: Final = logging.getLogger("aforesaid.bots")

AT_ONCE: Final = 32
"""Maximum number of threads answered at the same time."""
MOST_WAITING: Final = 20
"""Maximum number of messages per thread that wait for an answer; more are stored but not answered."""
PATIENCE: Final = 10.0
"""Maximum seconds that a stopping bot waits for replies in progress."""
_CATCH_UP: Final = 60.0
"""Seconds between two checks for replies that are still pending."""
_BUTTON: Final = "a button"
"""What a pending reply has instead of the name of a command, for a pressed button."""
_STEP: Final = "that"
"""The same, for the answer to a question of the bot."""
_ATTACHED: Final = "[attached: "
_SHORT: Final = 20
"""Maximum characters of an answer to a two-step command."""


class BotSession:
    """Stores the messages of a platform and sends the answers. Use it with `async with`.

    When `hear` returns True, the message is stored or refused for good, and an adapter may acknowledge it; see there. A
    message that is delivered again, for example after a crash, is recognised by its id, so it is stored once and
    answered once. Messages that were not answered before the bot stopped are answered when it runs again.
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
        self._sender = Sender(platform, self.stats, self.phrases)
        self._times = MessageTimes()
        self._reminding = Reminding(
            memory, platform, self._sender, self.stats, self._times, clock, self.assistant.languages
        )
        self._queue = PerThreadQueue(at_once)
        self._patience = patience
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._notices = StorageNotices(lambda to, key: self._say(to, lambda say: Answer(say(key))))
        self._pending = PendingReplies(memory, platform.name)
        self._answering: set[str] = set()
        """Keys of pending replies that are being worked on."""
        self._catching_up: BackgroundLoop | None = None
        self._asked: dict[asyncio.Future[Answer], Address] = {}
        """Futures of commands whose caller waits for the answer, and who asked."""

    async def __aenter__(self) -> Self:
        self._reminding.start()
        catching_up = BackgroundLoop(f"{self._platform.name} catching up", self._catch_up, log=_log)
        self._catching_up = self.memory.loops.add(catching_up)
        self._catching_up.start(_CATCH_UP)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reminding.stop()
        if self._catching_up is not None:
            await self._catching_up.stop()
        left = await self._queue.finish(self._patience)
        for waiting, asker in list(self._asked.items()):
            say = await self.phrases(asker)
            if not waiting.done():
                waiting.set_result(Answer(say("bot.stopping")))
        if left:
            _log.warning("the bot stopped; %d stored messages will be answered when it runs again", left)

    async def hear(self, incoming: IncomingMessage, *, redelivers: bool = False) -> bool:
        """Store a message, and return whether it is done with. The answer follows if the message is for the bot.

        Returns False if the store fails, for example because the disk is full. `redelivers` says that the platform
        delivers a message again until the adapter acknowledges it. The adapter must then leave this message
        unacknowledged, and pass it again before later messages of the thread. On other platforms the message is lost.
        The author gets a notice that says which of the two it is.

        Returns True for everything else: the message is stored now or was before, is a command, is empty, or can never
        be stored, for example because it is too long. Delivering it again would change nothing.
        """
        self.stats.received += 1
        thread = incoming.address.thread_key
        # The text of a message with a line per attachment.
        notes = "\n".join(f"{_ATTACHED}{each}]" for each in incoming.attachments)
        text = "\n".join(part for part in (_clean(incoming.text) or "", _clean(notes) or "") if part)
        if not text.strip():
            return True
        async with self._turn(thread):
            user = self._user(incoming.address)
            said = without_address(text, incoming.called)
            words = without_address(incoming.text, incoming.called)
            self.assistant.languages.hear(user, "" if is_command(said) else words, incoming.language)
            try:
                if await self._route(user, incoming, said):
                    return True
                if await found(user, incoming.id, versions=True) is not None:
                    return True  # delivered again
                await self._store(user, incoming, text)
            except AforesaidError as error:
                # A command that was begun is not repeated: it may have been carried out in part.
                begun = self._pending.knows(PendingReply(incoming.address, incoming.id, time()))
                done = begun or not isinstance(error, StoreError) or error.consequence == "refuse"
                self._not_stored(incoming, error, lost=done or not redelivers)
                return done
            return True

    async def resume(self) -> None:
        """Answer stored messages that are not answered yet, because the bot was stopped or could not send."""
        try:
            await self._resume()
        except StoreError as error:
            _log.warning("pending replies cannot be read; they are sent when the store works again: %s", error)

    async def _resume(self) -> None:
        for pending in await self._pending.left():
            if pending.key in self._answering or not is_reachable(self._platform, pending.address):
                continue
            if pending.command is not None:
                self._say(pending.address, partial(_stopped, pending.command), pending.id, pending=pending)
                continue
            message = await found(self._user(pending.address), pending.id)
            if message is None:
                # It was taken back or erased since, or never stored; then the platform delivers it again.
                await self._pending.settle(pending)
                continue
            incoming = IncomingMessage(
                pending.address, pending.id, message.text, message.at, message.name, called=pending.called
            )
            self._do(pending.address, partial(self._reply, incoming, message, pending), pending)

    async def edited(self, edit: Edited) -> bool:
        """Store the edited text as a new version of the message. The earlier version stays in the log.

        Returns, like `hear`, whether it is done with: False if the store fails and may take it later.
        """
        text = _clean(edit.text)
        if not text or not text.strip():
            return True

        async def store(owner: UserMemory, before: Message) -> None:
            with suppress(WrongState):  # it was deleted
                # An edit leaves the attachments as they are.
                lines = [text, *(line for line in before.text.splitlines() if line.startswith(_ATTACHED))]
                receipt = await owner.edit(before, "\n".join(lines), name=_clean(edit.name))
                # A link preview edits a message without changing its text: then there is no new version.
                self.stats.edits += not receipt.duplicate

        return await self._change("an edit", edit, store)

    async def deleted(self, deletion: Deleted) -> bool:
        """Take back a message that was deleted on the platform: it is not shown, found or summarised any more.

        Returns, like `hear`, whether it is done with.
        """

        async def take_back(owner: UserMemory, before: Message) -> None:
            self.stats.deletions += not (await owner.take_back(before)).duplicate

        return await self._change("a deletion", deletion, take_back)

    async def _change(
        self, what: str, event: Edited | Deleted, change: Callable[[UserMemory, Message], Awaitable[None]]
    ) -> bool:
        """Change a stored message. It belongs to its author, whoever edited or deleted it."""
        async with self._turn(event.address.thread_key):
            try:
                # Commands are never stored.
                if (before := await found(self._user(event.address), event.id)) is not None:
                    await change(self._user(event.address._replace(user=before.user)), before)
            except AforesaidError as error:
                self.stats.failed(f"{what} could not be stored: {error}")
                _log.error("%s in %s could not be stored: %s", what, event.address.space, error)
                return not isinstance(error, StoreError) or error.consequence == "refuse"
            return True

    async def pressed(self, pressed: Pressed) -> None:
        """Handle a pressed button as if its word had been written, and send the answer."""
        pending = None
        if pressed.id is not None:
            pending = PendingReply(pressed.address, pressed.id, time(), command=_BUTTON)
            if self._pending.knows(pending):
                return
            await self._note_pending(pending)
        answer = await self.press(pressed)
        self._say(pressed.address, lambda _: answer, pending=pending)

    async def press(self, pressed: Pressed) -> Answer:
        """Handle a pressed button and return the answer, for platforms that reply to the press itself."""
        async with self._turn(pressed.address.thread_key):
            user = self._user(pressed.address)
            answer = await self.assistant.router.step(user, pressed.word, stay=True)
        return answer or Answer((await self.phrases(pressed.address))("bot.question_over"))

    async def command(self, address: Address, text: str, language: str | None = None) -> Answer:
        """Run a command when it is its turn and return the answer, for platforms that reply to the command itself.

        `language` is the tag of the language of the person's app.
        """
        self.stats.commands += 1
        self.assistant.languages.hear(self._user(address), "", language)
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        async def job() -> None:
            try:
                answer = await self.assistant.router.answer(self._user(address), text)
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
                raise
            if not done.done():
                done.set_result(answer or Answer((await self.phrases(address))("bot.no_answer")))

        self._asked[done] = address
        try:
            self._queue.add(address.thread_key, job)
            return await done
        finally:
            del self._asked[done]

    async def remind(self) -> int:
        """Deliver due reminders now; return how many. A background loop also does this."""
        return await self._reminding.deliver()

    async def phrases(self, to: Address) -> Phrases:
        """Return the texts in the language of a person in a chat."""
        return await self.assistant.languages.of(self._user(to))

    async def idle(self) -> None:
        await self._queue.idle()

    def health(self) -> Component:
        parts = self._platform.parts() if isinstance(self._platform, Equipped) else ()
        return self.stats.component(self._platform.name, self._queue.waiting(), parts)

    def _user(self, address: Address) -> UserMemory:
        return self.memory.user(address.user, space=address.space, thread=address.thread)

    def _turn(self, thread: tuple[str, str]) -> asyncio.Lock:
        """Return the lock of a thread: its messages are stored in the order of arrival."""
        lock = self._turns.get(thread)
        if lock is None:
            lock = self._turns[thread] = asyncio.Lock()
        return lock

    async def _route(self, user: UserMemory, incoming: IncomingMessage, text: str) -> bool:
        """Handle commands and the answers to two-step commands; return False for everything else."""
        router = self.assistant.router
        if incoming.wanted and is_command(text):
            pending = PendingReply(incoming.address, incoming.id, time(), command=text.split(maxsplit=1)[0])
            if self._pending.knows(pending):
                return True
            self.stats.commands += 1
            await self._note_pending(pending)
            if router.asks_back(text):
                # Without queueing: the next message may be the answer that the command asks for.
                asked = await router.answer(user, text) or Answer("")
                self._say(incoming.address, lambda _: asked, incoming.id, pending=pending)
            else:

                async def run() -> bool:
                    async with self._platform.typing(incoming.address):
                        answer = await router.answer(user, text)
                    return answer is None or await self._sender.send(incoming.address, answer, incoming.id)

                await router.leave(user)
                self._do(incoming.address, run, pending)
            return True
        if not incoming.wanted and len(text) > _SHORT:
            return False
        pending = PendingReply(incoming.address, incoming.id, time(), command=_STEP)
        if self._pending.knows(pending):
            return True
        if not await router.is_open(user):
            return False
        await self._note_pending(pending)
        answer = await router.step(user, text)
        if answer is None:
            await self._settle(pending)
            return False
        self._say(incoming.address, lambda _: answer, incoming.id, pending=pending)
        return True

    def _say(
        self,
        to: Address,
        answer: Callable[[Phrases], Answer],
        answers: str | None = None,
        *,
        pending: PendingReply | None = None,
    ) -> None:
        async def send() -> bool:
            return await self._sender.send(to, answer(await self.phrases(to)), answers)

        self._do(to, send, pending)

    async def _note_pending(self, pending: PendingReply) -> None:
        self._answering.add(pending.key)
        await self._pending.note(pending)

    async def _settle(self, pending: PendingReply) -> None:
        await self._pending.settle(pending)
        self._answering.discard(pending.key)

    async def _catch_up(self) -> float:
        """Send replies that could not be sent before. Return the seconds until the next try."""
        if self.stats.connected:
            await self._resume()
            if self._notices.failing and await self._pending.can_write():
                self._notices.store_works()
        return _CATCH_UP

    def _do(self, to: Address, answer: Callable[[], Awaitable[bool]], pending: PendingReply | None) -> None:
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

    async def _store(self, user: UserMemory, incoming: IncomingMessage, text: str) -> None:
        thread = incoming.address.thread_key
        wanted = incoming.wanted and not await self._calls_another(user, incoming)
        answered = wanted and self._queue.waiting(thread) < MOST_WAITING
        pending = PendingReply(incoming.address, incoming.id, time(), called=incoming.called)
        at = self._times.received(thread, incoming.at)
        # What calls the bot is kept beside the message, so that it is not read as a part of the statement.
        said = without_address(text, incoming.called)
        address = text[: -len(said)] if len(said) < len(text) and text.endswith(said) else ""
        adding = user.add(
            "user",
            text,
            id=incoming.id,
            at=at,
            name=_clean(incoming.name),
            reply_to=incoming.reply_to,
            metadata={ADDRESS: address} if address else None,
        )
        if answered:
            # The note is written first: after a kill a noted message is either stored, or delivered again.
            try:
                _, receipt = await asyncio.gather(self._note_pending(pending), adding)
            except AforesaidError:
                await self._settle(pending)
                raise
        else:
            receipt = await adding
        self.stats.stored += not receipt.duplicate
        self._notices.store_works()
        self._notices.stored(incoming.address, receipt)
        if answered:
            self._do(incoming.address, lambda: self._reply(incoming, receipt.message, pending), pending)
        elif wanted:
            self.stats.skipped += 1
            if self._queue.waiting(thread) == MOST_WAITING:
                self._say(incoming.address, lambda say: Answer(say("bot.many")))

    async def _calls_another(self, user: UserMemory, incoming: IncomingMessage) -> bool:
        """Return whether a message in a group begins with the name of somebody who is there, and names no bot."""
        text, word = incoming.text, addressed(incoming.text)
        if word is None or incoming.address.thread is None or without_address(text, incoming.called) != text.strip():
            return False
        if any(f"@{name.lstrip('@')}".casefold() in text.casefold() for name in incoming.called):
            return False
        turn = Turn(user, text, None, incoming.name, incoming.people)
        return bool(meant(word, turn, Names.around(turn, await self.memory.names(incoming.address.space))))

    async def _reply(self, incoming: IncomingMessage, message: Message, pending: PendingReply) -> bool:
        """Answer a stored message: store the reply, then send it. Return False if it could not be sent."""
        answer, name = await self._stored_answer(self._user(incoming.address), incoming, message)
        return await self._sender.send(
            incoming.address,
            answer,
            incoming.id,
            once=name,
            skip=pending.sent,
            sent=lambda parts: self._pending.sent(pending, parts),
        )

    async def _stored_answer(self, user: UserMemory, incoming: IncomingMessage, message: Message) -> tuple[Answer, str]:
        """Return the stored answer to a message and its id; produce and store it if there is none yet.

        The same text has the same id whenever it is sent. If no answer could be produced, the text says why.
        """
        name = f"{_ANSWER}{incoming.id}"
        earlier: list[str] = []
        while (stored := await found(user, _part(name, len(earlier) + 1), versions=True)) is not None:
            earlier.append(stored.text)
        if earlier:
            return Answer("\n".join(earlier)), name
        quoted = incoming.quoted
        if not quoted and message.reply_to is not None and (replied := await found(user, message.reply_to)) is not None:
            quoted = replied.text
        turn = Turn(user, message.text, message, incoming.name, incoming.people, incoming.called, quoted)
        sent, first, is_said = SentContext(), None, True
        say = await self.assistant.languages.of(user, message.text)
        try:
            try:
                async with self._platform.typing(incoming.address):
                    requested = await self.assistant.requested(turn)
                    if requested is not None:
                        answer = requested
                    else:
                        async with aclosing(self.assistant.answer(turn, sent)) as pieces:
                            answer = Answer("".join([piece async for piece in pieces]))
                        is_said = self.assistant.speaks
            except AforesaidError as error:
                # Other people may read the chat, so the details go to the log only.
                _log.error("a message of %s could not be answered: %s", incoming.address.user, error)
                self.stats.unanswered += 1
                return Answer(say("model.failed", why=failure(error, say))), f"{name}:failed"
            if not answer.text.strip():
                self.stats.unanswered += 1
                return Answer(say("model.empty")), f"{name}:failed"
            self.stats.answered += 1
            for number, part in enumerate(split(answer.text, _STORED_AT_ONCE) if is_said else (), 1):
                at = self._times.sent(incoming.address.thread_key, message.at)
                receipt = await user.add("assistant", part, id=_part(name, number), at=at)
                first = first or receipt.message
                self._notices.stored(incoming.address, receipt)
        except AforesaidError as error:
            _log.error("an answer to %s could not be stored: %s", incoming.address.user, error)
            self.stats.failed(f"an answer could not be stored: {error}")
            told = f"{answer.text}\n\n{say('bot.answer_not_stored', why=failure(error, say))}"
            return Answer(told, answer.buttons, answer.file, answer.private), name
        finally:  # also without an answer: the model was sent it all the same
            self.assistant.keep_receipt(turn, sent, first)
        return answer, name

    def _not_stored(self, incoming: IncomingMessage, error: AforesaidError, *, lost: bool) -> None:
        self.stats.failed(f"a message could not be stored: {error}")
        if isinstance(error, StoreError):
            _log.error(
                "a message of %s in %s could not be stored: %s", incoming.address.user, incoming.address.space, error
            )
        if not incoming.wanted:
            return
        # A platform delivers the message again every few seconds. The author gets one notice, not one for each attempt.
        known = not lost and self._notices.knows_failure(incoming.address)
        if isinstance(error, StoreError):
            self._notices.store_failed(incoming.address, lost=lost)
        if not known:
            key = "bot.not_stored_lost" if lost else "bot.not_stored_retried"
            self._say(incoming.address, lambda say: Answer(say(key, why=failure(error, say))), incoming.id)


def _stopped(command: str, say: Phrases) -> Answer:
    """Say that the bot was stopped before it had answered a command, a button or the answer to a question."""
    keys = {_BUTTON: "bot.stopped_button", _STEP: "bot.stopped_answer"}
    return Answer(say(keys.get(command, "bot.stopped"), command=command))


def _clean(text: str | None) -> str | None:
    """Replace NUL and lone surrogates, which no store can hold, by U+FFFD or a question mark."""
    return None if text is None else text.replace("\0", "\ufffd").encode(errors="replace").decode()
