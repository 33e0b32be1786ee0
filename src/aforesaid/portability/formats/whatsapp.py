"""WhatsApp's export format: a text file with one line per message, in the language and date format of the phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.portability.formats import whatsapp_phrases as phrases
from aforesaid.portability.formats.whatsapp_lines import MARKS, ChatScan, chat_lines, looks_like, moment, parsed_line
from aforesaid.portability.import_items import (
    DELETED,
    MISSING_MEDIA,
    NO_WORDS,
    NOTICE,
    ImportedMessage,
    Item,
    Problem,
    ReadOptions,
    Skipped,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.reader_helpers import Ids, attachment, filled

__all__ = ["looks_like", "read"]

_MARK: Final = f"[{MARKS}]"
_ATTACHED_IN_BRACKETS: Final = re.compile(rf"{_MARK}*<[^<>:\n]{{2,30}}:[\s{MARKS}]*(?P<file>[^<>\n]+\.\w{{1,5}})>")
"""The form of iPhones: `<attached: 00000012-PHOTO-2026-03-01-10-00-00.jpg>`, after a caption."""
_IPHONE_FILE: Final = re.compile(r"\d{8}-[A-Z]+-")
_MARKED_IN_BRACKETS: Final = re.compile(rf"\s*{_MARK}<[^<>\n]{{3,60}}>\s*$")
_MARKED_FILE: Final = re.compile(rf"^{_MARK}+(?P<file>[^\n]+?\.\w{{1,5}}) \([^()\n]{{3,40}}\)")
_OPTION: Final = re.compile(rf"^{_MARK}\S[^:\n]{{1,30}}: ", re.MULTILINE)
_KINDS: Final = (
    ("PTT", "voice"),
    ("AUDIO", "voice"),
    ("AUD", "audio"),
    ("STK", "sticker"),
    ("STICKER", "sticker"),
    ("IMG", "photo"),
    ("PHOTO", "photo"),
    ("VID", "video"),
    ("GIF", "animation"),
)
_FEWEST_OPTIONS: Final = 2
_PAIR: Final = 2
_NAMELESS: Final = ("", "-", "chat", "file", "uploaded", "whatsapp", "export")
"""Names of files that say nothing about the chat."""


@dataclass(slots=True)
class _Line:
    where: str
    at: datetime
    rest: str


@dataclass(frozen=True, slots=True)
class _Content:
    """What somebody sent."""

    text: str
    parts: tuple[Part, ...] = ()
    kind: str | None = None
    edited: bool = False


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of every chat."""
    for name in source.named(".txt") or source.names[:1]:
        title = _title(source, name)
        scan = ChatScan(title)
        with source.scan(name) as stream:
            scan.read(stream)
        thread = title or (", ".join(scan.people) if len(scan.people) == _PAIR else "chat")
        with source.open(name) as stream:
            yield from _items(chat_lines(stream), scan, f"whatsapp:{thread}"[:255], reading)


def _title(source: Source, name: str) -> str:
    """Return the name of the chat, which the file or the archive has; an empty string if the name says nothing."""
    stems = [_stem(PurePosixPath(name).name), _stem(source.path.name)]
    for stem in stems:
        found = phrases.CHAT_FILE.match(stem)
        if found is not None:
            return (found["name"] or found["first"]).strip()
    return next((stem for stem in stems if stem.casefold() not in _NAMELESS), "")


def _stem(name: str) -> str:
    """Return the name of a file without its ending, and without the number that browsers add to a second copy."""
    bare = name.removesuffix(".txt").removesuffix(".zip").replace("_", " ")
    return re.sub(r"\s*\(\d+\)$", "", bare).strip()


def _items(lines: Iterator[tuple[int, str]], scan: ChatScan, thread: str, reading: ReadOptions) -> Iterator[Item]:
    ids, order, current = Ids("whatsapp"), scan.order, None
    is_first = True
    for number, line in lines:
        found = parsed_line(line)
        if found is None:
            if current is not None:
                current.rest += f"\n{line}"
            elif line.strip():
                yield Problem(f"line {number}", "it belongs to no message")
            continue
        if current is not None:
            yield _item(current, scan, thread, ids)
        current = None
        if is_first and phrases.ENCRYPTED.search(found[1]):
            # Older iPhones write this notice in the name of the group, without a mark.
            yield NOTICE
            is_first = False
            continue
        is_first = False
        try:
            current = _Line(f"line {number}", moment(found[0], order, reading.zone), found[1])
        except (ValueError, InvalidInput) as error:
            yield Problem(f"line {number}", f"its time cannot be read: {error}")
    if current is not None:
        yield _item(current, scan, thread, ids)


def _item(line: _Line, scan: ChatScan, thread: str, ids: Ids) -> Item:
    found = scan.split(line.rest)
    if found is None:
        return NOTICE
    name, text = found
    content = _content(text)
    if isinstance(content, Skipped):
        return content
    number = ids.of(line.at, name, content.text or (content.parts[0].name if content.parts else None))
    return ImportedMessage(
        line.where,
        thread,
        "user",
        content.text,
        line.at,
        number,
        name,
        name,
        parts=content.parts,
        kind=content.kind,
        metadata=filled(edited=content.edited or None),
    )


def _content(text: str) -> _Content | Skipped:
    """Return what a person sent, or why it is left out."""
    whole, edited = _without_edit_mark(text.strip())
    first, _, rest = whole.partition("\n")
    bare = _plain(whole).casefold()
    if not bare:
        return NO_WORDS
    if phrases.DELETED.fullmatch(bare):
        return DELETED
    if phrases.CALL.fullmatch(bare):
        return NOTICE
    if phrases.OMITTED.fullmatch(_plain(first).casefold()):
        return _omitted(_plain(rest), edited=edited)
    attached = _attached(whole, edited=edited)
    if attached is not None:
        return attached
    document = phrases.OMITTED_FILE.fullmatch(_plain(whole))
    if document is not None:
        return _Content("", (attachment(document["file"]),), "file")
    if whole[0] in MARKS:
        return _marked(whole)
    caption, mark, tail = whole.rpartition("\u200e")
    if mark and phrases.OMITTED.fullmatch(_plain(tail).casefold()):
        return _Content(_plain(caption), edited=edited)
    kind = "location" if re.match(r"\S+: https://maps\.google\.com/\?q=", whole) else None
    return _Content(_plain(whole), kind=kind, edited=edited)


def _without_edit_mark(text: str) -> tuple[str, bool]:
    shorter = phrases.EDITED.sub("", text)
    if shorter == text and not _ATTACHED_IN_BRACKETS.search(text):
        last = _MARKED_IN_BRACKETS.search(text)
        if last is not None and last.start() > 0:
            shorter = text[: last.start()]
    return shorter, shorter != text


def _omitted(rest: str, *, edited: bool) -> _Content | Skipped:
    """Return what follows a picture or file that is not in the export: its caption, or the name of a document."""
    if not rest:
        return MISSING_MEDIA
    if "\n" not in rest and re.fullmatch(r"[^\n]+\.\w{2,5}", rest) and attachment(rest).media_type is not None:
        return _Content("", (attachment(rest),), "file")
    return _Content(rest, edited=edited)


def _attached(text: str, *, edited: bool) -> _Content | None:
    """Return a message with a file that is in the export, and its caption."""
    found = phrases.ATTACHED.match(text) or _MARKED_FILE.match(text)
    if found is None:
        found = _ATTACHED_IN_BRACKETS.search(text)
        if found is None or not (_IPHONE_FILE.match(found["file"]) or found[0][0] in MARKS):
            return None
    file = found["file"].strip(MARKS + " ")
    caption = _plain(f"{text[: found.start()]}\n{text[found.end() :]}")
    # iPhones write the number of pages of a document before its file.
    if re.fullmatch(rf"{re.escape(file)} • .*|[^\n]+\.\w{{1,5}} • [^\n]*", caption):
        caption = ""
    words = re.split(r"[-.]", file.upper())[:2]
    kind = next((kind for word, kind in _KINDS if word in words), "contact" if file.endswith(".vcf") else "file")
    return _Content(caption, (attachment(file),), kind, edited)


def _marked(text: str) -> _Content | Skipped:
    """Return a poll or a place, which begin with a mark as notices do."""
    if len(_OPTION.findall(text)) >= _FEWEST_OPTIONS and "\n" in text:
        return _Content(_plain(text), kind="poll")
    plain = _plain(text)
    if "https://maps.google.com/" in plain or "https://foursquare.com/" in plain:
        return _Content(plain, kind="location")
    return NOTICE


def _plain(text: str) -> str:
    """Return a text without the marks around its lines, and without those around names that are mentioned."""
    without = text.replace("\u2068", "").replace("\u2069", "")
    return "\n".join(line.strip(MARKS + "\u202a\u202c\ufeff") for line in without.split("\n")).strip()
