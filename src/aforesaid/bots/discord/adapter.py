"""The adapter between Discord and a bot session."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final

import aiohttp
import discord
from discord import app_commands

from aforesaid.assistant import CALLED, Answer, Button, File, Router
from aforesaid.background import beside
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, Deleted, Pressed
from aforesaid.bots.discord.incoming import SPACE, People, address_in, missed_messages, read_edit, read_message
from aforesaid.bots.sending import split
from aforesaid.errors import InvalidInput, PlatformError, PlatformRefused, PlatformUnavailable
from aforesaid.models.client import hide
from aforesaid.settings import DiscordSettings


class Client(discord.Client):
    """A client that passes its events to an adapter."""

    def __init__(self, adapter: Discord) -> None:
        intents = discord.Intents(
            guilds=True, guild_messages=True, dm_messages=True, message_content=True, guild_reactions=False
        )
        # No text of a model can ping anybody.
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self._adapter = adapter
        self.tree = app_commands.CommandTree(self)
        router = Router()
        for name, what in router.commands().items():
            callback: Any = self._with_words(name) if router.takes_words(name) else self._alone(name)
            self.tree.add_command(app_commands.Command(name=name, description=what[:100], callback=callback))

    async def setup_hook(self) -> None:
        await self.tree.sync()

    async def on_ready(self) -> None:
        await self._adapter.ready()

    async def on_disconnect(self) -> None:
        """Hold back events until missed messages were read."""
        self._adapter.away()

    async def on_resumed(self) -> None:
        """Accept events: after a resume Discord sends the missed ones itself."""
        self._adapter.back()

    async def on_message(self, message: discord.Message) -> None:
        await self._adapter.take(message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        await self._adapter.take_edit(payload)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        await self._adapter.take_deletion(payload.guild_id, payload.channel_id, payload.message_id)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        for message in sorted(payload.message_ids):
            await self._adapter.take_deletion(payload.guild_id, payload.channel_id, message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.component:
            await self._adapter.take_press(interaction)

    def _alone(self, name: str) -> Any:  # noqa: ANN401 - a callback of a command has no narrower type
        async def callback(interaction: discord.Interaction) -> None:
            await self._adapter.take_command(interaction, f"/{name}")

        return callback

    def _with_words(self, name: str) -> Any:  # noqa: ANN401
        async def callback(interaction: discord.Interaction, words: str = "") -> None:
            await self._adapter.take_command(interaction, f"/{name} {words}")

        return callback


REFUSED: Final = (
    "the token was refused by Discord; make a new one under Bot in the developer portal and put it into "
    "bots.discord.token (or AFORESAID_BOTS__DISCORD__TOKEN)"
)
INTENTS: Final = (
    "Discord does not let the bot read messages: switch on MESSAGE CONTENT INTENT under Bot in the developer portal"
)
_BAD_TOKEN: Final = 4004
_INTENTS: Final = (4013, 4014)
_TOO_MANY: Final = 429
_THEIR_FAULT: Final = 500


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of discord.py as PlatformUnavailable if a retry may help, else as PlatformRefused."""
    try:
        yield
    except discord.LoginFailure:
        raise PlatformRefused(REFUSED) from None
    except discord.PrivilegedIntentsRequired:
        raise PlatformRefused(INTENTS) from None
    except discord.ConnectionClosed as error:
        if error.code == _BAD_TOKEN:
            raise PlatformRefused(REFUSED) from None
        if error.code in _INTENTS:
            raise PlatformRefused(INTENTS) from None
        raise PlatformUnavailable(f"Discord hung up (code {error.code})") from None
    except discord.RateLimited as error:
        raise PlatformUnavailable("Discord limits the rate of requests", retry_after=error.retry_after) from None
    except discord.HTTPException as error:
        if error.status == _TOO_MANY or error.status >= _THEIR_FAULT:
            raise PlatformUnavailable(f"Discord has a problem: {error}") from None
        # A deleted channel, a person who accepts no direct messages, or a missing permission.
        raise PlatformRefused(f"Discord refused: {error}") from None
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        raise PlatformUnavailable("the connection to Discord is lost") from None
    except (discord.GatewayNotFound, aiohttp.ClientError, OSError) as error:
        raise PlatformUnavailable(f"Discord cannot be reached: {type(error).__name__} {error}") from None


_log: Final = logging.getLogger("aforesaid.bots")

_RECENT: Final = timedelta(minutes=15)
"""Maximum age of a missed message that is still answered."""
_BUTTON: Final = "aforesaid:"
_TYPING_SECONDS: Final = 8.0
"""Seconds between two typing indicators. Discord shows one for ten seconds."""


class Discord:
    name = SPACE
    longest = 2000

    def __init__(self, settings: DiscordSettings, *, called: tuple[str, ...] = ()) -> None:
        if settings.token is None:
            raise InvalidInput(
                "no Discord token is configured: create a bot in the developer portal, and set bots.discord.token or "
                "AFORESAID_BOTS__DISCORD__TOKEN"
            )
        hide(settings.token)
        self._token = settings.token
        self._called = (*called, *CALLED)
        self._people = People()
        self._session: BotSession | None = None
        self._in_order = asyncio.Lock()
        self._caught_up = asyncio.Event()
        """Set once missed messages are stored. New messages wait for it, because they come after those."""
        self.client = Client(self)

    def attach(self, session: BotSession) -> None:
        """Pass events to this session from now on."""
        self._session = session

    async def check(self) -> str:
        if self.client.is_closed():
            self.client = Client(self)
        with translated_errors():
            await self.client.login(self._token)
        return self._me.name

    async def listen(self, session: BotSession) -> None:
        """Pass events to the session until the connection is lost. The next call also reads missed messages."""
        self.attach(session)
        self._caught_up.clear()
        try:
            with translated_errors():
                await self.client.connect(reconnect=False)
        finally:
            # The client stays open for answers that are still to be sent; `close` closes it.
            session.stats.connected = False
        raise PlatformUnavailable("Discord closed the connection")

    async def send(
        self,
        to: Address,
        text: str,
        buttons: Sequence[Button] = (),
        *,
        answers: str | None = None,
        once: str | None = None,
    ) -> None:
        """Send a text with buttons below it. `once` becomes a nonce, by which Discord detects duplicates."""
        more: dict[str, Any] = {"mention_author": False}
        if answers is not None and answers.isdecimal() and to.thread is not None:
            more["reference"] = discord.MessageReference(
                message_id=int(answers), channel_id=int(to.thread), fail_if_not_exists=False
            )
        if buttons:
            more["view"] = _view(buttons)
        if once is not None:
            more["nonce"] = int.from_bytes(hashlib.sha256(f"{to}{once}".encode()).digest()[:8])
        with translated_errors():
            await (await self._channel(to)).send(text, **more)

    async def send_file(self, to: Address, file: File) -> None:
        with translated_errors():
            await (await self._channel(to)).send(file=discord.File(BytesIO(file.content), file.name))

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:
        return beside(self._type(to), "aforesaid-typing")

    async def close(self) -> None:
        if not self.client.is_closed():
            await self.client.close()

    async def ready(self) -> None:
        """Store the messages that were written while the bot was offline."""
        session = self._taking
        number = 0
        try:
            with translated_errors():
                async for message in missed_messages(self.client, session.memory):
                    await self._hear(message, answer=datetime.now(UTC) - message.created_at < _RECENT)
                    number += 1
        except PlatformUnavailable as error:
            # New messages would be stored before the missing ones, so reconnect and start over.
            _log.warning("missed messages cannot be read: %s", error)
            await self.client.close()
            return
        if number:
            _log.info("%d missed messages were read", number)
        self.back()

    def away(self) -> None:
        """Hold back new events: the connection is lost."""
        self._caught_up.clear()
        self._taking.stats.connected = False
        self._taking.stats.reconnections += 1

    def back(self) -> None:
        """Accept new events again: the connection is back."""
        self._taking.stats.mark_ok()
        self._caught_up.set()

    async def take(self, message: discord.Message) -> None:
        await self._caught_up.wait()
        async with self._in_order:
            await self._hear(message, answer=True)

    async def take_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        edit = read_edit(payload.message, self._me)
        if edit is not None:
            await self._caught_up.wait()
            async with self._in_order:
                await self._taking.edited(edit)

    async def take_deletion(self, guild: int | None, channel: int, message: int) -> None:
        user = self._me.id
        if guild is None:
            direct = self.client.get_channel(channel)
            if not isinstance(direct, discord.DMChannel) or direct.recipient is None:
                return
            user = direct.recipient.id
        await self._caught_up.wait()
        async with self._in_order:
            await self._taking.deleted(Deleted(address_in(guild, channel, user), str(message), datetime.now(UTC)))

    async def take_command(self, interaction: discord.Interaction, text: str) -> None:
        """Run a slash command. Only its sender sees the answer."""
        with translated_errors():
            await interaction.response.defer(ephemeral=True, thinking=True)
            answer = await self._taking.command(self._address(interaction), text)
            await self._follow_up(interaction, answer)

    async def take_press(self, interaction: discord.Interaction) -> None:
        """Handle a pressed button, and remove the buttons of its message: a question is answered once."""
        data: dict[str, object] = {**(interaction.data or {})}
        word = str(data.get("custom_id", ""))
        if not word.startswith(_BUTTON):
            return
        with translated_errors():
            await interaction.response.edit_message(view=None)
            answer = await self._taking.press(Pressed(self._address(interaction), word.removeprefix(_BUTTON)))
            await self._follow_up(interaction, answer)

    async def _hear(self, message: discord.Message, *, answer: bool) -> None:
        incoming = read_message(message, self._me, (*self._called, self._me.name, self._me.display_name), self._people)
        if incoming is not None:
            # Discord wants no acknowledgement and delivers nothing again: what cannot be stored is lost, and the
            # session says so to whoever wrote it.
            await self._taking.hear(incoming if answer else replace(incoming, wanted=False))

    async def _follow_up(self, interaction: discord.Interaction, answer: Answer) -> None:
        parts = split(answer.text, self.longest)
        for number, part in enumerate(parts, 1):
            if number == len(parts) and answer.buttons:
                await interaction.followup.send(part, ephemeral=True, view=_view(answer.buttons))
            else:
                await interaction.followup.send(part, ephemeral=True)
        if answer.file is not None:
            file = discord.File(BytesIO(answer.file.content), answer.file.name)
            await interaction.followup.send(file=file, ephemeral=True)
        self._taking.stats.mark_ok()

    async def _channel(self, to: Address) -> discord.abc.Messageable:
        if self.client.is_closed():
            raise PlatformUnavailable("the connection to Discord is lost")
        if to.thread is None:
            user = self.client.get_user(int(to.user)) or await self.client.fetch_user(int(to.user))
            return user.dm_channel or await user.create_dm()
        channel = self.client.get_channel(int(to.thread)) or await self.client.fetch_channel(int(to.thread))
        if not isinstance(channel, discord.abc.Messageable):
            raise PlatformRefused(f"channel {to.thread} does not accept messages")
        return channel

    async def _type(self, to: Address) -> None:
        while True:
            try:
                with translated_errors():
                    await (await self._channel(to)).typing()
            except PlatformError as error:
                _log.debug("the typing indicator could not be shown: %s", error)
            await asyncio.sleep(_TYPING_SECONDS)

    @staticmethod
    def _address(interaction: discord.Interaction) -> Address:
        channel = interaction.channel_id or 0
        return address_in(interaction.guild_id, channel, interaction.user.id)

    @property
    def _taking(self) -> BotSession:
        if self._session is None:
            raise PlatformRefused("an event arrived before the bot was listening")
        return self._session

    @property
    def _me(self) -> discord.ClientUser:
        if self.client.user is None:
            raise PlatformRefused("the bot is not logged in")
        return self.client.user


def _view(buttons: Sequence[Button]) -> discord.ui.View:
    """Return a view with buttons. Their ids contain their words, so they work after a restart without stored state."""
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(discord.ui.Button(label=button.label, custom_id=f"{_BUTTON}{button.word}"))
    view.stop()
    return view
