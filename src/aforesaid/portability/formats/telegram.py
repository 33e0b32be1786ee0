"""Telegram Desktop's JSON export: one chat, or all of them (`result.json`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.import_items import ImportedMessage, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import from_seconds, in_zone, name_of, objects, opened, parts_text, told


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all chats."""
    for name in [name for name in source.named(".json") if "result" in name] or source.names[:1]:
        with source.open(name) as stream:
            yield from told(_whole(opened(stream), reading))


def _whole(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    """Read the file. The fields of a chat come before its messages."""
    head: dict[str, object] = {}
    for key in stream.members():
        if key in ("id", "name", "type"):
            head[key] = stream.value()
        elif key == "messages":
            yield from _messages(stream, _thread(head), "message", reading)
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
                    yield from _messages(stream, _thread(head), f"chat {number}, message", reading)


def _thread(head: dict[str, object]) -> str:
    return f"telegram:{head.get('id') or head.get('name') or 'chat'}"


def _messages(stream: JsonStream, thread: str, where: str, reading: ReadOptions) -> Iterator[Item]:
    for place, found in objects(stream, where):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            yield _message(found, place, thread, reading)
        except InvalidInput as error:
            yield Problem(place, str(error))


def _message(found: Fields, where: str, thread: str, reading: ReadOptions) -> Item:
    if found.raw("type") != "message":
        return Skipped("notes of the app: who joined, what was pinned, calls")
    text = parts_text(found.raw("text")) or _medium(found)
    if not text:
        return Skipped("messages without text")
    number = found.needed("id")
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise InvalidInput("id must be a number")
    name = name_of(found, "from", "forwarded_from")
    author = name_of(found, "from_id") or name or "unknown"
    return ImportedMessage(where, thread, "user", text, _time(found, reading), str(number), author, name)


def _time(found: Fields, reading: ReadOptions) -> datetime:
    if found.has("date_unixtime"):
        return from_seconds(found.raw("date_unixtime"), "date_unixtime")
    try:
        return in_zone(datetime.fromisoformat(found.text("date")), reading.zone, "date")
    except ValueError:
        raise InvalidInput(f"date is not a time: {quoted(found.raw('date'))}") from None


def _medium(found: Fields) -> str:
    """Return a description of an attachment."""
    if found.has("sticker_emoji"):
        return f"[sticker {found.raw('sticker_emoji')}]"
    for field, word in (("photo", "photo"), ("contact_information", "contact"), ("location_information", "location")):
        if found.has(field):
            return f"[{word}]"
    if found.has("poll"):
        poll = found.raw("poll")
        return f"[poll: {poll.get('question', '')}]" if isinstance(poll, dict) else "[poll]"
    if found.has("file"):
        return f"[{found.raw('media_type') or 'file'}: {found.raw('file_name') or ''}]".replace(": ]", "]")
    return ""
