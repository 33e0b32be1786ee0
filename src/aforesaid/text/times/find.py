"""Finds expressions of time in a text, and reads them relative to when it was said."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.extras import re
from aforesaid.text.languages import ENGLISH, ROMANCE, guess_language, language_told, stop_words, vocabulary
from aforesaid.text.times.days import (
    DAY,
    EAST_ASIAN,
    REQUESTED,
    Days,
    Direction,
    Rules,
    a_year_before,
    day_of_month,
    western,
    whole_month,
)
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
from aforesaid.text.times.time_words import (
    AFTERNOON,
    AMBIGUOUS_MONTHS,
    CALENDARS,
    CHINESE_NUMBER,
    EAST_ASIAN_CLOCK,
    EAST_ASIAN_LANGUAGES,
    NUMBERS,
    calendar_words,
    east_asian_number,
    plain_calendar_words,
)
from aforesaid.text.words import UNSPACED_LANGUAGES, alternatives, by_language, fold, fold_aligned, words_of

_NEVER: Final = re.compile("(?!)")


class _Verbs(NamedTuple):
    """Patterns of a language, for text in lower case with its accents; people leave out accents, so both are listed."""

    ahead: re.Pattern[str]
    """Forms that are not used of the past: "will", "am going to", and what starts or departs in the present tense."""
    arranged: re.Pattern[str]
    """Arranging is done before what is arranged: "booked", "registered", "planned"."""
    over: re.Pattern[str]
    """Forms of the past."""
    limit: re.Pattern[str]
    """Before a day that lies ahead, unless the verb tells otherwise: "until Friday", "from Monday on"."""
    since: re.Pattern[str] = _NEVER
    """Before a day that is over: "since Monday"."""
    done_on: re.Pattern[str] = _NEVER
    """Arranging on a day, not for one: "I signed up on Monday"."""


_ANYWHERE: Final = re.compile(
    r"\b(?:ska|skal|skall|kommer att|kommer til å|kommer til at|będę|będzie(?:sz|my|cie)?|będą|"
    r"\w+(?:[ae]ca[ğk]|ece[ğk]|acağ|eceğ)\w*)\b"
)
"""What is to come, in languages whose words for days are not read."""
_NAME: Final = re.compile(r"\bWill\b")
_SENTENCE_ENDS: Final = re.compile(r"(?<![\d\W])[.!?;…]+(?=\s|$)|(?<=[\"'”)])[.!?]+|[!?;\n。！？]+")
_CLAUSE_ENDS: Final = re.compile(
    r"[,，、–—:]|\b(?:and|but|und|aber|y|pero|et|mais|ma|e|mas|en|maar|и|но|а|so|because|weil|porque|parce que)\b"
)


def directions(text: str, language: str, usual: Direction = "nearest") -> Callable[[int], Direction]:
    """Return the function that tells in which direction the day at a position of a text lies.

    The clause that names the day decides, then its sentence; `usual` if neither tells. `text` is in NFC.
    """
    lowered = _lowered(text)
    verbs = _related(language)
    sentences = [0, *(match.end() for match in _SENTENCE_ENDS.finditer(lowered)), len(lowered)]

    @cache
    def of_part(start: int, end: int) -> Direction | None:
        return _told(lowered[start:end], verbs)

    def at(position: int) -> Direction:
        start, end = _around(position, sentences)
        clauses = [start, *(match.end() for match in _CLAUSE_ENDS.finditer(lowered, start, end)), end]
        return of_part(*_around(position, clauses)) or of_part(start, end) or usual

    return at


def direction_of(text: str, usual: Direction = "nearest") -> Direction:
    """Return the direction in which a text's words say that its days lie: `usual` if they do not tell.

    "Rex died on Sunday" speaks of the last Sunday, and "we fly on Sunday" may mean the next one.
    """
    plain = normalize("NFC", text)
    return _told(_lowered(plain), _related(guess_language(plain))) or usual


def _lowered(text: str) -> str:
    """Return a text in lower case, of the same length. "Will" with a capital letter is somebody's name."""
    named = _NAME.sub("    ", text).replace("’", "'")
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in named)


def _around(position: int, edges: Sequence[int]) -> tuple[int, int]:
    """Return the two edges that a position lies between."""
    place = min(bisect_right(edges, position), len(edges) - 1)
    return edges[place - 1], edges[place]


def _told(text: str, languages: Sequence[_Verbs]) -> Direction | None:
    """Return the direction by the first of several languages that tells one."""
    for verbs in languages:
        if verbs.since.search(text):
            return "past"
        if verbs.ahead.search(text) or _ANYWHERE.search(text):
            return "future"
        if verbs.arranged.search(text) and not verbs.done_on.search(text):
            return "future"
        if verbs.over.search(text):
            return "past"
        if verbs.limit.search(text):
            return "future"
    return None


@cache
def _verbs(language: str) -> _Verbs:
    tables = by_language()
    table = tables.get(language, {}).get("verbs") or tables["english"]["verbs"]
    form = "{}" if language in UNSPACED_LANGUAGES else r"(?<!\w)(?:{})(?!\w)"
    return _Verbs(**{name: re.compile(form.format(pattern.replace("\n", ""))) for name, pattern in table.items()})


@cache
def _related(language: str) -> tuple[_Verbs, ...]:
    """Return the patterns of a language, and of those that a short text of it may be taken for."""
    alike = [other for other in ROMANCE if other != language] if language in ROMANCE else []
    return tuple(map(_verbs, (language, *alike)))


_WORDS: Final = {word: number for numbers in NUMBERS.values() for word, number in numbers.items()} | {
    **dict.fromkeys(("half an", "half a", "einer halben", "media", "une demi", "mezz'", "meia", "een half"), 0.5),
    **dict.fromkeys(("poł", "полчаса", "yarim", "yarım", "نصف", "نص", "आधे", "半"), 0.5),
    **dict.fromkeys(("a", "an", ""), 1),
    "ساعتين": 2,
}
"""Numbers in all languages: a few words do not show their language."""
_MINUTES: Final = r"minutes?|mins?|minuten?|minutos?|minuti|минут[уы]?|minut[ey]?|دقيقة|دقائق|دقايق"
_HOURS: Final = r"hours?|hrs?|stunden?|horas?|heures?|or[ae]|uur|час(?:а|ов)?|godzin[ey]?|ساعة|ساعات"
_WRITTEN: Final = "|".join(sorted(map(re.escape, filter(None, _WORDS)), key=len, reverse=True))
_NUMBER: Final = rf"(?P<number>\d{{1,3}}|{_WRITTEN})"
_UNITS: Final = rf"(?:(?P<minutes>{_MINUTES})|(?P<hours>{_HOURS}))"
_SPACED: Final = re.compile(
    rf"(?<!\w)(?:in|en|dans|tra|fra|em|daqui a|over|через|za|بعد) {_NUMBER}(?:[ -]|(?<=')){_UNITS}(?!\w)"
)
_ONE: Final = re.compile(
    r"(?<!\w)(?:через|za|بعد) (?P<number>)(?:(?P<minutes>минуту|minute|دقيقة)|час|godzine|ساعة)(?!\w)"
)
_JOINED: Final = re.compile(r"(?<!\w)(?:через|بعد) (?P<number>полчаса|ساعتين)(?P<minutes>(?!))?(?!\w)")
"""The number is part of the hour."""
_AFTERWARDS: Final = re.compile(
    rf"(?<!\w){_NUMBER} ?(?:(?P<minutes>dakika|dk|मिनट|분)|saat|घंट[ेा]|시간) ?(?:sonra|बाद|में|뒤|후|있다가)"
)
"""The number comes before what says that the moment is ahead."""
_UNSPACED: Final = re.compile(
    rf"(?P<number>\d{{1,3}}|半|{CHINESE_NUMBER})(?:个)?(?:(?P<minutes>分钟|分)|(?P<hours>小时|時間))(?:后|後|以后)"
)

_FROM_NOW: Final = (_SPACED, _ONE, _JOINED, _AFTERWARDS, _UNSPACED)


class Distance(NamedTuple):
    """A moment named by its distance from now, and its position in the text."""

    start: int
    end: int
    at: datetime


def moment_from_now(folded: str, said: datetime) -> Distance | None:
    """Return the moment that a folded text names by minutes or hours from `said`; None if there is none."""
    match = next(filter(None, (each.search(folded) for each in _FROM_NOW)), None)
    if match is None:
        return None
    written = match["number"] or ""
    count = _WORDS[written] if written in _WORDS else east_asian_number(written)
    try:
        # Counted in UTC: on the days when the clocks change, two hours later is not two hours further on the clock.
        at = said.astimezone(UTC) + count * (_HOUR / 60 if match["minutes"] else _HOUR)
        return Distance(match.start(), match.end(), at.astimezone(said.tzinfo))
    except OverflowError:
        return None


_HOUR: Final = timedelta(hours=1)
_NOON: Final = 12
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_HALF_AN_HOUR: Final = 30
_UNREAD: Final = "\0"
_LINK: Final = 4
"""Characters between a part of a day and its hour: " um "."""
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
    # "Heute Abend um 8 Uhr": the hour is complete, but the part of the day beside it tells which half is meant.
    clocks = [clock._replace(open=clock.open or any(_beside(part, clock) for part in parts)) for clock in clocks]
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


def _beside(part: NamedPart, clock: _Clock) -> bool:
    return max(part.start, clock.start) - min(part.end, clock.end) <= _LINK


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


_TIME_WORDS: Final = plain_calendar_words().union(
    ["ago", "last", "next", "week", "weeks", "month", "months", "year", "years", "weekend", "recently"]
    + ["letzte", "letzten", "letzter", "letztes", "pasado", "pasada", "неделю", "недели", "неделе"]
    + ["上周", "下周", *calendar_words("chinese"), *calendar_words("japanese")]
)
_BEFORE_MONTH: Final = frozenset(
    {"in", "im", "en", "em", "a", "since", "until", "by", "seit", "bis", "desde", "в", "с"}
)
_YEAR: Final = 4
_MONTH: Final = re.compile(r"\d月")


def mentions_time(text: str) -> bool:
    """Return whether a text mentions a day, a week, a month or a year."""
    words = words_of(text)
    if not _TIME_WORDS.isdisjoint(words) or any(len(word) == _YEAR and word.isdecimal() for word in words):
        return True
    if not AMBIGUOUS_MONTHS.isdisjoint(words):
        return any(month in AMBIGUOUS_MONTHS and _shows_month(words, place) for place, month in enumerate(words))
    return not text.isascii() and _MONTH.search(text) is not None


def _shows_month(words: list[str], place: int) -> bool:
    """Return whether a number or a preposition beside a word shows that it is a month: "in May", "8 May"."""
    before, after = words[max(place - 1, 0) : place], words[place + 1 : place + 2]
    return any(word[0].isdecimal() for word in before + after) or not _BEFORE_MONTH.isdisjoint(before)


LONGEST_REQUEST: Final = 2_000
"""Maximum characters of a text that are read. A later time is not part of the request."""
_LANGUAGES: Final = (*CALENDARS, *sorted(EAST_ASIAN_LANGUAGES))
_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_CUT: Final = "\0"
_BEFORE_A_TIME: Final = alternatives("""
    on at in by for around the this um am im gegen ab a las la el en por de le du dans alle al il as da na no om op het
    w в во на и
""")
_JOINT: Final = re.compile(
    rf"(?:(?<!\w){_BEFORE_A_TIME}\s+)*{_CUT}+(?:[\s,]*(?:\w{{1,3}}\s+){{0,2}}{_CUT}+)*",
    re.IGNORECASE,
)
_EDGES: Final = " \t\n,;:.-–—、。の"


class RequestedTime(NamedTuple):
    """The time of a request."""

    when: When
    assumed: bool
    """Whether morning or evening is assumed, as in "tomorrow at 7"."""
    rest: str
    """The text without the words that name the time."""


_DOTTED_HOUR: Final = re.compile(
    r"(?<![\d.,:€$£])\b([01]?\d|2[0-3])\.(00|1[3-9]|[2-5]\d)(?![\d.,%€$£]|\s*(?:%|€|\$|£|eur|tl\b|lira|zl|pln|rub|kg|km|ml))"
)
"""An hour with a point, such as 19.00, that is neither a date nor a price."""


def read_requested_time(text: str, said: datetime, usual: str | None = None) -> RequestedTime | None:
    """Return the first time that a request names, relative to `said`; None if there is none.

    The language of the text is tried first, then the others, since requests are short and mix languages. `usual` is
    that of a text that does not tell its own. A complete date may be in the past; other times are taken to be in the
    future where the words allow it.
    """
    plain = normalize("NFC", text)[:LONGEST_REQUEST]
    written = _ISO.search(plain)
    if written is not None and (exact := _exact(written[0], said)) is not None:
        return RequestedTime(exact, assumed=False, rest=_without(plain, [written.span()]))
    folded = fold_aligned(plain)
    guessed = language_told(plain) or usual or guess_language(plain)
    if guessed != "english":
        # No month has the number after the point, so it is an hour. In English it would be a price.
        folded = _DOTTED_HOUR.sub(r"\1:\2", folded)
    for language in dict.fromkeys((guessed, "english", *_LANGUAGES)):
        found = read_times(folded, said, "future", language, requested=True)
        if found:
            named = found[0]
            return RequestedTime(named.when, named.assumed, _without(plain, named.spans))
    return None


def read_numbered_day(text: str, said: datetime) -> When | None:
    """Return the next day that a text names by its number alone, "on the 26th at 9:15"; None if it names none."""
    if not any(pattern.search(fold_aligned(text)) for pattern, _ in REQUESTED):
        return None
    found = read_requested_time(text, said)
    return None if found is None or found.assumed else found.when


def _exact(written: str, said: datetime) -> When | None:
    """Parse a moment in ISO 8601; without an offset it is in the time zone of `said`."""
    try:
        moment = datetime.fromisoformat(written.rstrip(".,;:!?)"))
        local = moment.replace(tzinfo=said.tzinfo) if moment.tzinfo is None else moment.astimezone(said.tzinfo)
        return When(local, local + _HOUR, timed=True)
    except (ValueError, OverflowError):
        return None


def _without(text: str, spans: list[Span] | tuple[Span, ...]) -> str:
    """Remove spans from a text, with the prepositions before them."""
    for start, end in spans:
        text = text[:start] + _CUT * (end - start) + text[end:]
    return " ".join(_JOINT.sub(" ", text).split()).strip(_EDGES)


_ISO_MONTH: Final = re.compile(r"(?<![\d/-])(\d{4})[-/](\d{1,2})(?![\d/-])")
_SLASHED: Final = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\d/])")
_WHOLE_YEAR: Final = re.compile(r"(?<![\d-])(?:19|20)\d{2}(?![\d-])")
_WEEK_OF_YEAR: Final = re.compile(
    r"\b(?P<which>first|erste\w*|primera|premiere|prima|primeira|eerste|last|letzte\w*|ultima|derniere|laatste) "
    r"(?:week|woche|semana|semaine|settimana) (?:of |in |de |del |di |do |da |van |von |des jahres )?"
    r"(?P<year>(?:19|20)\d{2})\b"
)
_LAST: Final = ("last", "letzte", "ultima", "derniere", "laatste")
_CENTURY: Final = 2000


class Period(NamedTuple):
    """A stretch of time, its end not included."""

    start: datetime
    end: datetime


def periods(question: str, asked: datetime) -> list[Period]:
    """Return the periods that a question names, relative to when it is asked: days, weeks, months and years.

    Dates are read as in statements, but more loosely, since a period only makes the messages in it likelier. Dates
    without a year mean the last two years, a year alone is a period, and a date that can be read in two ways in
    English, such as 01/07/2024, means both days.
    """
    folded, language = fold(question).replace("’", "'"), language_told(question) or guess_language(question)
    today = asked.astimezone(UTC).date()
    named, rest = find_days(folded, today, "past", language)
    if not named and language != ENGLISH:
        # A few words may not show their language, and English dates are understood everywhere.
        named, rest = find_days(folded, today, "past", ENGLISH)
    found = [placed.days for placed in named]
    found += [before for days in found if days.any_year and (before := a_year_before(days)) is not None]
    found += _slashed(rest, today, language)
    found += [
        month for match in _ISO_MONTH.finditer(rest) if (month := whole_month(int(match[1]), int(match[2]))) is not None
    ]
    for match in _WEEK_OF_YEAR.finditer(rest):
        first = date(int(match["year"]), 12, 25) if match["which"].startswith(_LAST) else date(int(match["year"]), 1, 1)
        found.append(Days(first, 7 * DAY))
    if not found:
        years = [int(match[0]) for match in _WHOLE_YEAR.finditer(rest)]
        found = [Days(date(year, 1, 1), date(year, 12, 31) - date(year, 1, 1) + DAY) for year in years]
    starts = [(datetime.combine(days.first, time(), UTC), days.length) for days in found]
    last = datetime.max.replace(tzinfo=UTC)  # no period ends after the last day of the calendar
    return [Period(start, start + length) for start, length in starts if length <= last - start]


_HAPPENED: Final = frozenset({
    "happen", "happened", "happening", "hicimos", "hice", "hiciste", "hizo", "paso", "sucedio", "ocurrio",
    "passierte", "passiert", "gemacht", "los", "fait", "fis", "faites", "passe", "successo", "accaduto", "fatto",
    "fatta", "aconteceu", "fiz", "fizemos", "fizeste", "gebeurd", "gebeurde", "gedaan", "zdarzylo", "stalo",
    "robilismy", "robilem", "robilam", "случилось", "было", "происходило", "делали", "делал", "делала", "oldu",
    "olmustu", "yaptik", "yaptim", "yapmistik", "neler", "حدث", "حصل", "صار", "فعلت", "فعلنا", "عملنا", "हुआ",
    "किया", "हमने", "तुमने",
})  # fmt: skip
"""What questions have beside the time where they ask for all that happened then, folded."""


def asks_for_a_time(question: str, asked: datetime) -> bool:
    """Return whether a question names a time and nothing else: "what happened on 7 January 2024?"."""
    folded, language = fold(question).replace("’", "'"), language_told(question) or guess_language(question)
    today = asked.astimezone(UTC).date()
    for tongue in dict.fromkeys((language, ENGLISH)):
        named, rest = find_days(folded, today, "past", tongue)
        is_named = bool(named)
        for pattern in (_SLASHED, _ISO_MONTH, _WEEK_OF_YEAR):
            is_named, rest = is_named or pattern.search(rest) is not None, pattern.sub(" ", rest)
        said = {word for word in words_of(rest) if not word.isdecimal()}
        dull = _HAPPENED | stop_words(language) | vocabulary(language).dull | vocabulary(language).times
        if is_named and not said - {fold(word) for word in dull}:
            return True
    return False


def _slashed(text: str, today: date, language: str) -> Iterator[Days]:
    """Read 01/07/2024: the day comes first; in English, where both orders are usual, either number may be the day."""
    for match in _SLASHED.finditer(text):
        first, second, year = (int(group) for group in match.groups())
        year += _CENTURY if len(match[3]) == 2 else 0  # noqa: PLR2004 - a year of two digits
        orders = {(first, second), (second, first)} if language == ENGLISH else {(first, second)}
        for day, month in sorted(orders):
            days = day_of_month(today, month, day, year, "past")
            if days is not None:
                yield days
