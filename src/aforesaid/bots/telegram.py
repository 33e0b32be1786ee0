"""Telegram: a bot that polls or is called by a webhook."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from aiogram import Bot, exceptions
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.exceptions import TelegramMigrateToChat, TelegramNotFound
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ReplyParameters,
    Update,
    User,
)
from aiogram.utils.token import TokenValidationError
from aiohttp import web
from pydantic import ValidationError

from aforesaid.assistant import CALLED, Button, File, Phrases
from aforesaid.assistant.phrases import ENGLISH, offered
from aforesaid.background import beside
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, Edited, IncomingMessage, Pressed
from aforesaid.bots.sending import units
from aforesaid.domain.checks import json_object
from aforesaid.errors import InvalidInput, PlatformError, PlatformRefused, PlatformUnavailable, StoreError, quoted
from aforesaid.extras import re
from aforesaid.memory import Memory
from aforesaid.models.client import hide
from aforesaid.settings import TelegramSettings
from aforesaid.store.people import Marks, PutMark

SPACE: Final = "telegram"
_PRIVATE: Final = "private"
_COMMAND: Final = re.compile(r"/\w+(?:@(\w+))?")
_KILOBYTE: Final = 1000


class Moves:
    """Groups that became supergroups and got a new chat id. Their memory stays under the first id."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._now: dict[int, int] = {}

    def add(self, old: int, new: int) -> int:
        """Record that a group has a new chat id. Return its first id."""
        first = self.first(old)
        self._first[new] = first
        self._now[first] = new
        return first

    def first(self, chat: int) -> int:
        """Return the first id of a chat, under which its memory is stored."""
        return self._first.get(chat, chat)

    def now(self, chat: int) -> int:
        return self._now.get(chat, chat)


def moved(message: Message) -> tuple[int, int] | None:
    """Return the old and the new chat id if a message announces that a group became a supergroup."""
    if message.migrate_to_chat_id is not None:
        return message.chat.id, message.migrate_to_chat_id
    return None if message.migrate_from_chat_id is None else (message.migrate_from_chat_id, message.chat.id)


def address_of(message: Message, user: User, moves: Moves) -> Address:
    """Return the address of a message: a direct chat, or a group, which is a space of its own."""
    if message.chat.type == _PRIVATE:
        return Address(SPACE, str(user.id))
    chat = moves.first(message.chat.id)
    thread = f"{chat}/{message.message_thread_id}" if message.is_topic_message else str(chat)
    return Address(f"{SPACE}:{chat}", str(user.id), thread)


def chat_of(address: Address, moves: Moves) -> tuple[int, int | None]:
    if address.thread is None:
        return int(address.user), None
    chat, _, topic = address.thread.partition("/")
    return moves.now(int(chat)), int(topic) if topic else None


def id_of(message: Message, moves: Moves) -> str:
    """Return the id of a message. A supergroup numbers its messages from 1 again, so its chat id is added."""
    chat = message.chat.id
    return str(message.message_id) if moves.first(chat) == chat else f"{message.message_id}@{chat}"


def number_in(message_id: str | None, chat: int) -> int | None:
    """Return the message number of an id; None if it has none, or belongs to the chat's earlier id."""
    number, _, where = (message_id or "").partition("@")
    return int(number) if number.isdecimal() and where in {"", str(chat)} else None


def read_message(message: Message, bot: User, called: tuple[str, ...], moves: Moves) -> IncomingMessage | None:
    """Return a message; None for service messages, such as that somebody joined."""
    user = message.from_user
    text = message.text or message.caption or ""
    attachments = tuple(_attachments(message))
    if user is None or user.is_bot or not (text or attachments):
        return None
    quoted = message.reply_to_message
    return IncomingMessage(
        address_of(message, user, moves),
        id_of(message, moves),
        text,
        message.date.astimezone(UTC),
        user.full_name,
        wanted=_wanted(message, text, bot, called),
        people=_people(message, bot),
        called=called,
        quoted=None if quoted is None else quoted.text or quoted.caption,
        reply_to=None if quoted is None else id_of(quoted, moves),
        attachments=attachments,
        language=user.language_code,
    )


def read_edit(message: Message, moves: Moves) -> Edited | None:
    """Return an edit of a message; None if it has no text or author."""
    user = message.from_user
    text = message.text or message.caption
    if user is None or not text:
        return None
    changed = datetime.fromtimestamp(message.edit_date or message.date.timestamp(), UTC)
    return Edited(address_of(message, user, moves), id_of(message, moves), text, changed, user.full_name)


def _wanted(message: Message, text: str, bot: User, called: tuple[str, ...]) -> bool:
    """Return whether a message is for the bot: in a group it must mention, quote or name the bot."""
    command = _COMMAND.match(text)
    if command is not None and command[1]:
        # In a group with several bots, /command@bot names the addressed one.
        return command[1].casefold() == (bot.username or "").casefold()
    if message.chat.type == _PRIVATE or command is not None:
        return True
    quoted = message.reply_to_message
    if quoted is not None and quoted.from_user is not None and quoted.from_user.id == bot.id:
        return True
    if f"@{bot.username}".casefold() in text.casefold():
        return True
    first = re.match(r"\W*(\w+)", text)
    return first is not None and first[1].casefold() in {name.casefold() for name in called}


def _people(message: Message, bot: User) -> dict[str, tuple[str, ...]]:
    """Return the names of the author, the quoted author, and mentioned users without a username, by id."""
    quoted = message.reply_to_message
    found = [message.from_user, None if quoted is None else quoted.from_user]
    found += [entity.user for entity in (*(message.entities or ()), *(message.caption_entities or ()))]
    return {
        str(user.id): tuple(name for name in (user.full_name, user.username, user.first_name) if name)
        for user in found
        if user is not None and user.id != bot.id
    }


def _attachments(message: Message) -> Iterator[str]:
    if message.photo:
        yield "photo"
    for kind in ("document", "audio", "video", "animation"):
        file = getattr(message, kind)
        # An animation comes as a document, too.
        if file is not None and not (kind == "document" and message.animation):
            size = f" ({max(1, round(file.file_size / _KILOBYTE)):,} kB)" if file.file_size else ""
            yield f"{file.file_name or kind}{size}"
    if message.voice:
        yield f"voice message, {message.voice.duration} s"
    if message.video_note:
        yield f"video message, {message.video_note.duration} s"
    if message.sticker:
        yield f"sticker {message.sticker.emoji or ''}".strip()
    if message.location:
        yield f"location {message.location.latitude:.5f}, {message.location.longitude:.5f}"
    if message.contact:
        yield f"contact {message.contact.first_name}"
    if message.poll:
        yield f"poll: {message.poll.question}"


_MARKED: Final = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<block>.*?)\n?^(?P=fence)$|`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^\s*](?:[^*\n]*[^\s*])?)\*\*",
    re.MULTILINE | re.DOTALL,
)


def formatted(text: str) -> tuple[str, list[MessageEntity]]:
    plain: list[str] = []
    entities: list[MessageEntity] = []
    length = 0
    end = 0
    for found in _MARKED.finditer(text):
        kind = next(name for name in ("block", "code", "bold") if found[name] is not None)
        content = found[kind]
        if not content.strip():
            continue
        before = text[end : found.start()]
        plain += [before, content]
        length += units(before)
        language = (found["language"] or "").strip() or None if kind == "block" else None
        entities.append(
            MessageEntity(
                type="pre" if kind == "block" else kind, offset=length, length=units(content), language=language
            )
        )
        length += units(content)
        end = found.end()
    plain.append(text[end:])
    return "".join(plain), entities


REFUSED: Final = (
    "the token was refused by Telegram; look it up with /mybots at @BotFather and put it into bots.telegram.token "
    "(or AFORESAID_BOTS__TELEGRAM__TOKEN)"
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of aiogram as PlatformUnavailable if a retry may help, else as PlatformRefused."""
    try:
        yield
    except exceptions.TelegramRetryAfter as error:
        raise PlatformUnavailable("Telegram limits the rate of requests", retry_after=error.retry_after) from None
    except exceptions.TelegramUnauthorizedError:
        raise PlatformRefused(REFUSED) from None
    except exceptions.TelegramConflictError as error:
        raise PlatformUnavailable(
            f"another program uses the same token at the same time, or a webhook is set: {error.message}"
        ) from None
    except (exceptions.TelegramServerError, exceptions.ClientDecodeError) as error:
        raise PlatformUnavailable(f"Telegram has a problem: {error.message}") from None
    except exceptions.TelegramNetworkError as error:
        raise PlatformUnavailable(f"Telegram cannot be reached: {error.message}") from None
    except exceptions.TelegramAPIError as error:
        # An unknown chat, a person who blocked the bot, or a missing permission.
        raise PlatformRefused(f"Telegram refused: {error.message}") from None
    except OSError as error:
        # Timeouts are OSErrors without a text, so the type is named.
        raise PlatformUnavailable(f"Telegram cannot be reached: {type(error).__name__} {error}") from None


_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
_MOST_BYTES: Final = 1024 * 1024

Take = Callable[[dict[str, Any]], Awaitable[bool]]


@asynccontextmanager
async def webhook(listen: str, path: str, secret: str, take: Take) -> AsyncIterator[int]:
    """Listen until the end of the block and pass every update to `take`; yield the port.

    The update is acknowledged when `take` returns True. If it returns False or raises, Telegram delivers it again.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(f"bots.telegram.listen must be an address such as 127.0.0.1:8443, not {quoted(listen)}")

    async def handle(request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get(_HEADER, "").encode(), secret.encode()):
            _log.warning("the webhook was called with a wrong secret, from %s", request.remote)
            return web.Response(status=403)
        if (update := json_object(await request.read())) is None:
            return web.Response(status=400)
        return web.Response(status=200 if await take(update) else 503)

    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post(path, handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host.strip("[]"), int(port))
        try:
            await site.start()
        except OSError as error:
            raise InvalidInput(f"bots.telegram.listen: cannot listen on {listen}: {error.strerror}") from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


_log: Final = logging.getLogger("aforesaid.bots")

POLL_SECONDS: Final = 30
RETRY_SECONDS: Final = 5.0
"""Seconds until an update is asked for again that could not be stored."""
_UPDATES: Final = ["message", "edited_message", "callback_query"]
_TIMEOUT: Final = 30.0
_TYPING_SECONDS: Final = 4.5
"""Seconds between two typing indicators. Telegram shows one for five seconds."""
_MOVED: Final = "telegram moved "
"""Prefix of the marks that map the id of a supergroup to the first id of its group."""
_BETWEEN: Final = 1 / 25
"""Seconds between two sent messages. Telegram allows about thirty per second in all chats together."""


class Telegram:
    name = SPACE
    longest = 4096

    def __init__(
        self,
        settings: TelegramSettings,
        *,
        called: tuple[str, ...] = (),
        poll_seconds: int = POLL_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        if settings.token is None:
            raise InvalidInput(
                "no Telegram token is configured: get one from @BotFather, and set bots.telegram.token or "
                "AFORESAID_BOTS__TELEGRAM__TOKEN"
            )
        hide(settings.token, settings.webhook_secret)
        api = PRODUCTION if settings.api is None else TelegramAPIServer.from_base(settings.api)
        try:
            self._bot = Bot(settings.token, session=AiohttpSession(api=api, timeout=_TIMEOUT))
        except TokenValidationError:
            raise PlatformRefused(f"{REFUSED}: it looks like 123456789:AA…") from None
        self._settings = settings
        self._called = (*called, *CALLED)
        self._poll_seconds = poll_seconds
        self._retry_seconds = retry_seconds
        self._me: User | None = None
        self._in_order = asyncio.Lock()
        self._send_turn = asyncio.Lock()
        self._moves = Moves()
        self._memory: Memory | None = None
        self.port: int | None = None
        """The port on which the webhook listens."""

    async def check(self) -> str:
        with translated_errors():
            try:
                self._me = await self._bot.get_me()
            except TelegramNotFound:
                raise PlatformRefused(REFUSED) from None
        self._called = tuple(dict.fromkeys((*self._called, self._me.first_name, self._me.username or CALLED[0])))
        return f"@{self._me.username}"

    async def listen(self, session: BotSession) -> None:
        self._memory = session.memory
        await self._remember_moves(session.memory)
        with translated_errors():
            for code in offered():
                listed = session.assistant.router.commands(Phrases.of(code)).items()
                menu = [BotCommand(command=name, description=what) for name, what in listed]
                # The menu without a language is for everybody whose app has none of these.
                await self._bot.set_my_commands(menu, language_code=None if code == ENGLISH else code)
        if self._settings.webhook is None:
            await self._poll(session)
        else:
            await self._be_called(self._settings.webhook, session)

    async def send(
        self,
        to: Address,
        text: str,
        buttons: Sequence[Button] = (),
        *,
        answers: str | None = None,
        once: str | None = None,  # noqa: ARG002 - Telegram does not detect duplicates
    ) -> None:
        chat, topic = chat_of(to, self._moves)
        plain, entities = formatted(text)
        rows = [[InlineKeyboardButton(text=button.label, callback_data=button.word)] for button in buttons]
        # A direct chat needs no quote of the question.
        quoted = None if to.thread is None else number_in(answers, chat)
        async with self._send_turn:
            await asyncio.sleep(_BETWEEN)
        sending = {
            "text": plain,
            "entities": entities,
            "message_thread_id": topic,
            "reply_markup": InlineKeyboardMarkup(inline_keyboard=rows) if rows else None,
            "reply_parameters": (
                None if quoted is None else ReplyParameters(message_id=quoted, allow_sending_without_reply=True)
            ),
        }
        with translated_errors():
            try:
                await self._bot.send_message(chat, **sending)  # type: ignore[arg-type]
            except TelegramMigrateToChat as error:
                # The group became a supergroup: it has another id, and so have its messages.
                await self._move(chat, error.migrate_to_chat_id)
                sending["reply_parameters"] = None
                await self._bot.send_message(error.migrate_to_chat_id, **sending)  # type: ignore[arg-type]

    async def send_file(self, to: Address, file: File) -> None:
        chat, topic = chat_of(to, self._moves)
        with translated_errors():
            await self._bot.send_document(chat, BufferedInputFile(file.content, file.name), message_thread_id=topic)

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:
        return beside(self._type(to), "aforesaid-typing")

    async def close(self) -> None:
        await self._bot.session.close()

    async def _poll(self, session: BotSession) -> None:
        """Poll for updates. The next poll confirms an update, after it was stored, so none is lost.

        While the store fails, the same update is asked for again, and the later ones wait behind it: Telegram confirms
        updates in order only, and keeps them for a day.
        """
        with translated_errors():
            await self._bot.delete_webhook(drop_pending_updates=False)
        offset: int | None = None
        while True:
            with translated_errors():
                updates = await self._bot.get_updates(
                    offset=offset,
                    timeout=self._poll_seconds,
                    allowed_updates=_UPDATES,
                    request_timeout=self._poll_seconds + int(_TIMEOUT),
                )
            session.stats.mark_ok()
            for update in updates:
                if not await self._take(update, session):
                    await asyncio.sleep(self._retry_seconds)
                    break
                offset = update.update_id + 1

    async def _be_called(self, address: str, session: BotSession) -> None:
        secret = self._settings.webhook_secret or secrets.token_urlsafe(32)

        async def take(raw: dict[str, Any]) -> bool:
            try:
                update = Update.model_validate(raw, context={"bot": self._bot})
            except ValidationError as error:
                # Acknowledged all the same: Telegram would deliver it again forever.
                _log.error("an update of Telegram cannot be read: %s", error)
                return True
            async with self._in_order:
                done = await self._take(update, session)
            if done:
                session.stats.mark_ok()
            return done

        async with webhook(self._settings.listen, urlsplit(address).path or "/", secret, take) as self.port:
            with translated_errors():
                await self._bot.set_webhook(address, secret_token=secret, allowed_updates=_UPDATES)
            await asyncio.Event().wait()

    async def _take(self, update: Update, session: BotSession) -> bool:
        """Handle one update. Return False if it cannot be stored now, and Telegram is to deliver it again.

        One that fails otherwise is logged and skipped: Telegram must not deliver it again forever.
        """
        try:
            if update.message is not None and self._me is not None:
                if (numbers := moved(update.message)) is not None:
                    await self._move(*numbers)
                incoming = read_message(update.message, self._me, self._called, self._moves)
                return incoming is None or await session.hear(incoming, redelivers=True)
            if update.edited_message is not None:
                edit = read_edit(update.edited_message, self._moves)
                return edit is None or await session.edited(edit)
            if update.callback_query is not None:
                await self._take_press(update.callback_query, session)
        except Exception as error:
            _log.exception("the update %d of Telegram could not be handled", update.update_id)
            session.stats.failed(f"the update {update.update_id} could not be handled")
            return not isinstance(error, StoreError) or error.consequence == "refuse"
        return True

    async def _take_press(self, query: CallbackQuery, session: BotSession) -> None:
        try:
            with translated_errors():
                await self._bot.answer_callback_query(query.id)
                if isinstance(query.message, Message):
                    # Remove the buttons: a question is answered once.
                    await self._bot.edit_message_reply_markup(
                        chat_id=query.message.chat.id, message_id=query.message.message_id, reply_markup=None
                    )
        except PlatformError as error:
            _log.info("the buttons of a message could not be removed: %s", error)
        if isinstance(query.message, Message) and query.data is not None:
            await session.pressed(
                Pressed(address_of(query.message, query.from_user, self._moves), query.data, query.id)
            )

    async def _move(self, old: int, new: int) -> None:
        if self._moves.now(self._moves.first(old)) == new:
            return
        first = self._moves.add(old, new)
        _log.info("the group %d became the supergroup %d; its memory is the same", old, new)
        if self._memory is not None:
            try:
                await self._memory.store.apply([PutMark(f"{_MOVED}{new}", str(first))])
            except StoreError as error:
                _log.warning(
                    "the new id of group %d (%d) could not be stored: %s",
                    old,
                    new,
                    error,
                )

    async def _remember_moves(self, memory: Memory) -> None:
        try:
            marks = await memory.store.read(Marks())
        except StoreError as error:
            _log.warning("the ids of groups that became supergroups cannot be read: %s", error)
            return
        for name, first in marks.items():
            if name.startswith(_MOVED):
                self._moves.add(int(first), int(name.removeprefix(_MOVED)))

    async def _type(self, to: Address) -> None:
        chat, topic = chat_of(to, self._moves)
        while True:
            try:
                with translated_errors():
                    await self._bot.send_chat_action(chat, "typing", message_thread_id=topic)
            except PlatformError as error:
                _log.debug("the typing indicator could not be shown: %s", error)
            await asyncio.sleep(_TYPING_SECONDS)
