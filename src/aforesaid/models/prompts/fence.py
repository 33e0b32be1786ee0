"""Insert users' texts into prompts, so that they cannot be mistaken for instructions or markup.

Everything between the tags is escaped: no text can close its tag, open another, or add an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.checks import Role
from aforesaid.models.prompts.invisible import strip_invisible
from aforesaid.text.times.time_words import SHORT_MONTHS, SHORT_WEEKDAYS

_TO_THE_MINUTE: Final = len("2026-03-01 09:30")
_PAUSE: Final = timedelta(hours=1)
"""Time between two messages of a transcript after which the time is written again."""


class Fenced(str):
    """A text that can be inserted into a prompt: it was escaped, or its author may give instructions."""

    __slots__ = ()


class Line(NamedTuple):
    """A message as a model receives it."""

    speaker: str
    """The speaker's display name. Ids are never sent."""
    text: str
    at: datetime | None = None
    role: Role = "user"
    label: str | None = None
    """What tells apart two people of one name, where the model has to say whom it means."""


def quote(text: str) -> Fenced:
    """Return a text with markup escaped and invisible characters removed."""
    return Fenced(strip_invisible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def one_line(text: str) -> str:
    """Return a text in one line, without what is invisible, for names and other short things."""
    return " ".join(strip_invisible(text).split())


def fence(lines: Iterable[Line]) -> Fenced:
    """Return messages as `<message at="Sun 2026-03-01 09:30" from="Ann">text</message>`, inside of `<messages>`.

    What was not said by a person has its role, so that nobody can pose as the assistant by their name.
    """
    return enclosed("messages", map(fence_line, lines))


def fence_line(line: Line) -> Fenced:
    """Return one of these messages."""
    at = "" if line.at is None else f' at="{moment(line.at)}"'
    role = "" if line.role == "user" else _attribute("role", line.role)
    return Fenced(f"<message{at}{_attribute('from', line.speaker)}{role}>{quote(line.text)}</message>")


def transcript(lines: Sequence[Line], numbers: Sequence[int | None]) -> Fenced:
    """Return messages in few tokens, each on one line: `[1] Ann: text`, inside of `<messages>`.

    `numbers` are those by which a model names messages as sources. Messages without one begin with `-`. A line
    `# Sun 2026-03-01 09:30` comes before the first message of a day, and after a pause. No text can begin a line, since
    line ends become spaces. What was not said by a person has its role.
    """
    rows: list[str] = []
    before: datetime | None = None
    for line, number in zip(lines, numbers, strict=True):
        if line.at is not None and (before is None or line.at.date() != before.date() or line.at - before > _PAUSE):
            rows.append(f"# {moment(line.at)}")
        before = line.at or before
        speaker = quote(one_line(line.speaker.replace(":", " ")))
        role = "" if line.role == "user" else f" ({line.role})"
        rows.append(f"{'-' if number is None else f'[{number}]'} {speaker}{role}: {quote(one_line(line.text))}")
    return enclosed("messages", rows)


def numbered(tag: str, texts: Sequence[str]) -> Fenced:
    """Return texts as lines `1. text`, inside of a tag."""
    return enclosed(tag, (f"{number}. {quote(one_line(text))}" for number, text in enumerate(texts, 1)))


def fence_labelled(lines: Iterable[Line]) -> Fenced:
    """Return messages of many people in full, each with the label of who wrote it.

    As `<message><timestamp/><author_id/><author/><content/></message>`, inside of `<messages>`.
    """
    messages = "\n".join(
        "<message>"
        f"<timestamp>{'' if line.at is None else moment(line.at)}</timestamp>"
        f"<author_id>{quote(one_line(line.label or ''))}</author_id>"
        f"<author>{quote(one_line(line.speaker))}</author>"
        f"<content>{quote(line.text)}</content>"
        "</message>"
        for line in lines
    )
    return Fenced(f"<messages>\n{messages}\n</messages>")


def enclose(outer: str, inner: str, items: Iterable[tuple[Mapping[str, str | None], str]]) -> Fenced:
    """Return texts, each in a tag with its attributes, all of them in another. Attributes of None are left out."""
    return enclosed(outer, (_tagged(inner, attributes, text) for attributes, text in items))


def enclosed(outer: str, rows: Iterable[str]) -> Fenced:
    """Return what is tagged already, all of it in another tag."""
    return Fenced("\n".join([f"<{outer}>", *rows, f"</{outer}>"]))


def _tagged(tag: str, attributes: Mapping[str, str | None], text: str) -> Fenced:
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    return Fenced(f"<{tag}{written}>{quote(text)}</{tag}>")


def listed(items: Iterable[tuple[str, str]]) -> Fenced:
    """Return remembered things as `[CATEGORY] text`, one in each line, whatever line ends are in them."""
    return Fenced("\n".join(f"[{quote(one_line(kind)).upper()}] {quote(one_line(text))}" for kind, text in items))


def moment(at: datetime) -> str:
    """Write a moment as it is in its time zone, to the minute, with the weekday that people reckon by."""
    return f"{SHORT_WEEKDAYS[at.weekday()]} {at.isoformat(' ', 'minutes')[:_TO_THE_MINUTE]}"


def written_day(day: date) -> str:
    """Write a day in few tokens, such as `Sun 1 Mar 2026`."""
    return f"{SHORT_WEEKDAYS[day.weekday()]} {day.day} {SHORT_MONTHS[day.month - 1]} {day.year}"


@holds_texts
@lru_cache(1_024)
def _attribute(name: str, value: str | None) -> str:
    if value is None:
        return ""
    return f' {name}="{quote(one_line(value)).replace(chr(34), "&quot;")}"'
