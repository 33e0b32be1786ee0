"""WhatsApp's export format: a text file with one line per message, in the date format of the phone's locale."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import IO, Final, Literal, TypeAlias

from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import ImportedMessage, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_lines import numbered_lines
from aforesaid.portability.reader_helpers import Ids, in_zone

Order: TypeAlias = Literal["dmy", "mdy", "ymd"]

_INVISIBLE: Final = "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"
_SPACES: Final = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " ", "،": ","})
_NOON_WORDS: Final = r"[ap]\.?\s?m\.?|上午|下午|午前|午後|오전|오후|ص|م"
_AFTER: Final = re.compile(r"p|下午|午後|오후|م", re.IGNORECASE)
LINE: Final = re.compile(
    r"^\[?(?P<a>\d{1,4})[./\-年.]\s?(?P<b>\d{1,2})[./\-月.]\s?(?P<c>\d{1,4})日?\.?,?\s+(?:(?:at|um|à las|à|la)\s+)?"
    rf"(?P<early>{_NOON_WORDS})?\s?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"\s?(?P<late>{_NOON_WORDS})?(?:\]\s|\s-\s|\s–\s|:\s)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_LAST_MONTH: Final = 12
_CENTURY: Final = 2_000
_SHORT_YEAR: Final = 100


@dataclass(slots=True)
class _Message:
    where: str
    at: datetime
    rest: str


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of every chat."""
    for name in source.named(".txt") or source.names[:1]:
        chat = name.rpartition("/")[2].removesuffix(".txt").removeprefix("WhatsApp Chat with ").strip("_ ") or "chat"
        order = _order(_sample(io.BytesIO(source.head(name))))
        with source.open(name) as stream:
            yield from _items(_lines(stream), order, f"whatsapp:{chat}"[:255], reading)


def looks_like(head: str) -> bool:
    """Return whether a text begins like a WhatsApp chat."""
    lines = [_clean(line) for line in head.splitlines()[:20] if line.strip()]
    return any(LINE.match(line) for line in lines[:5])


def _items(lines: Iterator[tuple[int, str]], order: Order, thread: str, reading: ReadOptions) -> Iterator[Item]:
    ids, current = Ids("whatsapp"), None
    for number, line in lines:
        match = LINE.match(_clean(line))
        if match is None:
            if current is not None:
                current.rest += f"\n{line}"
            elif line.strip():
                yield Problem(f"line {number}", "it belongs to no message")
            continue
        if current is not None:
            yield _item(current, thread, ids)
        current = None
        try:
            current = _Message(f"line {number}", _moment(match, order, reading.zone), match["rest"])
        except (ValueError, InvalidInput) as error:
            yield Problem(f"line {number}", f"its time cannot be read: {error}")
    if current is not None:
        yield _item(current, thread, ids)


def _item(message: _Message, thread: str, ids: Ids) -> Item:
    name, colon, text = message.rest.partition(": ")
    if not colon and message.rest.endswith(":"):
        name, colon = message.rest[:-1], ":"
    name, text = name.strip(), text.strip("\n").strip(_INVISIBLE)
    if not colon or "\n" in name:
        return Skipped("notes of the app: who joined, that it is encrypted, calls")
    if not text.strip():
        return Skipped("messages without text")
    return ImportedMessage(message.where, thread, "user", text, message.at, ids.of(message.at, name, text), name, name)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(stream):
        yield number, "" if line is None else line.decode(errors="surrogateescape").rstrip("\r\n")


def _clean(line: str) -> str:
    return line.lstrip(_INVISIBLE).translate(_SPACES)


def _sample(stream: IO[bytes]) -> Iterator[re.Match[str]]:
    for _, line in _lines(stream):
        match = LINE.match(_clean(line))
        if match is not None:
            yield match


def _order(sample: Iterator[re.Match[str]]) -> Order:
    """Detect the order of day, month and year: by numbers that cannot be a month, else by increasing dates."""
    days: list[tuple[int, int, int]] = []
    noon = slashes = False
    for match in sample:
        first, second = int(match["a"]), int(match["b"])
        if first > _LAST_MONTH * 3:
            return "ymd"
        if first > _LAST_MONTH:
            return "dmy"
        if second > _LAST_MONTH:
            return "mdy"
        noon = noon or bool(match["late"] or match["early"])
        slashes = slashes or "/" in match[0][:6]
        days.append((int(match["c"]), first, second))
    days_first = sum((a[0], a[2], a[1]) > (b[0], b[2], b[1]) for a, b in pairwise(days))
    months_first = sum(a > b for a, b in pairwise(days))
    if days_first != months_first:
        return "mdy" if months_first < days_first else "dmy"
    return "mdy" if noon and slashes else "dmy"


def _moment(match: re.Match[str], order: Order, zone: tzinfo | None) -> datetime:
    parts = [int(match["a"]), int(match["b"]), int(match["c"])]
    day, month, year = {
        "dmy": parts,
        "mdy": [parts[1], parts[0], parts[2]],
        "ymd": parts[::-1],
    }[order]
    year += _CENTURY if year < _SHORT_YEAR else 0
    hour = int(match["hour"])
    half = match["early"] or match["late"]
    if half is not None:
        hour = hour % 12 + (12 if _AFTER.search(half) else 0)
    at = datetime(year, month, day, hour, int(match["minute"]), int(match["second"] or 0))  # noqa: DTZ001 - a wall clock
    return in_zone(at, zone, "the time")
