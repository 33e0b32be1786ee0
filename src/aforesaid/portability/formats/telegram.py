"""Telegram Desktop's JSON export: one chat, or all of them (`result.json`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.import_items import NO_WORDS, NOTICE, ImportedMessage, Item, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import (
    attachment,
    each,
    filled,
    from_seconds,
    in_zone,
    lines,
    mapping_of,
    name_of,
    objects,
    objects_of,
    reaction_counts,
    until_damaged,
    with_address,
)
from aforesaid.portability.row_codec import Fields

_KINDS: Final = {
    "voice_message": ("voice", "audio/ogg"),
    "audio_file": ("audio", "audio/mpeg"),
    "video_message": ("video", "video/mp4"),
    "video_file": ("video", "video/mp4"),
    "animation": ("animation", "video/mp4"),
    "sticker": ("sticker", "image/webp"),
}
"""The kind and the usual media type of what `media_type` says."""
_NOT_EXPORTED: Final = "(File "
"""The path of a file that the export left out begins so: it says why instead."""


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all chats."""
    for name in [name for name in source.named(".json") if "result" in name] or source.names[:1]:
        with source.open(name) as stream:
            yield from until_damaged(_whole(JsonStream(stream), reading))


def _whole(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    """Read the file. The fields of a chat come before its messages."""
    head: dict[str, object] = {}
    for key in stream.members():
        if key in ("id", "name", "type"):
            head[key] = stream.value()
        elif key == "messages":
            yield from _messages(stream, head, "message", reading)
        elif key in ("chats", "left_chats"):
            yield from _chats(stream, reading)


def _chats(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    for key in stream.members():
        if key != "list":
            continue
        for number in stream.elements():
            head: dict[str, object] = {}
            for inner in stream.members():
                if inner in ("id", "name", "type"):
                    head[inner] = stream.value()
                elif inner == "messages":
                    yield from _messages(stream, head, f"chat {number}, message", reading)


def _messages(stream: JsonStream, head: dict[str, object], where: str, reading: ReadOptions) -> Iterator[Item]:
    thread = f"telegram:{head.get('id') or head.get('name') or 'chat'}"
    # In a chat with a bot, the bot is the assistant: the chat has its name.
    bot = head.get("name") if head.get("type") == "bot_chat" else None
    return each(objects(stream, where), partial(_message, thread, bot, reading))


def _message(thread: str, bot: object, reading: ReadOptions, found: Fields, where: str) -> Item:
    if found.raw("type") != "message":
        return NOTICE
    parts, kind = _media(found)
    text = lines(_text(found.raw("text")), *_described(found))
    if not text and not parts:
        return NO_WORDS
    number = found.needed("id")
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise InvalidInput("id must be a number")
    name = name_of(found, "from")
    forwarded = name_of(found, "forwarded_from")
    if forwarded is not None and forwarded != name:
        text = lines(f"Forwarded from {forwarded}:", text)
        kind = kind or "forward"
    answered = found.raw("reply_to_message_id")
    reactions = [(given.raw("emoji"), given.raw("count")) for given in objects_of(found, "reactions")]
    return ImportedMessage(
        where,
        thread,
        "assistant" if bot is not None and name == bot else "user",
        text,
        _time(found, reading),
        str(number),
        name_of(found, "from_id") or name or forwarded or "unknown",
        name,
        parts=parts,
        reply_to=None if answered is None or found.has("reply_to_peer_id") else str(answered),
        kind=kind,
        metadata=filled(
            forwarded_from=forwarded,
            via_bot=found.raw("via_bot"),
            edited=found.raw("edited"),
            reactions=reaction_counts(reactions),
        ),
    )


def _time(found: Fields, reading: ReadOptions) -> datetime:
    if found.has("date_unixtime"):
        return from_seconds(found.raw("date_unixtime"), "date_unixtime")
    try:
        return in_zone(datetime.fromisoformat(found.text("date")), reading.zone, "date")
    except ValueError:
        raise InvalidInput(f"date is not a time: {quoted(found.raw('date'))}") from None


def _text(content: object) -> str:
    """Return a text that is a string, or a list of strings and formatted pieces. Links keep their addresses."""
    if isinstance(content, list):
        return "".join(map(_text, content))
    if isinstance(content, dict):
        return with_address(str(content.get("text", "")), content.get("href"))
    return content if isinstance(content, str) else ""


def _described(found: Fields) -> Iterator[str]:
    """Describe in words what is neither text nor a file: a contact, a place, a poll, a game, an invoice."""
    contact = mapping_of(found, "contact_information")
    if contact:
        name = " ".join(str(contact[key]) for key in ("first_name", "last_name") if contact.get(key))
        yield f"Contact: {', '.join(filter(None, [name, str(contact.get('phone_number') or '')]))}"
    place = mapping_of(found, "location_information")
    names = [str(found.raw(key)) for key in ("place_name", "address") if found.has(key)]
    if place or names:
        point = f"{place['latitude']}, {place['longitude']}" if "latitude" in place and "longitude" in place else ""
        yield f"Location: {', '.join(filter(None, [*names, point]))}"
    poll = Fields(mapping_of(found, "poll"))
    if poll.raw_all():
        yield lines(f"Poll: {_text(poll.raw('question'))}", *map(_answer, objects_of(poll, "answers")))
    for key, label in (("game_title", "Game"), ("todo_list", "List")):
        if found.has(key):
            title = found.raw(key)
            yield f"{label}: {_text(title.get('title')) if isinstance(title, dict) else title}"
    invoice = mapping_of(found, "invoice_information")
    if invoice:
        yield f"Invoice: {invoice.get('title', '')}"


def _answer(answer: Fields) -> str:
    votes = answer.raw("voters")
    return f"- {_text(answer.raw('text'))}" + (f" ({votes})" if isinstance(votes, int) else "")


def _media(found: Fields) -> tuple[tuple[Part, ...], str | None]:
    """Return the photo or file of a message, and the message's kind."""
    for field, kind in (("contact_information", "contact"), ("location_information", "location"), ("poll", "poll")):
        if found.has(field):
            return (), kind
    if found.has("photo"):
        return (attachment(_exported(found.raw("photo")), "image/jpeg", size=found.raw("photo_file_size")),), "photo"
    if not found.has("file") and not found.has("media_type"):
        return (), None
    kind, usual = _KINDS.get(str(found.raw("media_type")), ("file", None))
    name = name_of(found, "file_name") or _exported(found.raw("file"))
    caption = lines(
        name_of(found, "sticker_emoji"),
        " - ".join(filter(None, [name_of(found, "performer"), name_of(found, "title")])),
    )
    media_type = name_of(found, "mime_type") or usual
    return (attachment(name, media_type, size=found.raw("file_size"), text=caption),), kind


def _exported(path: object) -> str | None:
    """Return the path of a file in the export's folder; None if it was left out."""
    return path if isinstance(path, str) and not path.startswith(_NOT_EXPORTED) else None
