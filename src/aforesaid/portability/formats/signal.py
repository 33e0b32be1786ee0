"""Signal's exports: `main.jsonl` of Signal's own export of chats, and `data.json` or `chat.md` of signal-export.

Signal's own export has one frame per line: people, chats, then messages. signal-export writes a folder per chat.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import IO, Any, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import (
    DELETED,
    MISSING_MEDIA,
    NO_WORDS,
    NOTICE,
    ImportedMessage,
    Item,
    ReadOptions,
    Skipped,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import numbered_lines
from aforesaid.portability.reader_helpers import (
    Ids,
    any_moment,
    attachment,
    each,
    filled,
    from_milliseconds,
    in_zone,
    line_objects,
    lines,
    mapping_of,
    name_of,
    objects_of,
    reaction_counts,
    until_damaged,
)
from aforesaid.portability.row_codec import Fields

_SETUP: Final = Skipped("frames that are no messages: settings, stickers, folders")
_SELF: Final = "me"
_MARKDOWN: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d[ ,]+\d\d:\d\d(?::\d\d)?)\] ([^:\n]+): ?(.*)$")
_FILE_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\((\./[^)\n]*|\.\./[^)\n]*)\)\s*")
_REACTIONS: Final = re.compile(r"\n\(- .* -\)")
_STICKER: Final = re.compile(r"\n?\(\( (.*?) \)\)")


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all chats."""
    frames = source.called("main.jsonl")
    logs = source.called("data.json")
    pages = source.called("chat.md", "index.md") if not logs else []
    if not (frames or logs or pages):
        first = source.names[0]
        frames, logs, pages = _by_content(source, first)
    for name in frames:
        with source.open(name) as stream:
            yield from until_damaged(each(line_objects(stream), _Frames(reading).frame))
    for name in logs:
        with source.open(name) as stream:
            thread = _thread(name, source)
            yield from until_damaged(each(line_objects(stream), partial(_entry, thread, Ids("signal"), reading)))
    for name in pages:
        with source.open(name) as stream:
            yield from _page(stream, _thread(name, source), reading)


def looks_like(head: str) -> bool:
    """Return whether a text begins like the Markdown of signal-export."""
    return any(_MARKDOWN.match(line) for line in head.splitlines()[:5])


def _by_content(source: Source, name: str) -> tuple[list[str], list[str], list[str]]:
    head = source.head(name).lstrip()
    if not head.startswith(b"{"):
        return [], [], [name]
    return ([], [name], []) if b'"sender"' in head.partition(b"\n")[0] else ([name], [], [])


def _thread(name: str, source: Source) -> str:
    folder = name.rpartition("/")[0].rpartition("/")[2] or source.path.expanduser().absolute().parent.name
    return f"signal:{folder}"[:255]


@dataclass(slots=True)
class _Frames:
    """Reads the frames of Signal's own export, and remembers the people and chats that messages refer to."""

    reading: ReadOptions
    people: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The id that lasts and the name of each recipient, by its number in this file."""
    chats: dict[str, str] = field(default_factory=dict)

    def frame(self, found: Fields, where: str) -> Item:
        """Return the message of a frame."""
        if found.has("recipient"):
            self._recipient(Fields(found.raw("recipient"), "the recipient"))
        elif found.has("chat"):
            chat = Fields(found.raw("chat"), "the chat")
            number = str(chat.raw("recipientId"))
            self.chats[str(chat.raw("id"))] = f"signal:{self.people.get(number, (number, ''))[0]}"
        elif found.has("chatItem"):
            return self._message(Fields(found.raw("chatItem"), "the message"), where)
        return _SETUP

    def _recipient(self, found: Fields) -> None:
        number = str(found.raw("id"))
        contact, group = Fields(found.raw("contact") or {}), Fields(found.raw("group") or {})
        if found.has("self"):
            self.people[number] = self.reading.user, ""
        elif found.has("group"):
            title = mapping_of(Fields(mapping_of(group, "snapshot")), "title").get("title")
            self.people[number] = name_of(group, "masterKey") or str(title or number), str(title or "")
        else:
            names = [name_of(contact, "profileGivenName"), name_of(contact, "profileFamilyName")]
            own = [mapping_of(contact, "nickname").get("given"), mapping_of(contact, "nickname").get("family")]
            system = [name_of(contact, "systemGivenName"), name_of(contact, "systemFamilyName")]
            shown = next((" ".join(filter(None, each)) for each in (own, system, names) if any(each)), "")
            lasting = name_of(contact, "e164", "username", "aci", "pni")
            number_with_plus = f"+{lasting}" if lasting and lasting.isdecimal() else lasting
            self.people[number] = number_with_plus or shown or f"signal-{number}", shown

    def _message(self, found: Fields, where: str) -> Item:
        if found.has("remoteDeletedMessage"):
            return DELETED
        if found.has("updateMessage") or found.has("directionless") or found.has("paymentNotification"):
            return NOTICE
        if found.has("viewOnceMessage"):
            return MISSING_MEDIA
        text, parts, kind, inner = _content(found)
        if not text and not parts:
            return NO_WORDS
        sent = found.needed("dateSent")
        author, name = self.people.get(str(found.raw("authorId")), (str(found.raw("authorId")), ""))
        quote = mapping_of(inner, "quote")
        reactions = [(given.raw("emoji"), 1) for given in objects_of(inner, "reactions")]
        return ImportedMessage(
            where,
            self.chats.get(str(found.raw("chatId")), f"signal:{found.raw('chatId')}")[:255],
            "user",
            text,
            from_milliseconds(sent, "dateSent"),
            _number(author, sent),
            author,
            name or None,
            parts=parts,
            reply_to=self._quoted(quote),
            kind=kind,
            metadata=filled(
                edited=bool(found.items("revisions")) or None,
                reactions=reaction_counts(reactions),
            ),
        )

    def _quoted(self, quote: Any) -> str | None:  # noqa: ANN401 - whatever JSON holds
        sent = quote.get("targetSentTimestamp")
        if sent in (None, "0", 0):
            return None
        return _number(self.people.get(str(quote.get("authorId")), (str(quote.get("authorId")), ""))[0], sent)


def _number(author: str, sent: object) -> str:
    """Return the id of a message: Signal identifies one by its author and the millisecond of sending."""
    return f"{sent}-{author}"[:255]


def _content(found: Fields) -> tuple[str, tuple[Part, ...], str | None, Fields]:
    """Return the text, the files and the kind of a message, and the object that has them."""
    standard = Fields(found.raw("standardMessage") or found.raw("directStoryReplyMessage") or {})
    if found.has("stickerMessage"):
        inner = Fields(found.raw("stickerMessage"))
        emoji = mapping_of(inner, "sticker").get("emoji")
        return "", (attachment(None, "image/webp", text=emoji),), "sticker", inner
    if found.has("contactMessage"):
        inner = Fields(found.raw("contactMessage"))
        return _contact(Fields(mapping_of(inner, "contact"))), (), "contact", inner
    if found.has("poll"):
        inner = Fields(found.raw("poll"))
        options = [f"- {name_of(option, 'option') or ''}" for option in objects_of(inner, "options")]
        return lines(f"Poll: {name_of(inner, 'question') or ''}", *options), (), "poll", inner
    text = mapping_of(standard, "text").get("body") or mapping_of(
        Fields(mapping_of(standard, "textReply")), "text"
    ).get("body")
    parts = tuple(_attachment(file) for file in objects_of(standard, "attachments"))
    is_voice = any(file.raw("flag") in ("VOICE_MESSAGE", 1) for file in objects_of(standard, "attachments"))
    words = text if isinstance(text, str) else ""
    return words, parts, "voice" if is_voice else None if words or not parts else parts[0].type, standard


def _attachment(file: Fields) -> Part:
    pointer = Fields(mapping_of(file, "pointer"))
    where = mapping_of(pointer, "locatorInfo")
    size = where.get("size")
    part = attachment(
        name_of(pointer, "fileName"),
        name_of(pointer, "contentType"),
        size=int(size) if isinstance(size, str) and size.isdecimal() else size,
        text=name_of(pointer, "caption"),
    )
    return Part(
        part.type, part.text, part.url, part.media_type, part.name, _hash(where.get("plaintextHash")), part.size
    )


def _hash(value: object) -> str | None:
    """Return the SHA-256 of a file in hexadecimal digits, from base64."""
    if not isinstance(value, str):
        return None
    try:
        digest = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return digest.hex() if len(digest) == 32 else None  # noqa: PLR2004 - bytes of a SHA-256


def _contact(contact: Fields) -> str:
    name = mapping_of(contact, "name")
    names = [str(name[key]) for key in ("givenName", "familyName") if name.get(key)]
    values = [str(each.raw("value")) for each in (*objects_of(contact, "number"), *objects_of(contact, "email"))]
    return f"Contact: {', '.join(filter(None, [' '.join(names), *values]))}"


def _entry(thread: str, ids: Ids, reading: ReadOptions, found: Fields, where: str) -> Item:
    """Return a message of signal-export's JSON lines."""
    if found.raw("deleted") is True:
        return DELETED
    if found.raw("call") is True or found.raw("missed") is True:
        return NOTICE
    text = (name_of(found, "body") or "").strip()
    sticker = mapping_of(found, "sticker")
    files = [attachment(name_of(file, "name"), url=file.raw("path")) for file in objects_of(found, "attachments")]
    if sticker:
        files.append(attachment(None, "image/webp", text=sticker.get("emoji")))
    if not text and not files:
        return NO_WORDS
    at = any_moment(found.needed("date"), "date", reading.zone)
    sender = found.text("sender")
    reactions = [(each[1], 1) for each in found.items("reactions") if isinstance(each, list) and len(each) > 1]
    return ImportedMessage(
        where,
        thread,
        "user",
        text,
        at,
        ids.of(at, thread, sender, text),
        reading.user if sender.casefold() == _SELF else sender,
        sender,
        parts=tuple(files),
        kind="sticker" if sticker and not text else None,
        metadata=filled(reactions=reaction_counts(reactions), quote=(name_of(found, "quote") or "").strip(" >\n")),
    )


def _page(stream: IO[bytes], thread: str, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of signal-export's Markdown."""
    ids = Ids("signal")
    current: tuple[str, datetime, str, list[str]] | None = None
    for number, line in numbered_lines(stream):
        text = "" if line is None else line.decode(errors="surrogateescape").rstrip("\r\n")
        match = _MARKDOWN.match(text)
        if match is None:
            if current is not None:
                current[3].append(text)
            continue
        if current is not None:
            yield _paragraph(current, thread, ids, reading)
        try:
            at = in_zone(datetime.fromisoformat(match[1].replace(", ", " ")), reading.zone, "the time")
        except ValueError:
            raise InvalidInput(f"line {number}: its time cannot be read") from None
        current = f"line {number}", at, match[2].strip(), [match[3]]
    if current is not None:
        yield _paragraph(current, thread, ids, reading)


def _paragraph(found: tuple[str, datetime, str, list[str]], thread: str, ids: Ids, reading: ReadOptions) -> Item:
    where, at, sender, rows = found
    text = _REACTIONS.sub("", "\n".join(row for row in rows if not row.startswith(">")))
    if text.strip() == "(This message was deleted)":
        return DELETED
    parts = tuple(attachment(name, url=path) for name, path in _FILE_LINK.findall(text))
    stickers = tuple(attachment(None, "image/webp", text=emoji) for emoji in _STICKER.findall(text))
    text = _STICKER.sub("", _FILE_LINK.sub("", text)).strip()
    if not text and not parts and not stickers:
        return NO_WORDS
    author = reading.user if sender.casefold() == _SELF else sender
    number = ids.of(at, thread, sender, text)
    return ImportedMessage(where, thread, "user", text, at, number, author, sender, parts=(*parts, *stickers))
