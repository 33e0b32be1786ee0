"""Converts Discord messages to the values of the bot contract."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import discord
from cachetools import LRUCache

from aforesaid.bots.contract import Address, Edited, IncomingMessage

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
    """Return the address of a message: its chat and its author."""
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
    """Describe the attachments."""
    for file in message.attachments:
        yield f"{file.filename} ({max(1, round(file.size / _KILOBYTE)):,} kB)"
    for sticker in message.stickers:
        yield f"sticker {sticker.name}"
