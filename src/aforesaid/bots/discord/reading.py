"""From what Discord says to what a desk takes in."""

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
    """Return where something was written: a channel of a guild, which is a space of its own, or a direct chat."""
    if guild is None:
        return Address(SPACE, str(user))
    return Address(f"{SPACE}:{guild}", str(user), str(channel))


def address_of(message: discord.Message) -> Address:
    """Return where a message was written, and by whom."""
    guild = None if message.guild is None else message.guild.id
    return address_in(guild, message.channel.id, message.author.id)


def read_message(
    message: discord.Message, bot: discord.ClientUser, called: tuple[str, ...], people: People
) -> IncomingMessage | None:
    """Return a message of a person; None for what bots wrote, and for what nobody wrote."""
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
        attachments=attachments,
    )


def read_edit(message: discord.Message, bot: discord.ClientUser) -> Edited | None:
    """Return what a message says after it was changed; None where only its preview came."""
    if message.author.bot or message.edited_at is None:
        return None
    changed: datetime = message.edited_at.astimezone(UTC)
    text = _plain(message.content, bot)
    return Edited(address_of(message), str(message.id), text, changed, message.author.display_name)


class People:
    """Those who were seen in each guild, by their names. Discord lists members only to those whom it trusts."""

    def __init__(self) -> None:
        self._seen: LRUCache[int, LRUCache[str, tuple[str, ...]]] = LRUCache(_GUILDS)

    def around(self, message: discord.Message, bot: discord.ClientUser) -> Mapping[str, tuple[str, ...]]:
        """Take note of who is in a message, and return everybody who was seen where it was written."""
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
    """Return a text in which the bot is called by a word, so that a request to it can be recognised."""
    return re.sub(rf"<@!?{bot.id}>", "@bot", text)


def _wanted(message: discord.Message, text: str, bot: discord.ClientUser, called: tuple[str, ...]) -> bool:
    """Tell whether a message is for the bot. In a channel, it is when it says so."""
    if message.guild is None or bot in message.mentions:
        return True
    quoted = message.reference.resolved if message.reference is not None else None
    if isinstance(quoted, discord.Message) and quoted.author.id == bot.id:
        return True
    first = re.match(r"\W*(\w+)", text)
    return first is not None and first[1].casefold() in {name.casefold() for name in called}


def _attachments(message: discord.Message) -> Iterator[str]:
    """Say what came along."""
    for file in message.attachments:
        yield f"{file.filename} ({max(1, round(file.size / _KILOBYTE)):,} kB)"
    for sticker in message.stickers:
        yield f"sticker {sticker.name}"
