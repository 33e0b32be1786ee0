"""From what Telegram says to what a desk takes in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from aiogram.types import Message, User

from recollect.bots.contract import Address, Edited, Heard

SPACE: Final = "telegram"
_PRIVATE: Final = "private"
_COMMAND: Final = re.compile(r"/\w+(?:@(\w+))?")
_KILOBYTE: Final = 1000


def address_of(message: Message, user: User) -> Address:
    """Return where a message was written: a direct chat, or a group, whose memory is a space of its own."""
    chat = message.chat
    if chat.type == _PRIVATE:
        return Address(SPACE, str(user.id))
    thread = f"{chat.id}/{message.message_thread_id}" if message.is_topic_message else str(chat.id)
    return Address(f"{SPACE}:{chat.id}", str(user.id), thread)


def chat_of(address: Address) -> tuple[int, int | None]:
    """Return the chat of an address, and the topic in it."""
    if address.thread is None:
        return int(address.user), None
    chat, _, topic = address.thread.partition("/")
    return int(chat), int(topic) if topic else None


def read_message(message: Message, bot: User, called: tuple[str, ...]) -> Heard | None:
    """Return a message; None for what nobody wrote, as that somebody joined."""
    user = message.from_user
    text = message.text or message.caption or ""
    attachments = tuple(_attachments(message))
    if user is None or user.is_bot or not (text or attachments):
        return None
    quoted = message.reply_to_message
    return Heard(
        address_of(message, user),
        str(message.message_id),
        text,
        message.date.astimezone(UTC),
        user.full_name,
        wanted=_wanted(message, text, bot, called),
        people=_people(message, bot),
        called=called,
        quoted=None if quoted is None else quoted.text or quoted.caption,
        attachments=attachments,
    )


def read_edit(message: Message) -> Edited | None:
    """Return what a message says after it was changed."""
    user = message.from_user
    text = message.text or message.caption
    if user is None or not text:
        return None
    changed = datetime.fromtimestamp(message.edit_date or message.date.timestamp(), UTC)
    return Edited(address_of(message, user), str(message.message_id), text, changed, user.full_name)


def _wanted(message: Message, text: str, bot: User, called: tuple[str, ...]) -> bool:
    """Tell whether a message is for the bot. In a group, it is when it says so."""
    command = _COMMAND.match(text)
    if command is not None and command[1]:
        # In a group of several bots, /command@bot names the one that is meant.
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
    """Return who is around: the author, who is replied to, and who is mentioned without a name of their own."""
    quoted = message.reply_to_message
    found = [message.from_user, None if quoted is None else quoted.from_user]
    found += [entity.user for entity in (*(message.entities or ()), *(message.caption_entities or ()))]
    return {
        str(user.id): tuple(name for name in (user.full_name, user.username, user.first_name) if name)
        for user in found
        if user is not None and user.id != bot.id
    }


def _attachments(message: Message) -> Iterator[str]:
    """Say what came along."""
    if message.photo:
        yield "photo"
    for kind in ("document", "audio", "video", "animation"):
        file = getattr(message, kind)
        # An animation comes as a document, too.
        if file is not None and not (kind == "document" and message.animation):
            yield f"{file.file_name or kind}{_size(file.file_size)}"
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


def _size(size: int | None) -> str:
    if not size:
        return ""
    return f" ({max(1, round(size / _KILOBYTE)):,} kB)"
