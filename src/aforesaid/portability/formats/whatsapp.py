"""WhatsApp's export format: a text file with one line per message, in the language and date format of the phone."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, tzinfo
from importlib.resources import files
from pathlib import PurePosixPath
from typing import IO, Final, Literal, NamedTuple, TypeAlias, get_args

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.extras import re
from aforesaid.portability.formats.base import (
    DELETED,
    MISSING_MEDIA,
    NO_WORDS,
    NOTICE,
    Format,
    Ids,
    ImportedMessage,
    Item,
    Problem,
    Skipped,
    attachment,
    filled,
    in_zone,
    text_lines,
)

_PHRASES: Final = tomllib.loads((files("aforesaid.portability.formats") / "whatsapp.toml").read_text(encoding="utf-8"))
LANGUAGES: Final = tuple(_PHRASES)
_OMITTED, _DELETED, _EDITED, _ATTACHED, _CALL = (
    "|".join(alternative for language in _PHRASES.values() for alternative in language[kind])
    for kind in ("omitted", "deleted", "edited", "attached", "call")
)

OMITTED: Final = re.compile(rf"<(?:{_OMITTED})>|(?:{_OMITTED})|null")
"""A whole line that names media without having it. `null` is a message that can be viewed once."""
OMITTED_FILE: Final = re.compile(rf"(?P<file>[^\n]+?\.\w{{1,5}}) • .{{0,60}}?(?:{_OMITTED})", re.DOTALL | re.IGNORECASE)
"""Such as `report.pdf • 3 pages document omitted`."""
DELETED_NOTICE: Final = re.compile(rf"(?:{_DELETED})[.。]?")
EDITED: Final = re.compile(rf"\s*[\u200e\u200f]?<(?:{_EDITED})[.。]?>\s*$", re.IGNORECASE)
ATTACHED: Final = re.compile(rf"^[\u200e\u200f]*(?P<file>[^\n]+?\.\w{{1,5}}) \((?:{_ATTACHED})\)", re.IGNORECASE)
"""Android's form: `IMG-20260301-WA0001.jpg (file attached)`; a caption follows on the next line."""
CALL: Final = re.compile(rf"(?:{_CALL})(?:[.,،].{{0,60}})?", re.DOTALL)
ENCRYPTED: Final = re.compile(
    r"end-to-end|ende-zu-ende|extremo a extremo|bout en bout|ponta a ponta|ponto a ponto|сквозн|uçtan uca|"
    r"مشفرة|مشفّرة|एंड-टू-एंड|端到端|端對端|エンドツーエンド|종단간|מקצה לקצה|"
    r"totalsträck|ände till ände|ende-til-ende|täysin salat|w pełni szyfrowane|koncov\w+ šifrov|"
    r"наскрізн|criptate integral|διατερματικ|mã hóa (?:hai )?đầu cuối",
    re.IGNORECASE,
)
"""What only the notice about encryption says."""
CHAT_FILE: Final = re.compile(
    r"^(?:.*whatsapp.*?\s(?:with|mit|con|avec|com|met|z|dengan|с контактом|с|مع)\s|.*whatsapp chat\s*-\s*)(?P<name>.+)$"
    r"|^(?P<first>.+?) ile whatsapp sohbeti$",
    re.IGNORECASE,
)
"""The name of an exported file, which has the name of the chat."""


DateOrder: TypeAlias = Literal["dmy", "mdy", "ymd"]
_ORDERS: Final[tuple[DateOrder, ...]] = get_args(DateOrder)

MARKS: Final = "\u200e\u200f"
"""Marks of direction, which WhatsApp puts before everything that it writes itself."""
_INVISIBLE: Final = "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"
_SPACES: Final = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " ", "،": ","})
_NOON_WORDS: Final = (
    r"[ap]\.?\s?m\.?|上午|下午|午前|午後|오전|오후|ص|م|ÖÖ|ÖS|पूर्वाह्न|अपराह्न|vorm\.|nachm\.|de\.|du\.|PTG|PG|SA|CH"
)
_AFTER: Final = re.compile(r"^p(?!g)|下午|午後|오후|م|ÖS|अपराह्न|nachm|du\.|PTG|CH", re.IGNORECASE)
_M: Final = f"[{MARKS}]*"
LINE: Final = re.compile(
    rf"^{_M}\[?{_M}(?P<a>\d{{1,4}}){_M}(?P<separator>[./\-年.]){_M}\s?(?P<b>\d{{1,2}}){_M}[./\-月.]{_M}\s?(?P<c>\d{{1,4}})日?\.?,?"
    rf"{_M}\s+{_M}(?:(?:at|um|a las|à las|à|la)\s+)?"
    rf"(?P<early>{_NOON_WORDS})?\s?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"\s?{_M}(?P<late>{_NOON_WORDS})?{_M}(?:\]\s|\s-\s|\s–\s|:\s)",
    re.IGNORECASE,
)
_LAST_MONTH: Final = 12
_LAST_DAY: Final = 31
_CENTURY: Final = 2_000
_SHORT_YEAR: Final = 100
_BUDDHIST: Final = 2_400
"""Years above this one are counted as in Thailand, 543 years ahead."""
_NAME_CHARACTERS: Final = 100
"""Maximum characters of a person's name. What is longer is a notice that has a colon in it."""
_CANDIDATES: Final = 20_000
"""Maximum possible names with a colon that are counted at a time."""
_ALWAYS: Final = 5
"""Messages that must begin with the same words and a colon before these count as part of the name."""
_QUOTES: Final = re.compile(r"[\"“”„«»「」]")


def parsed_line(line: str) -> tuple[re.Match[str], str] | None:
    """Return the time of a line and what follows it; None for a line that continues a message."""
    visible = line.lstrip(_INVISIBLE)
    # Each character is translated to one, so positions in both texts are the same.
    match = LINE.match(visible.translate(_SPACES))
    return None if match is None else (match, visible[match.end() :])


def looks_like(head: str) -> bool:
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    return any(parsed_line(line) is not None for line in lines[:5])


def moment(match: re.Match[str], order: DateOrder, zone: tzinfo | None) -> datetime:
    """Return the time of a line. Raises ValueError for a time that does not exist."""
    day, month, year = _in_order(match, order)
    year += _CENTURY if year < _SHORT_YEAR else 0
    year -= 543 if year > _BUDDHIST else 0
    hour = int(match["hour"])
    half = match["early"] or match["late"]
    if half is not None:
        hour = hour % 12 + (12 if _AFTER.search(half) else 0)
    at = datetime(year, month, day, hour, int(match["minute"]), int(match["second"] or 0))  # noqa: DTZ001 - a wall clock
    return in_zone(at, zone, "the time")


def _in_order(match: re.Match[str], order: DateOrder) -> tuple[int, int, int]:
    first, second, third = int(match["a"]), int(match["b"]), int(match["c"])
    if order == "dmy":
        return first, second, third
    return (second, first, third) if order == "mdy" else (third, second, first)


class ChatScan:
    """What only a whole chat tells: the order of day and month, and which names have a colon in them."""

    def __init__(self, stream: IO[bytes], title: str) -> None:
        """Scan a chat whose file is named after `title`."""
        self._title = _letters(title)
        self._impossible: Counter[DateOrder] = Counter()
        self._backward: Counter[DateOrder] = Counter()
        self._last: dict[DateOrder, tuple[int, int, int]] = {}
        self._us_style = False
        self._names: Counter[str] = Counter()
        self._longer: Counter[str] = Counter()
        for _, line in text_lines(stream):
            found = parsed_line(line)
            if found is not None:
                self._see_date(found[0])
                self._see_name(found[1])

    @property
    def order(self) -> DateOrder:
        """The order of the date that makes the fewest dates impossible, and time run backward least often."""
        usual: tuple[DateOrder, ...] = ("mdy", "dmy", "ymd") if self._us_style else ("dmy", "mdy", "ymd")
        return min(usual, key=lambda order: (self._impossible[order], self._backward[order]))

    @property
    def people(self) -> list[str]:
        found = (self.split(f"{name}: ") for name in self._names)
        return sorted({name for name, _ in filter(None, found)})

    def split(self, rest: str) -> tuple[str, str] | None:
        """Return the name and the text of a line after its time; None for a notice of the app."""
        found = _candidates(rest)
        if not found:
            return None
        name = found[0]
        for longer in found[1:]:
            always = self._longer[longer] == self._names[name] and self._longer[longer] >= _ALWAYS
            if always or (self._title and _letters(longer) == self._title):
                name = longer
        # Such as: Ann changed the subject to "Plans: summer"
        if len(_QUOTES.findall(name)) % 2 or ENCRYPTED.search(name) or not person(name):
            return None
        return person(name), rest[len(name) + 1 :].removeprefix(" ")

    def _see_date(self, match: re.Match[str]) -> None:
        self._us_style = self._us_style or (match["separator"] == "/" and bool(match["late"]))
        for order in _ORDERS:
            day, month, year = _in_order(match, order)
            if not (1 <= month <= _LAST_MONTH and 1 <= day <= _LAST_DAY):
                self._impossible[order] += 1
                continue
            date = (year, month, day)
            self._backward[order] += date < self._last.get(order, date)
            self._last[order] = date

    def _see_name(self, rest: str) -> None:
        found = _candidates(rest)
        if found:
            self._names[found[0]] += 1
            self._longer.update(found[1:])
        if len(self._longer) > _CANDIDATES:
            self._longer = Counter({name: count for name, count in self._longer.items() if count > 1})


def person(name: str) -> str:
    """Return a name without invisible characters, and without the tilde of people who are not in the contacts."""
    return name.translate(_SPACES).strip(_INVISIBLE + " ").removeprefix("~").strip(_INVISIBLE + " ")


def _candidates(rest: str) -> list[str]:
    """Return what may be the name in a line: everything up to its first, second or third colon."""
    first = rest.partition("\n")[0]
    found: list[str] = []
    at = -1
    while len(found) < 3 and (at := first.find(":", at + 1)) >= 0:  # noqa: PLR2004 - few names have two colons
        if first[at + 1 : at + 2] in (" ", "") and 0 < at <= _NAME_CHARACTERS:
            found.append(first[:at])
    return found


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


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


class _Content(NamedTuple):
    text: str
    parts: tuple[Part, ...] = ()
    kind: str | None = None
    edited: bool = False


class WhatsApp(Format):
    app = "whatsapp"
    endings = (".txt",)

    def items(self, name: str) -> Iterator[Item]:
        title = self._title(name)
        with self.source.scan(name) as stream:
            scan = ChatScan(stream, title)
        people, order = scan.people, scan.order
        thread = f"whatsapp:{title or (', '.join(people) if len(people) == _PAIR else 'chat')}"[:255]
        self.ids = Ids("whatsapp")
        current: tuple[str, datetime] | None = None
        """The position and time of the message whose lines are read."""
        rest = ""
        is_first = True
        with self.source.open(name) as stream:
            for number, line in text_lines(stream):
                found = parsed_line(line)
                if found is None:
                    if current is not None:
                        rest += f"\n{line}"
                    elif line.strip():
                        yield Problem(f"line {number}", "it belongs to no message")
                    continue
                if current is not None:
                    yield self._item(*current, thread, scan.split(rest))
                current, rest = None, found[1]
                # Older iPhones write this notice in the name of the group, without a mark.
                if is_first and ENCRYPTED.search(rest):
                    yield NOTICE
                else:
                    try:
                        current = f"line {number}", moment(found[0], order, self.reading.zone)
                    except (ValueError, InvalidInput) as error:
                        yield Problem(f"line {number}", f"its time cannot be read: {error}")
                is_first = False
            if current is not None:
                yield self._item(*current, thread, scan.split(rest))

    def _title(self, name: str) -> str:
        """Return the name of the chat, which the file or the archive has; an empty string if the name says nothing."""
        # Browsers add a number to the name of a second copy.
        bare = [PurePosixPath(name).name, self.source.path.name]
        bare = [each.removesuffix(".txt").removesuffix(".zip").replace("_", " ") for each in bare]
        stems = [re.sub(r"\s*\(\d+\)$", "", each).strip() for each in bare]
        for stem in stems:
            found = CHAT_FILE.match(stem)
            if found is not None:
                return (found["name"] or found["first"]).strip()
        return next((stem for stem in stems if stem.casefold() not in _NAMELESS), "")

    def _item(self, where: str, at: datetime, thread: str, said: tuple[str, str] | None) -> Item:
        if said is None:
            return NOTICE
        name, text = said
        content = _content(text)
        if isinstance(content, Skipped):
            return content
        number = self.ids.of(at, name, content.text or (content.parts[0].name if content.parts else None))
        return ImportedMessage(
            where,
            thread,
            "user",
            content.text,
            at,
            number,
            name,
            name,
            parts=content.parts,
            kind=content.kind,
            metadata=filled(edited=content.edited or None),
        )


def _content(text: str) -> _Content | Skipped:
    text = text.strip()
    whole = EDITED.sub("", text)
    if whole == text and not _ATTACHED_IN_BRACKETS.search(text):
        last = _MARKED_IN_BRACKETS.search(text)
        if last is not None and last.start() > 0:
            whole = text[: last.start()]
    edited = whole != text
    first, _, rest = whole.partition("\n")
    bare = _plain(whole).casefold()
    if not bare:
        return NO_WORDS
    if DELETED_NOTICE.fullmatch(bare):
        return DELETED
    if CALL.fullmatch(bare):
        return NOTICE
    if OMITTED.fullmatch(_plain(first).casefold()):
        # What follows a picture or file that is not in the export: its caption, or the name of a document.
        caption = _plain(rest)
        if re.fullmatch(r"[^\n]+\.\w{2,5}", caption) and attachment(caption).media_type is not None:
            return _Content("", (attachment(caption),), "file")
        return _Content(caption, edited=edited) if caption else MISSING_MEDIA
    attached = _attached(whole, edited=edited)
    if attached is not None:
        return attached
    plain = _plain(whole)
    document = OMITTED_FILE.fullmatch(plain)
    if document is not None:
        return _Content("", (attachment(document["file"]),), "file")
    if whole[0] in MARKS:
        # Polls and places begin with a mark, as notices do.
        if len(_OPTION.findall(whole)) >= _FEWEST_OPTIONS and "\n" in whole:
            return _Content(plain, kind="poll")
        has_place = "https://maps.google.com/" in plain or "https://foursquare.com/" in plain
        return _Content(plain, kind="location") if has_place else NOTICE
    caption, mark, tail = whole.rpartition("\u200e")
    if mark and OMITTED.fullmatch(_plain(tail).casefold()):
        return _Content(_plain(caption), edited=edited)
    kind = "location" if re.match(r"\S+: https://maps\.google\.com/\?q=", whole) else None
    return _Content(plain, kind=kind, edited=edited)


def _attached(text: str, *, edited: bool) -> _Content | None:
    """Return a message with a file that is in the export, and its caption."""
    found = ATTACHED.match(text) or _MARKED_FILE.match(text)
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


def _plain(text: str) -> str:
    """Return a text without the marks around its lines, and without those around names that are mentioned."""
    without = text.replace("\u2068", "").replace("\u2069", "")
    return "\n".join(line.strip(MARKS + "\u202a\u202c\ufeff") for line in without.split("\n")).strip()
