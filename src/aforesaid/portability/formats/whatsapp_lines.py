"""The lines of a WhatsApp chat: their times in the format of any country, and the names of people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import IO, Final, Literal, TypeAlias, get_args

from aforesaid.portability.formats.whatsapp_phrases import ENCRYPTED
from aforesaid.portability.json_lines import numbered_lines
from aforesaid.portability.reader_helpers import in_zone

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


def chat_lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a chat with their numbers. A line that is too long is empty."""
    for number, line in numbered_lines(stream):
        yield number, "" if line is None else line.decode(errors="surrogateescape").rstrip("\r\n")


def parsed_line(line: str) -> tuple[re.Match[str], str] | None:
    """Return the time of a line and what follows it; None for a line that continues a message."""
    visible = line.lstrip(_INVISIBLE)
    # Each character is translated to one, so positions in both texts are the same.
    match = LINE.match(visible.translate(_SPACES))
    return None if match is None else (match, visible[match.end() :])


def looks_like(head: str) -> bool:
    """Return whether a text begins like a WhatsApp chat."""
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
    """Return the day, the month and the year of a line."""
    first, second, third = int(match["a"]), int(match["b"]), int(match["c"])
    if order == "dmy":
        return first, second, third
    return (second, first, third) if order == "mdy" else (third, second, first)


class ChatScan:
    """What only a whole chat tells: the order of day and month, and which names have a colon in them."""

    def __init__(self, title: str) -> None:
        """Scan a chat whose file is named after `title`."""
        self._title = _letters(title)
        self._impossible: Counter[DateOrder] = Counter()
        self._backward: Counter[DateOrder] = Counter()
        self._last: dict[DateOrder, tuple[int, int, int]] = {}
        self._us_style = False
        self._names: Counter[str] = Counter()
        self._longer: Counter[str] = Counter()

    def read(self, stream: IO[bytes]) -> None:
        """Read the chat."""
        for _, line in chat_lines(stream):
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
        """The names of the people in the chat."""
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
