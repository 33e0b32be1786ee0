"""Recognises requests to remember or to forget something, or to report what is known about a person."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.models.offline.request_patterns import (
    ABOUT,
    ALL_ABOUT_ME,
    EVERYTHING,
    FORGET,
    HINTS,
    IDLE,
    LEADING,
    ME_WORDS,
    MINE,
    NOT_PEOPLE,
    POLITE,
    RECALL,
    REMEMBER,
    REMIND,
    SUFFIXED,
)
from aforesaid.text.times.find import read_requested_time
from aforesaid.text.words import fold, fold_aligned

Action = Literal["remember", "forget", "recall", "remind", "none"]

ME: Final = "me"

_ADDRESS: Final = re.compile(
    r"\s*(?:(?:hey|hi|ok|okay|hallo|hola|salut|ciao|oi|привет)[\s,]+)?@?(?P<who>[\w-]+)\s*[,:!]?\s+"
)
_MENTION: Final = re.compile(r"(?P<who><@!?\d+>|@[\w.-]+)")
_SUBJECT: Final = re.compile(r"(?P<who>[\w.-]+)(?:'s)?\s+\w+")
_STATED: Final[tuple[tuple[Literal["remember", "forget"], tuple[re.Pattern[str], ...]], ...]] = (
    ("remember", REMEMBER),
    ("forget", FORGET),
)
_ASKED: Final = 64
"""Messages for which the answer of `may_ask` is cached: several parts of the program ask about the same one."""
_ENDING: Final = " ?？!.。؟"


class RecognisedRequest(NamedTuple):
    """What a message asks for."""

    action: Action
    about: str | None = None
    """The person it is about: `me` for the author, otherwise a mention or a name as written."""
    content: str = ""
    """What to remember, to forget or to be reminded of, with its time. Empty: the messages before, or everything."""


NOTHING: Final = RecognisedRequest("none")


def recognise_request(text: str, *, names: Collection[str] = (), bots: Collection[str] = ("bot",)) -> RecognisedRequest:
    """Return the request of a message: to remember, to forget or to report what is known, about whom, and what.

    A request is at the beginning of the message, possibly after the name of the bot. `names` are names of people: a
    statement that begins with one is about that person. An uncertain request is `none`.
    """
    plain = " ".join(text.replace("’", "'").split()).lstrip("¿¡")
    body = plain[_begin(fold_aligned(plain), bots) :]
    looked = fold_aligned(body)
    for pattern in RECALL:
        match = pattern.fullmatch(looked.rstrip(_ENDING))
        if match is not None:
            return _recall(match, body)
    if (reminder := _reminder(body, looked)) is not None:
        return reminder
    if IDLE.match(looked) is not None or looked.endswith(("?", "？", "؟")):
        return NOTHING
    for action, patterns in _STATED:
        for pattern in patterns:
            if (match := pattern.match(looked)) is not None:
                return _request(action, body[match.end() :], names)
    for action, pattern in SUFFIXED:
        if (match := pattern.fullmatch(body.rstrip(_ENDING))) is not None:
            return RecognisedRequest(action, _subject(match["content"], names), match["content"])
    return NOTHING


@holds_texts
@lru_cache(_ASKED)
def may_ask(text: str) -> bool:
    """Return whether a message may be a request. Messages without any of the words are skipped."""
    return HINTS.search(fold(text)) is not None


def means_everything(what: str) -> bool:
    """Return whether what to forget is all that is known about the author: "everything about me", "me"."""
    looked = fold(what).strip(_ENDING)
    return looked in ME_WORDS or ALL_ABOUT_ME.fullmatch(looked) is not None


def _reminder(body: str, looked: str) -> RecognisedRequest | None:
    match = REMIND.search(looked)
    if match is None or not _is_time(body[: match.start()]):
        return None
    return RecognisedRequest("remind", ME, f"{body[: match.start()]} {body[match.end() :]}".strip(_ENDING))


def _is_time(text: str) -> bool:
    """Return whether a text is empty or only a time, as before "remind me"."""
    if not text.strip(" ,"):
        return True
    found = read_requested_time(text, datetime.now(UTC))
    return found is not None and len(found.rest.split()) <= 1


def _begin(looked: str, bots: Collection[str]) -> int:
    """Return the position after the name of the bot and polite words, where a request begins."""
    known = {fold_aligned(bot).lstrip("@") for bot in bots}
    address = _ADDRESS.match(looked)
    start = address.end() if address is not None and address["who"] in known else 0
    polite = POLITE.match(looked, start)
    return start if polite is None else polite.end()


def _recall(match: re.Match[str], body: str) -> RecognisedRequest:
    if match.groupdict().get("who") is None:
        return RecognisedRequest("recall", ME)
    who = body[match.start("who") : match.end("who")].strip()
    if fold(who) in ME_WORDS:
        return RecognisedRequest("recall", ME)
    # A question about the world ("the war in …") is not about a person.
    return NOTHING if len(who.split()) > 1 or fold(who) in NOT_PEOPLE else RecognisedRequest("recall", who)


def _request(action: Literal["remember", "forget"], rest: str, names: Collection[str]) -> RecognisedRequest:
    rest = rest.lstrip(" ,:，：")
    looked = fold_aligned(rest)
    about = ABOUT.match(looked)
    if about is not None:
        who = rest[about.start("who") : about.end("who")]
        return RecognisedRequest(action, ME if fold(who) in ME_WORDS else who, rest[about.end() :].strip(" :,"))
    everything = EVERYTHING.match(looked) if action == "forget" else None
    if everything is not None:
        who = rest[slice(*everything.span("who"))] if everything["who"] else ME
        return RecognisedRequest(action, ME if fold(who) in ME_WORDS else who)
    leading = LEADING.match(looked)
    content = rest[leading.end() if leading else 0 :].strip()
    return RecognisedRequest(action, _subject(content, names), content) if content else NOTHING


def _subject(content: str, names: Collection[str]) -> str | None:
    """Return the person that a statement is about; None if it does not begin with one."""
    mention = _MENTION.match(content)
    if mention is not None:
        return mention["who"]
    looked = fold_aligned(content)
    for name in sorted(names, key=len, reverse=True):
        if re.match(rf"{re.escape(fold_aligned(name))}(?!\w)", looked):
            return name
    if MINE.match(looked):
        return ME
    subject = _SUBJECT.match(content)
    return None if subject is None or fold(subject["who"]) in NOT_PEOPLE else subject["who"]
