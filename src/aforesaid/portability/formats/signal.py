"""Signal's exports: `main.jsonl` of Signal's own export of chats, and `data.json` or `chat.md` of signal-export.

Signal's own export has one frame per line: people, chats, then messages. signal-export writes a folder per chat.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import IO, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.extras import re
from aforesaid.portability.formats.base import (
    DELETED,
    MISSING_MEDIA,
    NO_WORDS,
    NOTICE,
    Entry,
    Format,
    Ids,
    ImportedMessage,
    Item,
    Skipped,
    attachment,
    filled,
    from_milliseconds,
    in_zone,
    line_objects,
    lines,
    text_lines,
)
from aforesaid.portability.json_stream import Fields

_SETUP: Final = Skipped("frames that are no messages: settings, stickers, folders")
_SELF: Final = "me"
_MARKDOWN: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d[ ,]+\d\d:\d\d(?::\d\d)?)\] ([^:\n]+): ?(.*)$")
_FILE_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\((\./[^)\n]*|\.\./[^)\n]*)\)\s*")
_REACTIONS: Final = re.compile(r"\n\(- .* -\)")
_STICKER: Final = re.compile(r"\n?\(\( (.*?) \)\)")


def looks_like(head: str) -> bool:
    return any(_MARKDOWN.match(line) for line in head.splitlines()[:5])


class Signal(Format):
    app = "signal"
    _thread = ""

    def files(self) -> list[str]:
        logs = self.source.called("data.json")
        pages = self.source.called("chat.md", "index.md") if not logs else []
        return [*self.source.called("main.jsonl"), *logs, *pages] or self.source.names[:1]

    def items(self, name: str) -> Iterator[Item]:
        folder, _, file = name.rpartition("/")
        folder = folder.rpartition("/")[2] or self.source.path.expanduser().absolute().parent.name
        self._thread = f"signal:{folder}"[:255]
        self.ids = Ids("signal")
        self._people: dict[str, tuple[str, str]] = {}
        """The id that lasts and the name of each recipient, by its number in this file."""
        self._chats: dict[str, str] = {}
        kind = {"main.jsonl": "frames", "data.json": "entries", "chat.md": "page", "index.md": "page"}.get(file.lower())
        if kind is None:
            head = self.source.head(name).lstrip()
            kind = "entries" if b'"sender"' in head.partition(b"\n")[0] else "frames"
            kind = kind if head.startswith(b"{") else "page"
        self._has_frames = kind == "frames"
        if kind != "page":
            yield from super().items(name)
            return
        with self.source.open(name) as stream:
            yield from self._page(stream)

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:  # noqa: ARG002
        return line_objects(stream)

    def record(self, found: Fields, where: str) -> Item:
        if not self._has_frames:
            return self._entry(found, where)
        if found.has("recipient"):
            self._recipient(Fields(found.raw("recipient"), "the recipient"))
        elif found.has("chat"):
            chat = Fields(found.raw("chat"), "the chat")
            self._chats[str(chat.raw("id"))] = f"signal:{self._person(chat.raw('recipientId'))[0]}"
        elif found.has("chatItem"):
            return self._message(Fields(found.raw("chatItem"), "the message"), where)
        return _SETUP

    def _recipient(self, found: Fields) -> None:
        number = str(found.raw("id"))
        contact, group = Fields(found.raw("contact") or {}), Fields(found.raw("group") or {})
        if found.has("self"):
            self._people[number] = self.reading.user, ""
        elif found.has("group"):
            title = group.inner("snapshot").inner("title").raw("title")
            self._people[number] = group.words("masterKey") or str(title or number), str(title or "")
        else:
            nickname = contact.inner("nickname")
            names = (
                [nickname.raw("given"), nickname.raw("family")],
                [contact.words("systemGivenName"), contact.words("systemFamilyName")],
                [contact.words("profileGivenName"), contact.words("profileFamilyName")],
            )
            shown = next((" ".join(filter(None, each)) for each in names if any(each)), "")
            lasting = contact.words("e164", "username", "aci", "pni")
            number_with_plus = f"+{lasting}" if lasting and lasting.isdecimal() else lasting
            self._people[number] = number_with_plus or shown or f"signal-{number}", shown

    def _person(self, number: object) -> tuple[str, str]:
        return self._people.get(str(number), (str(number), ""))

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
        # Signal identifies a message by its author and the millisecond of sending.
        sent, (author, name) = found.needed("dateSent"), self._person(found.raw("authorId"))
        quote = inner.inner("quote")
        answered, by = quote.raw("targetSentTimestamp"), self._person(quote.raw("authorId"))[0]
        return ImportedMessage(
            where,
            self._chats.get(str(found.raw("chatId")), f"signal:{found.raw('chatId')}")[:255],
            "user",
            text,
            from_milliseconds(sent, "dateSent"),
            f"{sent}-{author}"[:255],
            author,
            name or None,
            parts=parts,
            reply_to=None if answered in (None, "0", 0) else f"{answered}-{by}"[:255],
            kind=kind,
            metadata=filled(
                edited=bool(found.items("revisions")) or None,
                reactions=((given.raw("emoji"), 1) for given in inner.objects("reactions")),
            ),
        )

    def _entry(self, found: Fields, where: str) -> Item:
        """Return a message of signal-export's JSON lines."""
        if found.raw("deleted") is True:
            return DELETED
        if found.raw("call") is True or found.raw("missed") is True:
            return NOTICE
        text = (found.words("body") or "").strip()
        sticker = found.inner("sticker")
        files = [attachment(file.words("name"), url=file.raw("path")) for file in found.objects("attachments")]
        if sticker.values:
            files.append(attachment(None, "image/webp", text=sticker.raw("emoji")))
        if not text and not files:
            return NO_WORDS
        at = self.moment(found.needed("date"), "date")
        sender = found.text("sender")
        return ImportedMessage(
            where,
            self._thread,
            "user",
            text,
            at,
            self.ids.of(at, self._thread, sender, text),
            self.reading.user if sender.casefold() == _SELF else sender,
            sender,
            parts=tuple(files),
            kind="sticker" if sticker.values and not text else None,
            metadata=filled(
                reactions=((each[1], 1) for each in found.items("reactions") if isinstance(each, list) and each[1:]),
                quote=(found.words("quote") or "").strip(" >\n"),
            ),
        )

    def _page(self, stream: IO[bytes]) -> Iterator[Item]:
        """Yield the messages of signal-export's Markdown."""
        current: tuple[str, datetime, str, list[str]] | None = None
        for number, text in text_lines(stream):
            match = _MARKDOWN.match(text)
            if match is None:
                if current is not None:
                    current[3].append(text)
                continue
            if current is not None:
                yield self._paragraph(*current)
            try:
                at = in_zone(datetime.fromisoformat(match[1].replace(", ", " ")), self.reading.zone, "the time")
            except ValueError:
                raise InvalidInput(f"line {number}: its time cannot be read") from None
            current = f"line {number}", at, match[2].strip(), [match[3]]
        if current is not None:
            yield self._paragraph(*current)

    def _paragraph(self, where: str, at: datetime, sender: str, rows: list[str]) -> Item:
        text = _REACTIONS.sub("", "\n".join(row for row in rows if not row.startswith(">")))
        if text.strip() == "(This message was deleted)":
            return DELETED
        files = [attachment(name, url=path) for name, path in _FILE_LINK.findall(text)]
        files += [attachment(None, "image/webp", text=emoji) for emoji in _STICKER.findall(text)]
        text = _STICKER.sub("", _FILE_LINK.sub("", text)).strip()
        if not text and not files:
            return NO_WORDS
        author = self.reading.user if sender.casefold() == _SELF else sender
        number = self.ids.of(at, self._thread, sender, text)
        return ImportedMessage(where, self._thread, "user", text, at, number, author, sender, parts=tuple(files))


def _content(found: Fields) -> tuple[str, tuple[Part, ...], str | None, Fields]:
    """Return the text, the files and the kind of a message, and the object that has them."""
    standard = Fields(found.raw("standardMessage") or found.raw("directStoryReplyMessage") or {})
    if found.has("stickerMessage"):
        inner = Fields(found.raw("stickerMessage"))
        return "", (attachment(None, "image/webp", text=inner.inner("sticker").raw("emoji")),), "sticker", inner
    if found.has("contactMessage"):
        inner = Fields(found.raw("contactMessage"))
        contact = inner.inner("contact")
        name = contact.inner("name")
        names = " ".join(str(name.raw(key)) for key in ("givenName", "familyName") if name.raw(key))
        values = [str(each.raw("value")) for each in (*contact.objects("number"), *contact.objects("email"))]
        return f"Contact: {', '.join(filter(None, [names, *values]))}", (), "contact", inner
    if found.has("poll"):
        inner = Fields(found.raw("poll"))
        options = [f"- {option.words('option') or ''}" for option in inner.objects("options")]
        return lines(f"Poll: {inner.words('question') or ''}", *options), (), "poll", inner
    text = standard.inner("text").raw("body") or standard.inner("textReply").inner("text").raw("body")
    words = text if isinstance(text, str) else ""
    files = standard.objects("attachments")
    parts = tuple(map(_attachment, files))
    is_voice = any(file.raw("flag") in ("VOICE_MESSAGE", 1) for file in files)
    return words, parts, "voice" if is_voice else None if words or not parts else parts[0].type, standard


def _attachment(file: Fields) -> Part:
    pointer = file.inner("pointer")
    where = pointer.inner("locatorInfo")
    size = where.raw("size")
    part = attachment(
        pointer.words("fileName"),
        pointer.words("contentType"),
        size=int(size) if isinstance(size, str) and size.isdecimal() else size,
        text=pointer.words("caption"),
    )
    try:
        # The SHA-256 of the file.
        digest = base64.b64decode(where.words("plaintextHash") or "", validate=True)
    except ValueError:
        return part
    return replace(part, hash=digest.hex()) if len(digest) == 32 else part  # noqa: PLR2004
