"""What somebody wants of the bot, in their own words: which parts of a message ask for something, and for what."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.extras import re
from aforesaid.facts.describing import asked_for
from aforesaid.models.offline.request_rules import asks, means_everything
from aforesaid.models.reader import Intent, Intents
from aforesaid.text.languages import CODES, guess_language, language_told, stems, stop_words, vocabulary
from aforesaid.text.sentences import length_in_words, split_sentences
from aforesaid.text.times.find import find_times, read_requested_time
from aforesaid.text.words import fold, fold_aligned, words_of

if TYPE_CHECKING:
    from aforesaid.domain.memory import MemoryRecord
    from aforesaid.memory import Memory

_MOST_PARTS: Final = 6
"""Sentences up to which each is looked at. A message with more tells a story, and is taken as a whole."""
_SURE: Final = 0.5
"""Probability from which the bot acts on what it understood."""
_SHORT: Final = 3
"""Words that a question may have beside the phrase that it is recognised by."""
_CLEAR: Final = 0.9
"""Probability from which the model is believed that a question is a greeting or a joke."""
_ACTIONS: Final = frozenset[Intent]({"remind", "reminders", "forget", "request"})
_READ: Final = 600
"""Characters in which phrases are looked for."""
_ORDER: Final = 8
"""Maximum words of an order to move or to cancel something, where the model sees none."""
_STEM: Final = 4
"""Letters in which two words have to agree to be the same one with another ending."""
_GRAMMAR: Final = re.compile("[\u3041-\u309f]|^[\u30a0-\u30ff\uac00-\ud7af]$")
"""Japanese letters of grammar, and single letters or syllables of longer words."""
_PLAUSIBLE: Final = 0.3
"""Probability from which a message may speak of reminders, if it names one."""


class Part(NamedTuple):
    """A sentence of a message, or all of it, and what it wants."""

    text: str
    wants: Intents

    @property
    def intent(self) -> Intent:
        return self.wants.best

    def may_speak_of_reminders(self) -> bool:
        return self.wants.of("remind", "reminders") >= _PLAUSIBLE or (self.intent != "ask" and orders(self.text))

    def is_sure(self, intent: Intent) -> bool:
        return self.wants.best == intent and self.wants.of(intent) >= _SURE

    def is_about_reminders(self) -> bool:
        """Return whether it asks for reminders. What only sounds so has to be surer than a question or an order."""
        plain = asks(self.text) or any(mentions(key, self.text) for key in ("remind", "cancel", "move"))
        return self.is_sure("reminders") and (plain or self.wants.of("reminders") >= _CLEAR)


async def parts_of(memory: Memory, text: str) -> list[Part]:
    """Return the sentences of a message with what each wants; one part, where the message is one or very many."""
    sentences = [each for each in split_sentences(text) if each.strip()]
    if not 1 < len(sentences) <= _MOST_PARTS:
        sentences = [text]
    found = zip(sentences, await memory.intents(sentences), strict=True)
    return [Part(text, Intents.surely("ask") if is_asked(text, wants) else wants) for text, wants in found]


def is_asked(text: str, wants: Intents) -> bool:
    """Return whether rules see a question where the model sees none, as in "Wo wohne ich?"."""
    if wants.best not in _ACTIONS and length_in_words(text) <= _ORDER and asked_for(text) is not None:
        return True
    if wants.best in _ACTIONS or not asks(text):
        return False
    if wants.best == "feel" and wants.of("feel") >= _CLEAR:
        return False
    return not (wants.best in {"greet", "chat"} and (wants.of(wants.best) >= _CLEAR or mentions("how_are_you", text)))


def greeting_languages(text: str, *keys: str) -> tuple[str, ...]:
    """Return the languages in which a text is a greeting, or a phrase of `keys`, and nothing else."""
    said = words_of(fold(text[:_READ]))
    return tuple(
        language
        for language, code in CODES.items()
        for phrases in [_table()[key].get(code, "").split("|") for key in keys or ("hello", "bye")]
        if said in [words_of(fold(phrase)) for phrase in phrases]
    )


def addressed(text: str) -> str | None:
    """Return the word that a text may begin by calling: "Tom" of "Tom, can you bring the cake?"."""
    found = re.match(r"\s*(?:@|<@!?)?(\w[\w'’-]{0,40})>?\s*[,:，、،]\s*\S", text)
    return None if found is None else found[1]


def is_name(text: str, called: Collection[str]) -> bool:
    """Return whether a text is the name of the bot and nothing else: "Rex?"."""
    return " ".join(words_of(fold(text))) in {" ".join(words_of(fold(name))) for name in called}


def without_address(text: str, called: Collection[str]) -> str:
    """Return a text without the name of the bot with which it begins or ends, and without mentions of it.

    What says nothing else stays as it is.
    """
    names = "|".join(sorted({re.escape(fold_aligned(name.lstrip("@"))) for name in called if name}, key=len))
    if not names:
        return text
    looked = fold_aligned(text)
    hello = "|".join(sorted(map(re.escape, said("hello")), key=len, reverse=True))
    begins = re.match(rf"\s*(?:(?P<hello>{hello})[\s,，、]+)?@?(?:{names})(?![\w'’])\s*[,:!.،，、…-]*\s*", looked)
    if begins is not None:
        kept = begins.start("hello"), begins.end("hello")
        before = text[slice(*kept)] if begins["hello"] else ""
        rest = text[begins.end() :]
        # "Hi Rex!" is a greeting; of "Hey Rex, where do I live" the question is left.
        text = rest if rest.strip(" ?!.…？！。؟") else before or text
    looked = fold_aligned(text)
    ends = re.search(rf"(?:[,،，、]\s*@?|\s+@)(?:{names})\s*(?P<mark>[?!.？。！؟]*)\s*$", looked)
    if ends is not None and text[: ends.start()].strip():
        text = text[: ends.start()] + text[ends.start("mark") : ends.end("mark")]
    return re.sub(r"\s{2,}", " ", text).strip() or text


@cache
def said(key: str) -> tuple[str, ...]:
    """Return the phrases for something in all languages, folded, the longest first."""
    phrases = "|".join(_table()[key].values()).split("|")
    return tuple(sorted({fold(each) for each in phrases}, key=len)[::-1])


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("aforesaid.assistant") / "wishes.toml").read_text(encoding="utf-8"))


@cache
def _pattern(key: str) -> re.Pattern[str]:
    """Return a pattern for the phrases of a key. Those in scripts without spaces need no ends of words."""
    bounded = [
        (r"(?<!\w)" if phrase[0].isascii() or _is_spaced(phrase[0]) else "")
        + re.escape(phrase).replace(r"\{name\}", r"(?P<who>@?<?[^\s,:，：]{1,40}?>?)").replace(r"\ ", r"\s+")
        + (r"(?!\w)" if phrase[-1] != "'" and (phrase[-1].isascii() or _is_spaced(phrase[-1])) else "")
        for phrase in said(key)
    ]
    names = iter(range(len(bounded)))
    # Spoken text has no commas, and Arabic letters may have marks for vowels.
    bounded = [re.sub("([\u0621-\u064a])", "\\1[\u064b-\u0652]*", each.replace(",\\s+", r",?\s+")) for each in bounded]
    # A group has one name in a pattern.
    whole = "|".join(re.sub(r"\?P<who>", lambda _: f"?P<who{next(names)}>", each) for each in bounded)
    return re.compile(whole)


def _is_spaced(letter: str) -> bool:
    return not re.match("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0600-\u06ff\u0900-\u097f]", letter)


def mentions(key: str, text: str) -> bool:
    """Return whether a text has a phrase of a key."""
    return _pattern(key).search(fold(text[:_READ]).replace("’", "'")) is not None


def asks_only(key: str, text: str, beside: int = _SHORT) -> bool:
    """Return whether a question has a phrase of a key and few words beside. A spoken one has no question mark."""
    folded = fold(text[:_READ]).replace("’", "'").strip()
    folded += "" if folded.endswith(("?", "？", "؟")) else "?"
    found = _pattern(key).search(folded)
    return found is not None and len(words_of(folded[: found.start()] + " " + folded[found.end() :])) <= beside


def asks_for_plans(question: str) -> bool:
    """Return whether somebody asks what is coming up, or whether anything is at a time that the question names."""
    if asks_only("coming_up", question):
        return True
    found = read_requested_time(question, datetime.now(UTC))
    return found is not None and asks_only("anything", found.rest, 1)


def says_little(text: str) -> bool:
    """Return whether a text has only words of agreement and others that say nothing alone: "ach so, ja klar"."""
    language = guess_language(text)
    lists = vocabulary(language)
    return (stop_words(language) | lists.small_talk | lists.dull | {*said("hello")}).issuperset(words_of(fold(text)))


def without(key: str, text: str) -> tuple[str, str | None]:
    """Return a text without the first phrase of a key, and the name in the place of {name}, as it is written."""
    found = _pattern(key).search(fold_aligned(text[:_READ]))
    if found is None:
        return text, None
    who = next((text[slice(*found.span(name))] for name, value in found.groupdict().items() if value), None)
    return f"{text[: found.start()]} {text[found.end() :]}".strip(" ,:;，、.!?。？！"), who


class Wanted(NamedTuple):
    """A reminder that somebody wants."""

    what: str
    """With its time."""
    whose: str | None
    """A name or mention; "" for everybody in the chat, None for the person themself."""


def read_reminder(text: str) -> Wanted:
    """Return what somebody is to be reminded of, and who. Where no phrase is known, in all of their words."""
    text, _ = without("please", text)
    rest, _ = without("remind_us", text)
    if rest != text:
        return Wanted(without("remind", rest)[0], "")
    rest, _ = without("remind", text)
    if rest != text:
        return Wanted(rest, None)
    rest, who = without("remind_other", text)
    return Wanted(rest, who)


def speaks_of_self(text: str) -> bool:
    """Return whether a text has a word for its author."""
    own = vocabulary(language_told(text) or guess_language(text)).first_person
    return not own.isdisjoint(words_of(fold(text)))


def without_first_person(text: str) -> str:
    """Return a text without the words for oneself: "Hund" for "meinen Hund"."""
    own = vocabulary(guess_language(text)).first_person
    return " ".join(each for each in text.split() if fold(each) not in own) or text


def read_forgetting(text: str) -> str:
    """Return what is to be forgotten, without the words of the request; empty for what was said just before."""
    rest, _ = without("please", text)
    rest, _ = without("forget", rest)
    if means_everything(rest):
        return rest
    # German and others put it around the rest: "was ich gestern gesagt habe".
    while (found := _pattern("what_i_said").search(fold_aligned(rest))) is not None:
        rest = f"{rest[: found.start()]} {rest[found.end() :]}"
    return " ".join(rest.split()).strip(" ,:;，、.!?。？！")


def period_in(text: str, said_at: datetime, request: str) -> tuple[datetime, datetime] | None:
    """Return the time that is all that a text says: "yesterday", "this morning"; None if it says more."""
    # A word or two do not show their language, the whole request does.
    times = find_times(text, said_at, "past", guess_language(request))
    if not times:
        return None
    found = read_requested_time(text, said_at)
    rest = words_of(found.rest) if found is not None else words_of(text)
    return (times[0].start, times[0].end) if len(rest) <= 1 else None


def orders(text: str) -> bool:
    """Return whether a short text begins or ends with words that move or cancel something: "Dişçiyi 10'a ertele"."""
    folded = fold(text[:_READ]).replace("’", "'").strip(" .!。！")
    found = [match.span() for key in ("move", "cancel") for match in _pattern(key).finditer(folded)]
    return length_in_words(folded) <= _ORDER and any(start == 0 or end == len(folded) for start, end in found)


def names_one(reminders: Sequence[MemoryRecord], text: str) -> bool:
    """Return whether a text that says to move or to cancel something shares a word with a reminder."""
    if not (mentions("move", text) or mentions("cancel", text)) or mentions("remind", text):
        return False
    words = _telling_words(text)
    return any(_shared(words, _telling_words(each.text)) for each in reminders)


def moves_it(text: str) -> bool:
    """Return whether a short text moves what was spoken of to a time, and names nothing else: "décale-le à 19h"."""
    found = read_requested_time(text, datetime.now(UTC)) if orders(text) and mentions("move", text) else None
    rest = () if found is None else words_of(_pattern("move").sub(" ", fold(found.rest)))
    return found is not None and not any(len(word) > 1 for word in telling(rest, text))


def chosen(reminders: Sequence[MemoryRecord], text: str) -> list[MemoryRecord]:
    """Return the reminders that a text means: by number, by words, or the only one; several if that is open."""
    numbers = {int(number) for number in re.findall(r"(?<![\d:.])#?(\d{1,9})(?![\d:.])", text)}
    if by_number := [each for each in reminders if each.id in numbers]:
        return by_number
    words = _telling_words(text)
    shared = {each.id: _shared(words, _telling_words(each.text)) for each in reminders}
    most = max(shared.values(), default=0)
    return [each for each in reminders if shared[each.id] == most]


def _telling_words(text: str) -> set[str]:
    """Return the words of a text without stop words, and without letters that are no word by themselves."""
    return telling(words_of(fold(text)), text)


def telling(words: Iterable[str], text: str) -> set[str]:
    """Return those words of a text that tell something: no stop words, no words for oneself, no letters of grammar."""
    language = language_told(text) or guess_language(text)
    light = {fold(each) for each in stop_words(language) | vocabulary(language).first_person}
    light |= set(stems(light, language))
    return {each for each in words if each not in light and not _GRAMMAR.search(each)}


def _stem(one: str, other: str) -> int:
    """Return how many letters two words have to share: three of words as short as "маму" and "маме"."""
    return max(_STEM - 1, min(_STEM, len(one) - 1, len(other) - 1))


def _shared(one: set[str], other: set[str]) -> int:
    return sum(
        any(
            word == each or (len(word) >= _STEM and word[: _stem(word, each)] == each[: _stem(word, each)])
            for each in other
        )
        for word in one
    )
