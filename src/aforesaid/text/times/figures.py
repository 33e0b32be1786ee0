"""Dates in figures: 8.6., 25/12, 13-6-2026.

Most figures of this form are no dates but decimals, versions, prices, fractions, ratings and scores. A date is read
only in the form that the language writes, and only if something says that it is one: a year, a word before it ("am",
"el", "on"), a weekday, a time of day after it, or an event ("exam: 12/6").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from typing import Final, NamedTuple

from aforesaid.extras import re
from aforesaid.text.languages import ENGLISH, LATIN_LANGUAGES, ROMANCE
from aforesaid.text.times.days import Days, Direction, day_of_month
from aforesaid.text.times.time_words import CALENDARS, EAST_ASIAN_LANGUAGES
from aforesaid.text.words import by_language

_MONTHS: Final = 12
_CENTURY: Final = 2000
_SHORT_YEAR: Final = 2
_TEN: Final = 10
_NEAR: Final = 60
"""Characters around figures in which something can say that they are a date."""
_FIGURES: Final = re.compile(
    r"(?<![a-zа-я\d/:#§€$£¥+])(?<!\d[.,-])(?P<first>\d{1,2})"
    r"(?:(?P<dot>\. ?)(?P<other>\d{1,2})(?:\. ?(?P<year>\d{4}|\d\d)(?!\d|\.\d)|(?P<end>\.))?"
    r"|(?P<bar>[/-])(?P<second>\d{1,2})(?:(?P=bar)(?P<later>\d{4}|\d\d))?)"
    r"(?![\d/:%°€$£¥a-z]|[.,]\d)(?(bar)(?!-\d))"
)


class _Form(NamedTuple):
    """How a language writes days in figures. Words are alternatives of a pattern, folded."""

    separators: str
    """Between day and month, if no year follows."""
    events: str = "(?!)"
    """Beginnings of words for what has a date."""
    before: str = "(?!)"
    """Words before a day that say that it is one."""


_FORMS: Final = {
    language: _Form(**{name: pattern.replace("\n", "") for name, pattern in table["figures"].items()})
    for language, table in by_language().items()
    if "figures" in table
}
_ELSEWHERE: Final = _Form("")
"""For languages whose calendar is not known: only dates with a year are read."""
_LINKING: Final = r"\W*(?:(?:is|ist|wird|es|sera|e|est|is op|будет|am|on|for|fur|para|pour|per|voor|на)\W+)?"
"""What may stand between an event and its date."""
_ARTICLES: Final = r"(?:,? ?(?:den|dem|der|the|el|le|il|dia|de|op))?,? "
"""What may stand between a weekday and its date."""
_RANGE: Final = re.compile(
    r"\s*(?:-|–|—|,|bis(?: zum)?|to|till|until|and|und|al?|all'|y|au|et|ed?|ate|tot(?: en met)?|en|по|до|и|الى|から|到|"
    r"至)\s*"
)
_FROM: Final = re.compile(r"(?<!\w)(?:de|da|van|von|from|zwischen|between|entre|tra|fra|tussen|من) $")
"""Begins a range, if another date follows."""
_CLOCK: Final = re.compile(
    r",? (?:(?:at|by|from|um|ab|gegen|a las?|a|alle|as|om|в) )?(?:\d{1,2}(?:[:h]\d\d|h\b| ?[ap]\.?m\b| uhr| uur)|"
    r"\d{1,2} (?:утра|дня|вечера))"
)
_VALUES: Final = re.compile(
    r"(?:version|v|release|update|auf|python|kapitel|chapter|section|abschnitt|note|notes?|score|rated?|ratio|kostet|"
    r"costs?|"
    r"um|step|schritt|punkt|обновлени[ея]|верси[яию]|глав[аеу]|оценк[аиу])[:.]? ?$"
)
"""Words before a number that is a version, a price or a mark."""
_UNITS: Final = re.compile(
    r" ?(?:%|°|€|\$|£|(?:uhr|uur|h|std|stunden?|hours?|hrs?|min|mins|minut\w*|sec|sek\w*|mmol\S*|m?g|kg|mg\S*|"
    r"[mcd]?l|lit\w+|"
    r"[mcdk]?m|mile\w*|meter|metr\w*|euros?|eur|usd|dollars?|pounds?|francs?|franken|rubl\w*|рубл\w*|руб|процент\w*|"
    r"кг|г|л|км|см|"
    r"percent|prozent|percento|pour cent|por ciento|por cento|procent|times|mal|x|mrd|mio|million\w*|milliard\w*|"
    r"cups?|tsp|tbsp|teaspoons?|tablespoons?|tablets?|pills?|tassen?|loffel|tazas?|cucharad\w*|tasses?|cuillere\w*|"
    r"bicchier\w*|"
    r"tazz\w*|cucchia\w*|xicaras?|colher\w*|kopjes?|lepels?|стакан\w*|ложк\w*|zimmer|rooms?|grad|degrees?|punkte?n?|"
    r"points?|"
    r"puntos?|punti|pontos|punten|балл\w*|из|of|von|sur|sobre|out of|stars?|sterne?n?|etoiles?|stelle|gb|mb|tb|ghz|"
    r"ph|kcal|"
    r"درجة|كوب)(?!\w)|分|点|カップ|杯|小时|时间|倍|個|公斤|米|元|円|営業)"
)
_INSIDE: Final = re.compile(r",| (?:nach|um|ab|bis|mit|zum|zur|bei|oder|und|in|im|ins|auf)\b")
"""After a dot that does not end a sentence."""
_ASKED: Final = re.compile(r"\W*$|,| (?:at|to|that|um|a|alle|as|om|в)\b| \d")
"""After a date in a request; after a fraction comes what it is of."""
_STATES_NO_EVENT: Final = re.compile(r"[得打评]|点数|得点|スコア|评分")
_SENTENCE_END: Final = re.compile(r"(?<!\d)[.!?;。！？\n]|[。！？\n]")


class Figures(NamedTuple):
    """Days in figures, and where they stand; no days if they do not exist or can be read in two ways."""

    start: int
    end: int
    days: Days | None


def figures(
    text: str, today: date, towards: Callable[[int], Direction], language: str, *, requested: bool
) -> Iterator[Figures]:
    """Find the dates in figures in a folded text. In a request, a fraction may be a date without a word before it."""
    until = -1
    for match in _FIGURES.finditer(text):
        if language in LATIN_LANGUAGES:
            # A few words such as "Zahnarzt 9.6." do not show their language, but the event does.
            event = (other for other in (language, *LATIN_LANGUAGES) if _events(other).search(_before(match)))
            language = next(event, language)
        linked = until >= 0 and _RANGE.fullmatch(text, until, match.start()) is not None
        if not linked and not _is_date(match, language, requested=requested):
            continue
        until = match.end()
        # A request is read in several languages, so its language alone does not tell which number is the day.
        signs = (_cues(language), _events(language))
        told = not requested or any(sign.search(_before(match)) for sign in signs)
        days = _days(match, today, towards(match.start()), language if told else ENGLISH)
        if days is not None or requested:
            yield Figures(match.start(), until, days)


def _is_date(match: re.Match[str], language: str, *, requested: bool) -> bool:
    text, end = match.string, match.end()
    form = _FORMS.get(language, _ELSEWHERE)
    year = match["year"] or match["later"]
    dotted = match["dot"] is not None
    if len(year or "") > _SHORT_YEAR:
        return True
    separator = "." if dotted else match["bar"]
    if (separator not in form.separators and not (requested and separator == "/")) or _UNITS.match(text, end):
        return False
    before = _before(match)
    named = _cues(language).search(before) is not None
    if named or (not year and _CLOCK.match(text, end)) or (_FROM.search(before) and _goes_on(text, end)):
        return True
    if year or (dotted and match["dot"] != ".") or _VALUES.search(before):
        return False
    if not dotted:
        first, second = int(match["first"]), int(match["second"])
        if (first, second) == (24, 7) or (second == _TEN and first <= _TEN):
            return False  # a rating, or all day
    if dotted and match["end"] and language == "german" and _INSIDE.match(text, end):
        return True  # a dot inside a sentence: "Ich fliege 19.6. nach Rom"
    if language in EAST_ASIAN_LANGUAGES:
        sentence = _sentence(match)
        return re.search(form.events, sentence) is not None and not _STATES_NO_EVENT.search(sentence)
    if _events(language).search(before):
        return True
    return requested and not dotted and _ASKED.match(text, end) is not None


def _goes_on(text: str, end: int) -> bool:
    """Return whether another date follows that ends a range."""
    link = _RANGE.match(text, end)
    return link is not None and _FIGURES.match(text, link.end()) is not None


def _before(match: re.Match[str]) -> str:
    return match.string[max(match.start() - _NEAR, 0) : match.start()]


def _sentence(match: re.Match[str]) -> str:
    before = _SENTENCE_END.split(_before(match))[-1]
    return before + _SENTENCE_END.split(match.string[match.end() : match.end() + _NEAR])[0]


@cache
def _cues(language: str) -> re.Pattern[str]:
    """Return the pattern of what says, right before figures, that they are a date."""
    languages = [*ROMANCE] if language in ROMANCE else [language] if language in _FORMS else []
    words = "|".join(_FORMS[each].before for each in languages) or "(?!)"
    weekdays = "|".join(name for each in languages if each in CALENDARS for name in CALENDARS[each].weekdays) or "(?!)"
    return re.compile(rf"(?<!\w)(?:(?:{words})(?: |(?<='))|(?:{weekdays}){_ARTICLES})$")


@cache
def _events(language: str) -> re.Pattern[str]:
    """Return the pattern of an event right before its date."""
    form = _FORMS.get(language, _ELSEWHERE)
    return re.compile(rf"(?<!\w)\w*(?:{form.events})\w*{_LINKING}$")


def _days(match: re.Match[str], today: date, towards: Direction, language: str) -> Days | None:
    first, second = int(match["first"]), int(match["other"] or match["second"])
    written = match["year"] or match["later"]
    year = None if written is None else int(written) + (_CENTURY if len(written) == _SHORT_YEAR else 0)
    if match["bar"] == "/" and language in EAST_ASIAN_LANGUAGES:
        return day_of_month(today, first, second, year, towards)
    if match["dot"] or language != ENGLISH:
        return day_of_month(today, second, first, year, towards)
    if first > _MONTHS or first == second:
        return day_of_month(today, second, first, year, towards)
    return day_of_month(today, first, second, year, towards) if second > _MONTHS else None
