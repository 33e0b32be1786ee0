"""DiscordChatExporter's JSON format: one file per channel, or a folder or archive of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from aforesaid.portability.import_items import ImportedMessage, Item, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import any_moment, conversation, name_of, opened, told

_TALK = ("Default", "Reply", "0", "19")


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all channels."""
    names = source.named(".json") or source.names[:1]
    for name in names:
        with source.open(name) as stream:
            yield from told(_channel(opened(stream), reading, f"{name}, message" if len(names) > 1 else "message"))


def _channel(stream: JsonStream, reading: ReadOptions, where: str) -> Iterator[Item]:
    thread = "discord:channel"
    for key in stream.members():
        if key == "channel":
            channel = Fields(stream.value(), "the channel")
            thread = f"discord:{channel.raw('id') or channel.raw('name')}"
        elif key == "messages":
            yield from conversation(stream, where, partial(_message, thread, reading))


def _message(thread: str, reading: ReadOptions, found: Fields, where: str, last: str | None) -> Item:
    if str(found.raw("type")) not in _TALK:
        return Skipped("notes of the app: who joined, what was pinned, calls")
    files = [Fields(each, "an attachment") for each in found.items("attachments")]
    names = [f"[{name}]" for each in files if (name := name_of(each, "fileName"))]
    stickers = [f"[sticker {each.get('name', '')}]" for each in found.items("stickers") if isinstance(each, dict)]
    embeds = [text for each in found.items("embeds") if (text := name_of(Fields(each, "an embed"), "title"))]
    said = [name_of(found, "content") or "", *names, *stickers]
    text = "\n".join(part for part in said if part) or "\n".join(embeds)
    if not text:
        return Skipped("messages without text")
    author = Fields(found.needed("author"), "the author")
    person = author.text("id")
    name = name_of(author, "nickname", "name")
    at = any_moment(found.needed("timestamp"), "timestamp", reading.zone)
    if author.raw("isBot") is True:
        return ImportedMessage(where, thread, "assistant", text, at, found.text("id"), person, name, answers=last)
    return ImportedMessage(where, thread, "user", text, at, found.text("id"), person, name)
