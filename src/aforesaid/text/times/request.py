"""The time that a request names ("remind me tomorrow at 7 to call mum"), and the words that are left without it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.text.folding import fold_aligned
from aforesaid.text.languages import guess_language
from aforesaid.text.times.find import Span, When, read_times
from aforesaid.text.times.time_words import CALENDARS, EAST_ASIAN_LANGUAGES
from aforesaid.text.word_lists import alternatives

LONGEST_REQUEST: Final = 2_000
"""Maximum characters of a text that are read. A later time is not part of the request."""
_LANGUAGES: Final = (*CALENDARS, *sorted(EAST_ASIAN_LANGUAGES))
_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_CUT: Final = "\0"
_BEFORE_A_TIME: Final = alternatives("""
    on at in by for around the this um am im gegen ab a las la el en por de le du dans alle al il as da na no om op het
    в во на и
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


def read_requested_time(text: str, said: datetime) -> RequestedTime | None:
    """Return the first time that a request names, relative to `said`; None if there is none.

    The language of the text is tried first, then the others, since requests are short and mix languages. A complete
    date may be in the past; other times are taken to be in the future where the words allow it.
    """
    plain = normalize("NFC", text)[:LONGEST_REQUEST]
    written = _ISO.search(plain)
    if written is not None and (exact := _exact(written[0], said)) is not None:
        return RequestedTime(exact, assumed=False, rest=_without(plain, [written.span()]))
    folded = fold_aligned(plain)
    guessed = guess_language(plain)
    for language in dict.fromkeys((guessed, "english", *_LANGUAGES)):
        found = read_times(folded, said, "future", language, requested=True)
        if found:
            named = found[0]
            return RequestedTime(named.when, named.assumed, _without(plain, named.spans))
    return None


def _exact(written: str, said: datetime) -> When | None:
    """Parse a moment in ISO 8601; without an offset it is in the time zone of `said`."""
    try:
        moment = datetime.fromisoformat(written.rstrip(".,;:!?)"))
        local = moment.replace(tzinfo=said.tzinfo) if moment.tzinfo is None else moment.astimezone(said.tzinfo)
        return When(local, local + (datetime(1, 1, 1, 1) - datetime(1, 1, 1)), timed=True)  # noqa: DTZ001 - one hour
    except (ValueError, OverflowError):
        return None


def _without(text: str, spans: list[Span] | tuple[Span, ...]) -> str:
    """Remove spans from a text, with the prepositions before them."""
    for start, end in spans:
        text = text[:start] + _CUT * (end - start) + text[end:]
    return " ".join(_JOINT.sub(" ", text).split()).strip(_EDGES)
