"""DiscordChatExporter's JSON format: one file per channel or thread, or a folder or archive of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import NO_WORDS, NOTICE, ImportedMessage, Item, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import (
    any_moment,
    attachment,
    each,
    filled,
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

_MESSAGES: Final = ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "ThreadStarterMessage", "0", "19")
"""The types of messages that somebody wrote. All others are notices."""


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all channels."""
    names = source.named(".json") or source.names[:1]
    for name in names:
        with source.open(name) as stream:
            where = f"{name}, message" if len(names) > 1 else "message"
            yield from until_damaged(_channel(JsonStream(stream), reading, where))


def _channel(stream: JsonStream, reading: ReadOptions, where: str) -> Iterator[Item]:
    thread = "discord:channel"
    for key in stream.members():
        if key == "channel":
            channel = Fields(stream.value(), "the channel")
            thread = f"discord:{channel.raw('id') or channel.raw('name')}"
        elif key == "messages":
            yield from each(objects(stream, where), partial(_message, thread, reading))


def _message(thread: str, reading: ReadOptions, found: Fields, where: str) -> Item:
    if str(found.raw("type")) not in _MESSAGES:
        return NOTICE
    text, parts = _content(found)
    kind = "sticker" if found.items("stickers") and not text else None
    forwarded = found.raw("forwardedMessage")
    if isinstance(forwarded, dict):
        inner, more = _content(Fields(forwarded))
        text, parts, kind = lines(text, f"Forwarded: {inner}" if inner else ""), (*parts, *more), "forward"
    if not text and not parts:
        return NO_WORDS
    author = Fields(found.needed("author"), "the author")
    reference = mapping_of(found, "reference")
    reactions = [
        (mapping_of(given, "emoji").get("name"), given.raw("count")) for given in objects_of(found, "reactions")
    ]
    return ImportedMessage(
        where,
        thread,
        "assistant" if author.raw("isBot") is True else "user",
        text,
        any_moment(found.needed("timestamp"), "timestamp", reading.zone),
        found.text("id"),
        author.text("id"),
        name_of(author, "nickname", "name"),
        parts=parts,
        reply_to=_identifier(reference.get("messageId")) if not isinstance(forwarded, dict) else None,
        kind=kind,
        metadata=filled(edited=found.raw("timestampEdited"), reactions=reaction_counts(reactions)),
    )


def _content(found: Fields) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a message with its embeds, and its files and stickers."""
    content = name_of(found, "content") or ""
    embeds = [_embed(embed, content) for embed in objects_of(found, "embeds")]
    files = [
        attachment(name_of(file, "fileName"), url=file.raw("url"), size=file.raw("fileSizeBytes"))
        for file in objects_of(found, "attachments")
    ]
    stickers = [
        attachment(None, "image/png", url=sticker.raw("sourceUrl"), text=name_of(sticker, "name"))
        for sticker in objects_of(found, "stickers")
    ]
    return lines(content, *embeds), (*files, *stickers)


def _embed(embed: Fields, content: str) -> str:
    """Return the words of an embed: a bot's card, or the preview of a link in the message."""
    title = name_of(embed, "title") or ""
    address = embed.raw("url")
    if not (isinstance(address, str) and address in content):
        title = with_address(title, address)
    author = mapping_of(embed, "author").get("name")
    fields = [
        f"{name_of(field, 'name') or ''}: {name_of(field, 'value') or ''}" for field in objects_of(embed, "fields")
    ]
    footer = mapping_of(embed, "footer").get("text")
    return lines(
        author if isinstance(author, str) else None,
        title,
        name_of(embed, "description"),
        *fields,
        footer if isinstance(footer, str) else None,
    )


def _identifier(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str | int):
        raise InvalidInput("the id of the message replied to must be a text or a number")
    return str(value)
