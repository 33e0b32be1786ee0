"""Messages of Telegram as messages of a bot, and the formatting of replies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from aiogram.types import Message, MessageEntity, User

from aforesaid.bots.contract import Address, Edited, IncomingMessage
from aforesaid.bots.sending import units

SPACE: Final = "telegram"
_PRIVATE: Final = "private"
_COMMAND: Final = re.compile(r"/\w+(?:@(\w+))?")
_KILOBYTE: Final = 1000


class Moves:
    """Groups that became supergroups and got a new chat id. Their memory stays under the first id."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._now: dict[int, int] = {}

    def add(self, old: int, new: int) -> int:
        """Record that a group has a new chat id. Return its first id."""
        first = self.first(old)
        self._first[new] = first
        self._now[first] = new
        return first

    def first(self, chat: int) -> int:
        """Return the first id of a chat, under which its memory is stored."""
        return self._first.get(chat, chat)

    def now(self, chat: int) -> int:
        return self._now.get(chat, chat)


def moved(message: Message) -> tuple[int, int] | None:
    """Return the old and the new chat id if a message announces that a group became a supergroup."""
    if message.migrate_to_chat_id is not None:
        return message.chat.id, message.migrate_to_chat_id
    return None if message.migrate_from_chat_id is None else (message.migrate_from_chat_id, message.chat.id)


def address_of(message: Message, user: User, moves: Moves) -> Address:
    """Return the address of a message: a direct chat, or a group, which is a space of its own."""
    if message.chat.type == _PRIVATE:
        return Address(SPACE, str(user.id))
    chat = moves.first(message.chat.id)
    thread = f"{chat}/{message.message_thread_id}" if message.is_topic_message else str(chat)
    return Address(f"{SPACE}:{chat}", str(user.id), thread)


def chat_of(address: Address, moves: Moves) -> tuple[int, int | None]:
    if address.thread is None:
        return int(address.user), None
    chat, _, topic = address.thread.partition("/")
    return moves.now(int(chat)), int(topic) if topic else None


def id_of(message: Message, moves: Moves) -> str:
    """Return the id of a message. A supergroup numbers its messages from 1 again, so its chat id is added."""
    chat = message.chat.id
    return str(message.message_id) if moves.first(chat) == chat else f"{message.message_id}@{chat}"


def number_in(message_id: str | None, chat: int) -> int | None:
    """Return the message number of an id; None if it has none, or belongs to the chat's earlier id."""
    number, _, where = (message_id or "").partition("@")
    return int(number) if number.isdecimal() and where in {"", str(chat)} else None


def read_message(message: Message, bot: User, called: tuple[str, ...], moves: Moves) -> IncomingMessage | None:
    """Return a message; None for service messages, such as that somebody joined."""
    user = message.from_user
    text = message.text or message.caption or ""
    attachments = tuple(_attachments(message))
    if user is None or user.is_bot or not (text or attachments):
        return None
    quoted = message.reply_to_message
    return IncomingMessage(
        address_of(message, user, moves),
        id_of(message, moves),
        text,
        message.date.astimezone(UTC),
        user.full_name,
        wanted=_wanted(message, text, bot, called),
        people=_people(message, bot),
        called=called,
        quoted=None if quoted is None else quoted.text or quoted.caption,
        reply_to=None if quoted is None else id_of(quoted, moves),
        attachments=attachments,
    )


def read_edit(message: Message, moves: Moves) -> Edited | None:
    """Return an edit of a message; None if it has no text or author."""
    user = message.from_user
    text = message.text or message.caption
    if user is None or not text:
        return None
    changed = datetime.fromtimestamp(message.edit_date or message.date.timestamp(), UTC)
    return Edited(address_of(message, user, moves), id_of(message, moves), text, changed, user.full_name)


def _wanted(message: Message, text: str, bot: User, called: tuple[str, ...]) -> bool:
    """Return whether a message is for the bot: in a group it must mention, quote or name the bot."""
    command = _COMMAND.match(text)
    if command is not None and command[1]:
        # In a group with several bots, /command@bot names the addressed one.
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
    """Return the names of the author, the quoted author, and mentioned users without a username, by id."""
    quoted = message.reply_to_message
    found = [message.from_user, None if quoted is None else quoted.from_user]
    found += [entity.user for entity in (*(message.entities or ()), *(message.caption_entities or ()))]
    return {
        str(user.id): tuple(name for name in (user.full_name, user.username, user.first_name) if name)
        for user in found
        if user is not None and user.id != bot.id
    }


def _attachments(message: Message) -> Iterator[str]:
    if message.photo:
        yield "photo"
    for kind in ("document", "audio", "video", "animation"):
        file = getattr(message, kind)
        # An animation comes as a document, too.
        if file is not None and not (kind == "document" and message.animation):
            size = f" ({max(1, round(file.file_size / _KILOBYTE)):,} kB)" if file.file_size else ""
            yield f"{file.file_name or kind}{size}"
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


_MARKED: Final = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<block>.*?)\n?^(?P=fence)$|`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^\s*](?:[^*\n]*[^\s*])?)\*\*",
    re.MULTILINE | re.DOTALL,
)


def formatted(text: str) -> tuple[str, list[MessageEntity]]:
    plain: list[str] = []
    entities: list[MessageEntity] = []
    length = 0
    end = 0
    for found in _MARKED.finditer(text):
        kind = next(name for name in ("block", "code", "bold") if found[name] is not None)
        content = found[kind]
        if not content.strip():
            continue
        before = text[end : found.start()]
        plain += [before, content]
        length += units(before)
        language = (found["language"] or "").strip() or None if kind == "block" else None
        entities.append(
            MessageEntity(
                type="pre" if kind == "block" else kind, offset=length, length=units(content), language=language
            )
        )
        length += units(content)
        end = found.end()
    plain.append(text[end:])
    return "".join(plain), entities
