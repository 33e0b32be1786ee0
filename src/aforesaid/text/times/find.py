"""Finds dates and times of day in a text, relative to when it was said. Ambiguous ones are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.text.folding import fold_aligned
from aforesaid.text.languages import guess_language
from aforesaid.text.times.coming import directions
from aforesaid.text.times.days import DAY, Days, Direction
from aforesaid.text.times.eastern import EAST_ASIAN
from aforesaid.text.times.figures import figures
from aforesaid.text.times.hours import (
    NamedPart,
    PartOfDay,
    clock_of,
    likely,
    next_one,
    on,
    open_hours,
    parts_of_day,
    within,
)
from aforesaid.text.times.moments import moment_from_now
from aforesaid.text.times.number_words import east_asian_number
from aforesaid.text.times.time_words import AFTERNOON, CALENDARS, EAST_ASIAN_CLOCK, EAST_ASIAN_LANGUAGES
from aforesaid.text.times.western import REQUESTED, Rules, western

_HOUR: Final = timedelta(hours=1)
_NOON: Final = 12
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_HALF_AN_HOUR: Final = 30
_UNREAD: Final = "\0"
_HALVES: Final = frozenset({"am", "a.m", "pm", "p.m"})

_BETWEEN: Final = re.compile(r",? ?(?:the|den|dem|der|el|le|il|dia|de|op)?,? ?\(?")
"""Between a weekday and its date: "am Montag, den 8. Juni"."""

Ways = Callable[[int], Direction]
"""The direction in which a day that is named at a position of a text is looked for."""
Span = tuple[int, int]
"""Start and end position in a text."""


class When(NamedTuple):
    """A period without its end: a day, a week, a month, a year, or the hour that begins at a moment."""

    start: datetime
    end: datetime
    timed: bool = False
    """Whether the text names the time of day."""


class Named(NamedTuple):
    """A time that a text names."""

    when: When
    spans: tuple[Span, ...]
    """Positions of the words that name it."""
    assumed: bool = False
    """Whether morning or evening is assumed, as in "tomorrow at 7"."""


class PlacedDays(NamedTuple):
    """Days, and where in the text they are named."""

    start: int
    end: int
    days: Days


class _Clock(NamedTuple):
    start: int
    end: int
    clock: time
    open: bool
    """Whether morning or evening is not stated."""


def find_times(
    text: str, said: datetime, towards: Direction = "nearest", language: str | None = None, *, by_words: bool = False
) -> list[When]:
    """Return the times that a text names, in order.

    `said` is when it was said, in the user's time zone. `towards` is the direction in which a weekday or a day without
    a year is looked for; with `by_words`, only where the words around it do not tell. A time of day belongs to the last
    day named before it, otherwise to the first day. Ambiguous dates such as 05/08/2026 are left out; a bare hour
    ("at 7") is read only with a day in the future.
    """
    language = language or guess_language(text)
    plain = normalize("NFC", text)
    ways = directions(plain, language, towards) if by_words else None
    return [named.when for named in read_times(fold_aligned(plain), said, towards, language, ways)]


def read_times(
    folded: str, said: datetime, towards: Direction, language: str, ways: Ways | None = None, *, requested: bool = False
) -> list[Named]:
    """Return the times that a folded text names, with their positions.

    `ways` tells the direction at a position of the text. `requested`: the text asks for something at that time. Then
    parts of a day and bare hours without a day are read too, and "in two weeks" means a day.
    """
    soon = moment_from_now(folded, said)
    if soon is not None:
        return [Named(_hour_from(soon.at), ((soon.start, soon.end),))]
    named, rest = find_days(folded, said.date(), ways or towards, language, REQUESTED if requested else ())
    if requested and not named and _UNREAD in rest:
        # There is an unreadable date, such as 05/08 or 30 February. Its hour alone would give the wrong day.
        return []
    clocks = _clocks(rest, language, bare=towards == "future")
    parts = parts_of_day(folded, language) if requested else []
    if not named:
        return _without_a_day(said, clocks, parts, requested=requested)
    found = []
    for number, placed in enumerate(named):
        following = named[number + 1].start if number + 1 < len(named) else len(folded) + 1
        here = range(0 if number == 0 else placed.start, following)
        mine = next((clock for clock in clocks if clock.start in here), None)
        part = next((part for part in parts if part.start in here), None)
        days = placed.days
        if requested and days.exact is not None:
            days = Days(days.exact)
        spans: list[Span] = [(placed.start, placed.end), *([part[:2]] if part else [])]
        if days.length != DAY or (mine is None and part is None):
            found.append(Named(_whole(said, days), tuple(spans)))
        elif mine is None and part is not None:
            found.append(Named(_hour_from(within(part.part, days.first, said)), tuple(spans)))
        elif mine is not None:
            when, assumed = _at(said, days.first, mine, None if part is None else part.part)
            found.append(Named(when, (*spans, (mine.start, mine.end)), assumed))
    return found


def find_days(
    text: str, today: date, towards: Direction | Ways, language: str, more: Rules = ()
) -> tuple[list[PlacedDays], str]:
    """Return the days that a folded text names, in order, and the text with those words blanked out.

    The most certain patterns come first, then `more`; no part of the text is used twice. A weekday right before its
    date, as in "Monday, 8 June", is part of it.
    """
    ways: Ways = towards if callable(towards) else lambda _position: towards
    found: list[PlacedDays] = []
    whole = text
    for start, end, days in [*figures(text, today, ways, language, requested=bool(more))]:
        found += [] if days is None else [PlacedDays(start, end, days)]
        text = text[:start] + _UNREAD * (end - start) + text[end:]
    for pattern, resolve in (*(EAST_ASIAN if language in EAST_ASIAN_LANGUAGES else western(language)), *more):
        for match in pattern.finditer(text):
            days = resolve(match, today, ways(match.start()))
            if days is not None:
                found.append(PlacedDays(match.start(), match.end(), days))
            elif more and not any(character.isdecimal() for character in match[0]):
                continue  # a word that is no date here, as "may"
            # A day that does not exist, such as 30 February, is not read as something else either.
            text = text[: match.start()] + _UNREAD * len(match[0]) + text[match.end() :]
    found.sort()
    named_twice = {
        number
        for number, (day, dated) in enumerate(pairwise(found))
        if day.days.length == dated.days.length == DAY
        and day.days.first.weekday() == dated.days.first.weekday()
        and _BETWEEN.fullmatch(whole, day.end, dated.start)
    }
    return [placed for number, placed in enumerate(found) if number not in named_twice], text


def _clocks(text: str, language: str, *, bare: bool) -> list[_Clock]:
    """Return the times of day that a text names, in order; with `bare`, hours such as "at 7" too."""
    patterns: Iterable[re.Pattern[str]] = [EAST_ASIAN_CLOCK]
    if language not in EAST_ASIAN_LANGUAGES:
        patterns = map(re.compile, CALENDARS.get(language, CALENDARS["english"]).clock)
    found = [
        _Clock(match.start(), match.end(), clock, open=False)
        for pattern in patterns
        for match in pattern.finditer(text)
        if (clock := _clock(match.groupdict())) is not None
    ]
    for hour in open_hours(text, language) if bare else ():
        if any(hour.start < clock.end and hour.end > clock.start for clock in found):
            continue
        clock = clock_of(hour, language, east_asian_number(hour.groups.get("h") or "0"))
        if clock is not None:
            found.append(_Clock(hour.start, hour.end, clock, open=True))
    return sorted(found)


def _clock(groups: dict[str, str | None]) -> time | None:
    """Return a time of day; None if it does not exist."""
    half = groups.get("half") or ""
    if groups.get("h") is None:
        return time(_NOON) if half == "noon" else time()
    hour = east_asian_number(groups["h"] or "")
    minute = _HALF_AN_HOUR if groups.get("m") == "半" else int(groups.get("m") or 0)
    if hour > _NOON and half in _HALVES:
        return None
    if half in AFTERNOON and hour < _NOON:
        hour += _NOON
    elif half in {"am", "a.m"} and hour == _NOON:
        hour = 0
    return time(hour, minute) if hour <= _LAST_HOUR and minute <= _LAST_MINUTE else None


def _without_a_day(said: datetime, clocks: list[_Clock], parts: list[NamedPart], *, requested: bool) -> list[Named]:
    """Return a time of day without a day: today, or if requested, its next occurrence."""
    part = parts[0] if parts else None
    if not requested:
        return [Named(_at(said, said.date(), clock, None)[0], ()) for clock in clocks if not clock.open][:1]
    if not clocks:
        if part is None:
            return []
        at = within(part.part, said.date(), said)
        if at.timestamp() <= said.timestamp():
            at = within(part.part, said.date() + DAY, said)
        return [Named(_hour_from(at), (part[:2],))]
    clock = clocks[0]
    spans: tuple[Span, ...] = ((clock.start, clock.end), *((part[:2],) if part else ()))
    if clock.open and part is None:
        next_time = next_one(clock.clock, said)
        return [] if next_time is None else [Named(_hour_from(next_time), spans, clock.clock.hour <= _NOON)]
    when, assumed = _at(said, said.date(), clock, None if part is None else part.part)
    if when.start.timestamp() <= said.timestamp():
        when, assumed = _at(said, said.date() + DAY, clock, None if part is None else part.part)
    return [Named(when, spans, assumed)]


def _at(said: datetime, day: date, clock: _Clock, part: PartOfDay | None) -> tuple[When, bool]:
    """Return a time on a day, and whether morning or evening is assumed."""
    if not clock.open:
        return _hour_from(on(day, clock.clock, said.tzinfo)), False
    if day == said.date() and part is None and clock.clock.hour <= _NOON:
        # "Today at 7" is the next one of both; when both are over, it stays in the past, where the caller sees it.
        ahead = next_one(clock.clock, said)
        if ahead is not None and ahead.date() == day:
            return _hour_from(ahead), True
    meant, later, assumed = likely(clock.clock, part)
    if later and day < date.max:
        day += DAY
    return _hour_from(on(day, meant, said.tzinfo)), assumed


def _hour_from(start: datetime) -> When:
    try:
        return When(start, start + _HOUR, timed=True)
    except OverflowError:  # the last hour of the calendar
        return When(start, start, timed=True)


def _whole(said: datetime, days: Days) -> When:
    try:
        end = days.first + days.length
    except OverflowError:  # the last day of the calendar
        end = days.first
    return When(datetime.combine(days.first, time(), said.tzinfo), datetime.combine(end, time(), said.tzinfo))
