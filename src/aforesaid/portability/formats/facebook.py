"""Facebook's and Instagram's exports in JSON: folders of `message_1.json`, or one file per encrypted chat.

Their text is UTF-8 that was read as Latin-1 once too often. A file has the newest message first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import IO, Any, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.portability.formats.base import Entry, Format, Ids, attachment, filled, from_milliseconds, lines, objects
from aforesaid.portability.import_items import DELETED, NO_WORDS, NOTICE, ImportedMessage, Item
from aforesaid.portability.json_stream import Fields, JsonStream

FILE: Final = re.compile(r"(?:^|/)message_\d+\.json$")
_MEDIA: Final = (
    ("photos", "image/jpeg", "photo"),
    ("videos", "video/mp4", "video"),
    ("audio_files", "audio/mp4", "voice"),
    ("gifs", "image/gif", "animation"),
    ("files", None, "file"),
    ("media", None, "media"),
)
_NOTICES: Final = re.compile(
    r"^(?:reacted .{1,12} to your message|liked a message|.{1,80} (?:"
    r"sent an attachment|changed the (?:theme|quick reaction|chat theme)\b.*|named the group\b.*|pinned a message"
    r"|(?:started|joined) (?:a|the) (?:video chat|call|audio call)|missed (?:a|your) (?:video |audio )?call.*"
    r"|set the (?:quick reaction|emoji) to .*|voted for .*|created (?:a|this) (?:poll|group)\b.*))\.?$",
    re.IGNORECASE,
)
"""What the apps write in the name of a person, in English."""


class Facebook(Format):
    app = "facebook"
    _thread = ""

    def files(self) -> list[str]:
        chats = [name for name in self.source.names if FILE.search(name)]
        return chats or super().files()

    def items(self, name: str) -> Iterator[Item]:
        # The fields of a chat stand after its messages.
        head: dict[str, Any] = {}
        with self.source.scan(name) as stream, suppress(InvalidInput):  # reported when the messages are read
            chat = JsonStream(stream)
            for key in chat.members():
                if key in ("title", "thread_path", "threadName"):
                    head[key] = chat.value()
        path = head.get("thread_path")
        title = repaired(head.get("threadName") or head.get("title")) or "chat"
        app = "instagram" if "instagram" in name.casefold() else "facebook"
        self._thread = f"{app}:{path.rpartition('/')[2] if isinstance(path, str) and path else title}"[:255]
        self.ids = Ids("facebook")
        yield from super().items(name)

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        where = f"{name}, message" if len(self.source.names) > 1 else "message"
        chat = JsonStream(stream)
        for key in chat.members():
            if key == "messages":
                # The newest message is the first: of messages with the same time, too.
                for _, same_time in groupby(objects(chat, where), _stamp):
                    yield from list(same_time)[::-1]

    def record(self, found: Fields, where: str) -> Item:
        sender = repaired(found.raw("sender_name") or found.raw("senderName")) or "unknown"
        text = repaired(found.raw("content") or found.raw("text")).strip()
        if found.raw("is_unsent") is True or found.raw("isUnsent") is True:
            return DELETED
        if found.has("call_duration") or found.raw("type") in ("Call", "Subscribe", "Unsubscribe", "call"):
            return NOTICE
        files = [(file, media_type, kind) for field, media_type, kind in _MEDIA for file in found.objects(field)]
        if found.inner("sticker").values:
            files.append((found.inner("sticker"), "image/png", "sticker"))
        parts: list[Part] = []
        for file, media_type, _ in files:
            path = repaired(file.raw("uri"))
            name = path.rpartition("/")[2]
            parts.append(attachment(name, attachment(name).media_type or media_type, url=path))
        share = found.inner("share")
        text = lines(
            "" if _NOTICES.match(text) else text,
            *(words for key in ("share_text", "link") if (words := repaired(share.raw(key))) not in text),
        )
        if not text and not parts:
            return NOTICE if found.has("content") else NO_WORDS
        stamp = found.raw("timestamp_ms") if found.has("timestamp_ms") else found.raw("timestamp")
        at = from_milliseconds(stamp, "timestamp_ms")
        return ImportedMessage(
            where,
            self._thread,
            "user",
            text,
            at,
            self.ids.of(at, self._thread, sender, text, *(part.url for part in parts)),
            sender,
            sender,
            parts=tuple(parts),
            kind=files[0][2] if files and not text else None,
            metadata=filled(reactions=((repaired(given.raw("reaction")), 1) for given in found.objects("reactions"))),
        )


def _stamp(entry: Entry) -> object:
    return entry[1].get("timestamp_ms") if isinstance(entry[1], dict) else None


def repaired(value: object) -> str:
    """Return a text whose UTF-8 bytes were written as separate characters; other texts are returned as they are."""
    if not isinstance(value, str):
        return ""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
