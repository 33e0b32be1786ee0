"""Messages of Discord as messages of a bot, also those that were missed while it was away."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import discord
from cachetools import LRUCache

from aforesaid.bots.contract import Address, Edited, IncomingMessage
from aforesaid.domain.scope import direct_thread

if TYPE_CHECKING:
    from aforesaid.memory import Memory


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
