"""Reads messages that were written while the bot was offline, from the history of each channel."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import discord

from aforesaid.bots.discord.incoming import SPACE, address_in
from aforesaid.domain.scope import direct_thread

if TYPE_CHECKING:
    from aforesaid.memory import Memory

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
        newest = await _newest(client, memory, channel)
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
    """Return the channels that the bot can read."""
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


async def _newest(client: discord.Client, memory: Memory, channel: Channel) -> int | None:
    """Return the highest id among the newest stored messages of a channel; None if there are none."""
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
    return max(numbers, default=None)
