"""Discord: guild and direct messages, slash commands, free-form requests, and messages missed while offline."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final

import aiohttp
import discord
from cachetools import LRUCache
from discord import app_commands

from aforesaid.assistant import CALLED, Answer, Button, File, Phrases, Router
from aforesaid.assistant.phrases import offered
from aforesaid.background import beside
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, Deleted, Edited, IncomingMessage, Pressed
from aforesaid.bots.sending import split
from aforesaid.domain.scope import direct_thread
from aforesaid.errors import InvalidInput, PlatformError, PlatformRefused, PlatformUnavailable
from aforesaid.extras import re
from aforesaid.memory import Memory
from aforesaid.models.client import hide
from aforesaid.settings import DiscordSettings

SPACE: Final = "discord"
_KILOBYTE: Final = 1000
_GUILDS: Final = 1000
_MEMBERS: Final = 1000
_SPOKEN: Final = (discord.MessageType.default, discord.MessageType.reply)


def address_in(guild: int | None, channel: int, user: int) -> Address:
    """Return the address of a channel in a guild, which is a space of its own, or of a direct chat."""
    if guild is None:
        return Address(SPACE, str(user))
    return Address(f"{SPACE}:{guild}", str(user), str(channel))


def address_of(message: discord.Message) -> Address:
    guild = None if message.guild is None else message.guild.id
    return address_in(guild, message.channel.id, message.author.id)


def read_message(
    message: discord.Message, bot: discord.ClientUser, called: tuple[str, ...], people: People
) -> IncomingMessage | None:
    """Return a message of a person; None for messages of bots and for system messages."""
    if message.author.bot or message.type not in _SPOKEN:
        return None
    text = _plain(message.content, bot)
    attachments = tuple(_attachments(message))
    if not text and not attachments:
        return None
    quoted = message.reference.resolved if message.reference is not None else None
    return IncomingMessage(
        address_of(message),
        str(message.id),
        text,
        message.created_at.astimezone(UTC),
        message.author.display_name,
        wanted=_wanted(message, text, bot, called),
        people=people.around(message, bot),
        called=called,
        quoted=quoted.content if isinstance(quoted, discord.Message) else None,
        reply_to=str(quoted.id) if isinstance(quoted, discord.Message) else None,
        attachments=attachments,
    )


def read_edit(message: discord.Message, bot: discord.ClientUser) -> Edited | None:
    """Return an edit; None for a change that only added a link preview."""
    if message.author.bot or message.edited_at is None:
        return None
    changed: datetime = message.edited_at.astimezone(UTC)
    text = _plain(message.content, bot)
    return Edited(address_of(message), str(message.id), text, changed, message.author.display_name)


class People:
    """Names of the people seen in each guild. Discord lists all members only to verified bots."""

    def __init__(self) -> None:
        self._seen: LRUCache[int, LRUCache[str, tuple[str, ...]]] = LRUCache(_GUILDS)

    def around(self, message: discord.Message, bot: discord.ClientUser) -> Mapping[str, tuple[str, ...]]:
        """Record the people in a message, and return everybody seen in its guild."""
        quoted = message.reference.resolved if message.reference is not None else None
        found: list[discord.abc.User] = [message.author, *message.mentions]
        if isinstance(quoted, discord.Message):
            found.append(quoted.author)
        named = {
            str(user.id): tuple(name for name in (user.display_name, user.global_name, user.name) if name)
            for user in found
            if user.id != bot.id
        }
        if message.guild is None:
            return named
        here = self._seen.setdefault(message.guild.id, LRUCache(_MEMBERS))
        here.update(named)
        return dict(here)


def _plain(text: str, bot: discord.ClientUser) -> str:
    """Replace mentions of the bot by `@bot`, so that a request to it can be recognised."""
    return re.sub(rf"<@!?{bot.id}>", "@bot", text)


def _wanted(message: discord.Message, text: str, bot: discord.ClientUser, called: tuple[str, ...]) -> bool:
    """Return whether a message is for the bot: in a channel it must mention, quote or name the bot."""
    if message.guild is None or bot in message.mentions:
        return True
    quoted = message.reference.resolved if message.reference is not None else None
    if isinstance(quoted, discord.Message) and quoted.author.id == bot.id:
        return True
    first = re.match(r"\W*(\w+)", text)
    return first is not None and first[1].casefold() in {name.casefold() for name in called}


def _attachments(message: discord.Message) -> Iterator[str]:
    for file in message.attachments:
        yield f"{file.filename} ({max(1, round(file.size / _KILOBYTE)):,} kB)"
    for sticker in message.stickers:
        yield f"sticker {sticker.name}"


_log: Final = logging.getLogger("aforesaid.bots")

_NEWEST_READ: Final = 50
"""Number of stored messages read to find the newest one that has a Discord id."""
_MOST: Final = 5000
"""Maximum number of missed messages read per channel, the newest ones."""
_DIRECT: Final = 100
"""Maximum number of direct chats checked for missed messages, those with the most recent activity."""
_NUMBER: Final = re.compile(r"(?:re:)?(\d{10,20})")

Channel = discord.TextChannel | discord.Thread | discord.VoiceChannel | discord.DMChannel


async def missed_messages(client: discord.Client, memory: Memory) -> AsyncIterator[discord.Message]:
    """Yield messages newer than the last stored one, oldest first in each channel.

    Channels without stored messages are skipped: their log begins with the next message.
    """
    members: dict[tuple[int, int], discord.Member | None] = {}
    for channel in [*_channels(client), *(await _direct(client, memory))]:
        # The highest id among the newest stored messages of a channel; None if there are none.
        if isinstance(channel, discord.DMChannel):
            user = channel.recipient.id if channel.recipient is not None else 0
            there = memory.user(user, space=SPACE, thread=direct_thread(str(user)))
        else:
            address = address_in(channel.guild.id, channel.id, client.user.id if client.user is not None else 0)
            there = memory.user(address.user, space=address.space, thread=address.thread)
        numbers = [
            int(found[1])
            for message in await there.history(_NEWEST_READ, within="thread")
            if (found := _NUMBER.match(message.id)) is not None
        ]
        newest = max(numbers, default=None)
        # Discord does not report the last message of a direct chat.
        last = None if isinstance(channel, discord.DMChannel) else channel.last_message_id
        if newest is None or (last is not None and last <= newest):
            continue
        try:
            async for message in channel.history(limit=_MOST, after=discord.Object(newest), oldest_first=True):
                await _show_nickname(message, members)
                yield message
        except discord.Forbidden as error:
            _log.warning("missed messages of channel %d cannot be read: %s", channel.id, error)


async def _show_nickname(message: discord.Message, members: dict[tuple[int, int], discord.Member | None]) -> None:
    """Set the author's nickname in the guild, which messages from the history do not contain."""
    guild, author = message.guild, message.author
    if guild is None or author.bot or isinstance(author, discord.Member):
        return
    key = (guild.id, author.id)
    if key not in members:
        try:
            members[key] = guild.get_member(author.id) or await guild.fetch_member(author.id)
        except discord.HTTPException as error:
            _log.debug("the nickname of %d is unknown, because they left the guild: %s", author.id, error)
            members[key] = None
    message.author = members[key] or author


def _channels(client: discord.Client) -> list[Channel]:
    found: list[Channel] = []
    for guild in client.guilds:
        here: list[Channel] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
        for channel in here:
            rights = channel.permissions_for(guild.me)
            if rights.read_messages and rights.read_message_history:
                found.append(channel)
    return found


async def _direct(client: discord.Client, memory: Memory) -> list[Channel]:
    """Return the direct chats with the most recently active users. Discord lists none at the start."""
    people = [user for user in await memory.users(SPACE) if user.last_activity is not None and user.id.isdecimal()]
    people.sort(key=lambda user: user.last_activity.timestamp() if user.last_activity else 0.0, reverse=True)
    found: list[Channel] = []
    for person in people[:_DIRECT]:
        try:
            user = client.get_user(int(person.id)) or await client.fetch_user(int(person.id))
            found.append(user.dm_channel or await user.create_dm())
        except discord.HTTPException as error:
            _log.info("the direct chat with %s cannot be opened: %s", person.id, error)
    return found


class _Translator(app_commands.Translator):
    """Translates what commands do. Discord shows it in the language of a person's app."""

    async def translate(
        self, string: app_commands.locale_str, locale: discord.Locale, context: app_commands.TranslationContextTypes
    ) -> str | None:
        del context
        code = locale.value.partition("-")[0]
        name = string.extras.get("command")
        return Router().commands(Phrases.of(code))[name][:_DESCRIPTION] if name and code in offered() else None


_DESCRIPTION: Final = 100
"""Maximum characters of what a command does."""


class Client(discord.Client):
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
            description = app_commands.locale_str(what[:_DESCRIPTION], command=name)
            self.tree.add_command(app_commands.Command(name=name, description=description, callback=callback))

    async def setup_hook(self) -> None:
        await self.tree.set_translator(_Translator())
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
            language = str(interaction.locale)
            answer = await self._taking.command(self._address(interaction), text, language)
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
