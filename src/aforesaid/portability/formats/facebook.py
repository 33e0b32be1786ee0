"""Facebook's and Instagram's exports in JSON: folders of `message_1.json`, or one file per encrypted chat.

Their text is UTF-8 that was read as Latin-1 once too often. A file has the newest message first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import DELETED, NO_WORDS, NOTICE, ImportedMessage, Item, Problem, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import (
    Ids,
    attachment,
    each,
    filled,
    from_milliseconds,
    lines,
    mapping_of,
    objects,
    objects_of,
    reaction_counts,
    until_damaged,
)
from aforesaid.portability.row_codec import Fields

FILE: Final = re.compile(r"(?:^|/)message_\d+\.json$")
_MEDIA: Final = (
    ("photos", "image/jpeg", "photo"),
    ("videos", "video/mp4", "video"),
    ("audio_files", "audio/mp4", "voice"),
    ("gifs", "image/gif", "animation"),
    ("files", None, "file"),
)
_NOTICES: Final = re.compile(
    r"^(?:reacted .{1,12} to your message|liked a message|.{1,80} (?:"
    r"sent an attachment|changed the (?:theme|quick reaction|chat theme)\b.*|named the group\b.*|pinned a message"
    r"|(?:started|joined) (?:a|the) (?:video chat|call|audio call)|missed (?:a|your) (?:video |audio )?call.*"
    r"|set the (?:quick reaction|emoji) to .*|voted for .*|created (?:a|this) (?:poll|group)\b.*))\.?$",
    re.IGNORECASE,
)
"""What the apps write in the name of a person, in English."""


def read(source: Source, _: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all chats."""
    chats = [name for name in source.names if FILE.search(name)]
    others = [name for name in source.named(".json") if name not in chats] if not chats else []
    for name in chats or others or source.names[:1]:
        with source.scan(name) as stream:
            head = _head(JsonStream(stream))
        where = f"{name}, message" if len(source.names) > 1 else "message"
        with source.open(name) as stream:
            yield from until_damaged(_messages(JsonStream(stream), where, _thread(head, name)))


def _head(stream: JsonStream) -> dict[str, Any]:
    """Return the fields of a chat, which stand after its messages."""
    head: dict[str, Any] = {}
    with suppress(InvalidInput):  # a damaged file is reported when its messages are read
        for key in stream.members():
            if key in ("title", "thread_path", "threadName"):
                head[key] = stream.value()
    return head


def _messages(stream: JsonStream, where: str, thread: str) -> Iterator[Item]:
    read_message = partial(_message, thread, Ids("facebook"))
    for key in stream.members():
        if key == "messages":
            # The newest message is the first: of messages with the same time, too.
            for _, same_time in groupby(objects(stream, where), _stamp):
                yield from each(list(same_time)[::-1], read_message)


def _stamp(entry: tuple[str, Fields | Problem]) -> object:
    found = entry[1]
    return None if isinstance(found, Problem) else found.raw("timestamp_ms")


def _thread(head: dict[str, Any], name: str) -> str:
    path = head.get("thread_path")
    app = "instagram" if "instagram" in name.casefold() else "facebook"
    if isinstance(path, str) and path:
        return f"{app}:{path.rpartition('/')[2]}"[:255]
    return f"{app}:{repaired(head.get('threadName') or head.get('title')) or 'chat'}"[:255]


def _message(thread: str, ids: Ids, found: Fields, where: str) -> Item:
    sender = repaired(found.raw("sender_name") or found.raw("senderName")) or "unknown"
    text = repaired(found.raw("content") or found.raw("text")).strip()
    if found.raw("is_unsent") is True or found.raw("isUnsent") is True:
        return DELETED
    if found.has("call_duration") or found.raw("type") in ("Call", "Subscribe", "Unsubscribe", "call"):
        return NOTICE
    parts, kind = _parts(found)
    share = Fields(mapping_of(found, "share"))
    text = lines(
        "" if _NOTICES.match(text) else text,
        *(words for key in ("share_text", "link") if (words := repaired(share.raw(key))) not in text),
    )
    if not text and not parts:
        return NOTICE if found.has("content") else NO_WORDS
    stamp = found.raw("timestamp_ms") if found.has("timestamp_ms") else found.raw("timestamp")
    at = from_milliseconds(stamp, "timestamp_ms")
    reactions = [(repaired(given.raw("reaction")), 1) for given in objects_of(found, "reactions")]
    return ImportedMessage(
        where,
        thread,
        "user",
        text,
        at,
        ids.of(at, thread, sender, text, *(part.url for part in parts)),
        sender,
        sender,
        parts=parts,
        kind=kind if not text else None,
        metadata=filled(reactions=reaction_counts(reactions)),
    )


def _parts(found: Fields) -> tuple[tuple[Part, ...], str | None]:
    parts: list[Part] = []
    first: str | None = None
    for field, media_type, kind in _MEDIA:
        for file in objects_of(found, field):
            parts.append(_file(file, media_type))
            first = first or kind
    for file in objects_of(found, "media"):
        parts.append(_file(file, None))
        first = first or "media"
    sticker = mapping_of(found, "sticker")
    if sticker:
        parts.append(_file(Fields(sticker), "image/png"))
        first = first or "sticker"
    return tuple(parts), first


def _file(file: Fields, media_type: str | None) -> Part:
    path = repaired(file.raw("uri")) or None
    name = path.rpartition("/")[2] if path else None
    known = attachment(name).media_type
    return attachment(name, known or media_type, url=path)


def repaired(value: object) -> str:
    """Return a text whose UTF-8 bytes were written as separate characters; other texts are returned as they are."""
    if not isinstance(value, str):
        return ""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
