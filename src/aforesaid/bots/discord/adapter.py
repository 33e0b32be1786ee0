"""The adapter between Discord and a desk."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final

import discord

from aforesaid.assistant import CALLED, Answer, Button, File
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, Deleted, Pressed
from aforesaid.bots.discord.client import Client
from aforesaid.bots.discord.missed import missed
from aforesaid.bots.discord.reading import SPACE, People, address_in, read_edit, read_message
from aforesaid.bots.discord.wording import in_words
from aforesaid.bots.splitting import split
from aforesaid.errors import InvalidInput, PlatformError, PlatformRefused, PlatformUnavailable
from aforesaid.models.redact import hide
from aforesaid.settings import DiscordSettings
from aforesaid.tasks import beside

_log: Final = logging.getLogger("aforesaid.bots")

_RECENT: Final = timedelta(minutes=15)
"""What was missed is answered if it is not older than this."""
_BUTTON: Final = "aforesaid:"
_TYPING_SECONDS: Final = 8.0
"""Discord shows that somebody types for ten seconds."""


class Discord:
    """Discord, as a bot uses it."""

    name = SPACE
    longest = 2000

    def __init__(self, settings: DiscordSettings, *, called: tuple[str, ...] = ()) -> None:
        if settings.token is None:
            raise InvalidInput(
                "there is no token for Discord; make a bot in the developer portal, and set bots.discord.token or "
                "AFORESAID_BOTS__DISCORD__TOKEN"
            )
        hide(settings.token)
        self._token = settings.token
        self._called = (*called, *CALLED)
        self._people = People()
        self._desk: BotSession | None = None
        self._in_order = asyncio.Lock()
        self._caught_up = asyncio.Event()
        """Before it is read what was missed, what comes in has to wait: it belongs behind."""
        self.client = Client(self)

    def attach(self, desk: BotSession) -> None:
        """Hand everything in at this desk from now on."""
        self._desk = desk

    async def check(self) -> str:
        """Log in."""
        if self.client.is_closed():
            self.client = Client(self)
        with in_words():
            await self.client.login(self._token)
        return self._me.name

    async def listen(self, desk: BotSession) -> None:
        """Take in what happens, until the connection is lost. Whoever calls it again also gets what was missed."""
        self.attach(desk)
        self._caught_up.clear()
        try:
            with in_words():
                await self.client.connect(reconnect=False)
        finally:
            # It stays open for what is still to be said; `close` closes it.
            desk.stats.connected = False
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
        """Send a text, with buttons below it. What has a name is shown once: for minutes, Discord knows it again."""
        more: dict[str, Any] = {"mention_author": False}
        if answers is not None and answers.isdecimal() and to.thread is not None:
            more["reference"] = discord.MessageReference(
                message_id=int(answers), channel_id=int(to.thread), fail_if_not_exists=False
            )
        if buttons:
            more["view"] = _view(buttons)
        if once is not None:
            more["nonce"] = int.from_bytes(hashlib.sha256(f"{to}{once}".encode()).digest()[:8])
        with in_words():
            await (await self._channel(to)).send(text, **more)

    async def send_file(self, to: Address, file: File) -> None:
        """Send a file."""
        with in_words():
            await (await self._channel(to)).send(file=discord.File(BytesIO(file.content), file.name))

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:
        """Show that the bot is writing."""
        return beside(self._type(to), "aforesaid-typing")

    async def close(self) -> None:
        """Log out."""
        if not self.client.is_closed():
            await self.client.close()

    async def ready(self) -> None:
        """Take in what was written while the bot was away."""
        desk = self._taking
        number = 0
        try:
            with in_words():
                async for message in missed(self.client, desk.memory):
                    await self._hear(message, answer=datetime.now(UTC) - message.created_at < _RECENT)
                    number += 1
        except PlatformUnavailable as error:
            # Whatever comes now would stand before what is still missing: once more from the beginning.
            _log.warning("what was written while the bot was away cannot be read: %s", error)
            await self.client.close()
            return
        if number:
            _log.info("%d messages were written while the bot was away, and are read now", number)
        self.back()

    def away(self) -> None:
        """Hold back what comes in."""
        self._caught_up.clear()
        self._taking.stats.connected = False
        self._taking.stats.reconnections += 1

    def back(self) -> None:
        """Take in again what comes in."""
        self._taking.stats.mark_ok()
        self._caught_up.set()

    async def take(self, message: discord.Message) -> None:
        """Take in a message."""
        await self._caught_up.wait()
        async with self._in_order:
            await self._hear(message, answer=True)

    async def take_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """Take in a change."""
        edit = read_edit(payload.message, self._me)
        if edit is not None:
            await self._caught_up.wait()
            async with self._in_order:
                await self._taking.edited(edit)

    async def take_deletion(self, guild: int | None, channel: int, message: int) -> None:
        """Take in a deletion."""
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
        """Carry out a slash command. Only who gave it sees the answer."""
        with in_words():
            await interaction.response.defer(ephemeral=True, thinking=True)
            answer = await self._taking.command(self._address(interaction), text)
            await self._follow_up(interaction, answer)

    async def take_press(self, interaction: discord.Interaction) -> None:
        """Take in that a button was pressed. A question is answered once; its buttons go."""
        data: dict[str, object] = {**(interaction.data or {})}
        word = str(data.get("custom_id", ""))
        if not word.startswith(_BUTTON):
            return
        with in_words():
            await interaction.response.edit_message(view=None)
            answer = await self._taking.press(Pressed(self._address(interaction), word.removeprefix(_BUTTON)))
            await self._follow_up(interaction, answer)

    async def _hear(self, message: discord.Message, *, answer: bool) -> None:
        heard = read_message(message, self._me, (*self._called, self._me.name, self._me.display_name), self._people)
        if heard is not None:
            await self._taking.hear(heard if answer else replace(heard, wanted=False))

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
            raise PlatformRefused(f"nobody can write into the channel {to.thread}")
        return channel

    async def _type(self, to: Address) -> None:
        while True:
            try:
                with in_words():
                    await (await self._channel(to)).typing()
            except PlatformError as error:
                _log.debug("nobody sees that the bot is writing: %s", error)
            await asyncio.sleep(_TYPING_SECONDS)

    @staticmethod
    def _address(interaction: discord.Interaction) -> Address:
        channel = interaction.channel_id or 0
        return address_in(interaction.guild_id, channel, interaction.user.id)

    @property
    def _taking(self) -> BotSession:
        if self._desk is None:
            raise PlatformRefused("something came in before the bot was listening")
        return self._desk

    @property
    def _me(self) -> discord.ClientUser:
        if self.client.user is None:
            raise PlatformRefused("the bot is not logged in")
        return self.client.user


def _view(buttons: Sequence[Button]) -> discord.ui.View:
    """Return buttons. They are known by their word, also after a restart, so nothing has to be kept for them."""
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(discord.ui.Button(label=button.label, custom_id=f"{_BUTTON}{button.word}"))
    view.stop()
    return view
