"""The adapter between Telegram and a desk."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from aiogram import Bot
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
    ReplyParameters,
    Update,
    User,
)
from aiogram.utils.token import TokenValidationError
from pydantic import ValidationError

from aforesaid.assistant import CALLED, Button, File
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, Pressed
from aforesaid.bots.telegram.formatting import formatted
from aforesaid.bots.telegram.reading import (
    SPACE,
    Moves,
    address_of,
    chat_of,
    moved,
    number_in,
    read_edit,
    read_message,
)
from aforesaid.bots.telegram.webhook import webhook
from aforesaid.bots.telegram.wording import REFUSED, in_words
from aforesaid.domain.retention import PutMark
from aforesaid.errors import InvalidInput, PlatformError, PlatformRefused, StoreError
from aforesaid.models.redact import hide
from aforesaid.settings import TelegramSettings
from aforesaid.tasks import beside

if TYPE_CHECKING:
    from aforesaid.memory import Memory

_log: Final = logging.getLogger("aforesaid.bots")

POLL_SECONDS: Final = 30
_UPDATES: Final = ["message", "edited_message", "callback_query"]
_TIMEOUT: Final = 30.0
_TYPING_SECONDS: Final = 4.5
"""Telegram shows that somebody types for five seconds."""
_MOVED: Final = "telegram moved "
"""Before the number of a supergroup: the name of the mark with the number that its group had first."""
_BETWEEN: Final = 1 / 25
"""Telegram takes about thirty messages in a second, of all chats together."""


class Telegram:
    """Telegram, as a bot uses it."""

    name = SPACE
    longest = 4096

    def __init__(
        self, settings: TelegramSettings, *, called: tuple[str, ...] = (), poll_seconds: int = POLL_SECONDS
    ) -> None:
        if settings.token is None:
            raise InvalidInput(
                "there is no token for Telegram; @BotFather hands one out: set bots.telegram.token or "
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
        self._me: User | None = None
        self._in_order = asyncio.Lock()
        self._pace = asyncio.Lock()
        self._moves = Moves()
        self._memory: Memory | None = None
        self.port: int | None = None
        """Where the webhook listens."""

    async def check(self) -> str:
        """Log in."""
        with in_words():
            try:
                self._me = await self._bot.get_me()
            except TelegramNotFound:
                raise PlatformRefused(REFUSED) from None
        self._called = tuple(dict.fromkeys((*self._called, self._me.first_name, self._me.username or CALLED[0])))
        return f"@{self._me.username}"

    async def listen(self, desk: BotSession) -> None:
        """Take in updates, by asking for them or by being called."""
        self._memory = desk.memory
        await self._remember_moves(desk.memory)
        with in_words():
            menu = [
                BotCommand(command=name, description=what) for name, what in desk.assistant.router.commands().items()
            ]
            await self._bot.set_my_commands(menu)
        if self._settings.webhook is None:
            await self._poll(desk)
        else:
            await self._be_called(self._settings.webhook, desk)

    async def send(
        self,
        to: Address,
        text: str,
        buttons: Sequence[Button] = (),
        *,
        answers: str | None = None,
        once: str | None = None,  # noqa: ARG002 - Telegram knows nothing again that it was sent before
    ) -> None:
        """Send a text, with a keyboard below it."""
        chat, topic = chat_of(to, self._moves)
        plain, entities = formatted(text)
        rows = [[InlineKeyboardButton(text=button.label, callback_data=button.word)] for button in buttons]
        # Between two people it is clear what is answered.
        quoted = None if to.thread is None else number_in(answers, chat)
        await self._slowly()
        sending = {
            "text": plain,
            "entities": entities,
            "message_thread_id": topic,
            "reply_markup": InlineKeyboardMarkup(inline_keyboard=rows) if rows else None,
            "reply_parameters": (
                None if quoted is None else ReplyParameters(message_id=quoted, allow_sending_without_reply=True)
            ),
        }
        with in_words():
            try:
                await self._bot.send_message(chat, **sending)  # type: ignore[arg-type]
            except TelegramMigrateToChat as error:
                # The group has become a supergroup, with another number, and messages with other numbers.
                await self._move(chat, error.migrate_to_chat_id)
                sending["reply_parameters"] = None
                await self._bot.send_message(error.migrate_to_chat_id, **sending)  # type: ignore[arg-type]

    async def send_file(self, to: Address, file: File) -> None:
        """Send a file."""
        chat, topic = chat_of(to, self._moves)
        with in_words():
            await self._bot.send_document(chat, BufferedInputFile(file.content, file.name), message_thread_id=topic)

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:
        """Show that the bot is writing."""
        return beside(self._type(to), "aforesaid-typing")

    async def close(self) -> None:
        """Hang up."""
        await self._bot.session.close()

    async def _poll(self, desk: BotSession) -> None:
        """Ask for updates. One is confirmed by asking for the next, when it is stored: what is lost comes again."""
        with in_words():
            await self._bot.delete_webhook(drop_pending_updates=False)
        offset: int | None = None
        while True:
            with in_words():
                updates = await self._bot.get_updates(
                    offset=offset,
                    timeout=self._poll_seconds,
                    allowed_updates=_UPDATES,
                    request_timeout=self._poll_seconds + int(_TIMEOUT),
                )
            desk.stats.mark_ok()
            for update in updates:
                await self._take(update, desk)
                offset = update.update_id + 1

    async def _be_called(self, address: str, desk: BotSession) -> None:
        secret = self._settings.webhook_secret or secrets.token_urlsafe(32)

        async def take(raw: dict[str, Any]) -> None:
            try:
                update = Update.model_validate(raw, context={"bot": self._bot})
            except ValidationError as error:
                # It would come again and again.
                _log.error("an update of Telegram cannot be read: %s", error)
                return
            async with self._in_order:
                await self._take(update, desk)
            desk.stats.mark_ok()

        async with webhook(self._settings.listen, urlsplit(address).path or "/", secret, take) as self.port:
            with in_words():
                await self._bot.set_webhook(address, secret_token=secret, allowed_updates=_UPDATES)
            await asyncio.Event().wait()

    async def _take(self, update: Update, desk: BotSession) -> None:
        """Handle one update. One that fails is logged and skipped: Telegram must not deliver it again forever."""
        try:
            if update.message is not None and self._me is not None:
                if (numbers := moved(update.message)) is not None:
                    await self._move(*numbers)
                heard = read_message(update.message, self._me, self._called, self._moves)
                if heard is not None:
                    await desk.hear(heard)
            elif update.edited_message is not None:
                edit = read_edit(update.edited_message, self._moves)
                if edit is not None:
                    await desk.edited(edit)
            elif update.callback_query is not None:
                await self._take_press(update.callback_query, desk)
        except Exception:
            _log.exception("the update %d of Telegram could not be handled", update.update_id)
            desk.stats.failed(f"the update {update.update_id} could not be handled")

    async def _take_press(self, query: CallbackQuery, desk: BotSession) -> None:
        try:
            with in_words():
                await self._bot.answer_callback_query(query.id)
                if isinstance(query.message, Message):
                    # A question is answered once; its buttons go.
                    await self._bot.edit_message_reply_markup(
                        chat_id=query.message.chat.id, message_id=query.message.message_id, reply_markup=None
                    )
        except PlatformError as error:
            _log.info("the buttons of an old message stay where they are: %s", error)
        if isinstance(query.message, Message) and query.data is not None:
            await desk.pressed(Pressed(address_of(query.message, query.from_user, self._moves), query.data, query.id))

    async def _move(self, old: int, new: int) -> None:
        """Keep in mind, also for the next run, that a group has another number."""
        if self._moves.now(self._moves.first(old)) == new:
            return
        first = self._moves.add(old, new)
        _log.info("the group %d is the supergroup %d now; its memory goes on", old, new)
        if self._memory is not None:
            try:
                await self._memory.store.apply([PutMark(f"{_MOVED}{new}", str(first))])
            except StoreError as error:
                _log.warning("that the group %d is %d now is forgotten with the next restart: %s", old, new, error)

    async def _remember_moves(self, memory: Memory) -> None:
        try:
            marks = await memory.store.marks()
        except StoreError as error:
            _log.warning("which groups became supergroups cannot be read: %s", error)
            return
        for name, first in marks.items():
            if name.startswith(_MOVED):
                self._moves.add(int(first), int(name.removeprefix(_MOVED)))

    async def _type(self, to: Address) -> None:
        chat, topic = chat_of(to, self._moves)
        while True:
            try:
                with in_words():
                    await self._bot.send_chat_action(chat, "typing", message_thread_id=topic)
            except PlatformError as error:
                _log.debug("nobody sees that the bot is writing: %s", error)
            await asyncio.sleep(_TYPING_SECONDS)

    async def _slowly(self) -> None:
        async with self._pace:
            await asyncio.sleep(_BETWEEN)
