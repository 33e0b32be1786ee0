"""What was written while the bot was away: read from the history of each channel, once each."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import discord

from aforesaid.bots.discord.reading import SPACE, address_in
from aforesaid.domain.scope import direct_thread

if TYPE_CHECKING:
    from aforesaid.memory import Memory

_log: Final = logging.getLogger("aforesaid.bots")

_LOOKED_AT: Final = 50
_MOST: Final = 5000
"""Maximum missed messages read per channel, the newest ones."""
_DIRECT: Final = 100
"""Maximum private chats checked for missed messages, those with the most recent activity."""
_NUMBER: Final = re.compile(r"(?:re:)?(\d{10,20})")

Channel = discord.TextChannel | discord.Thread | discord.VoiceChannel | discord.DMChannel


async def missed(client: discord.Client, memory: Memory) -> AsyncIterator[discord.Message]:
    """Yield what was written since the last message that is stored, oldest first in each channel.

    A channel of which nothing is stored begins with what is said from now on.
    """
    members: dict[tuple[int, int], discord.Member | None] = {}
    for channel in [*_channels(client), *(await _direct(client, memory))]:
        newest = await _newest(client, memory, channel)
        # A direct chat does not say which message is its last.
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
    """Have the author be called as in the guild: unlike a message that comes in, one of the history does not say it."""
    guild, author = message.guild, message.author
    if guild is None or author.bot or isinstance(author, discord.Member):
        return
    key = (guild.id, author.id)
    if key not in members:
        try:
            members[key] = guild.get_member(author.id) or await guild.fetch_member(author.id)
        except discord.HTTPException as error:
            _log.debug("%d is called by their own name, as they are not in the guild any more: %s", author.id, error)
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
    """Return the direct chats with those who wrote last. Discord lists none at the start."""
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
    """Return the highest number of a message that is stored of a channel."""
    if isinstance(channel, discord.DMChannel):
        user = channel.recipient.id if channel.recipient is not None else 0
        there = memory.user(user, space=SPACE, thread=direct_thread(str(user)))
    else:
        address = address_in(channel.guild.id, channel.id, client.user.id if client.user is not None else 0)
        there = memory.user(address.user, space=address.space, thread=address.thread)
    numbers = [
        int(found[1])
        for message in await there.history(_LOOKED_AT, within="thread")
        if (found := _NUMBER.match(message.id)) is not None
    ]
    return max(numbers, default=None)
