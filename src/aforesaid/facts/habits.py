"""Preferences and style of users, counted in their messages: topics, hours, languages, lengths and tone.

No model is needed. Counts are stored together with the position in the log, so every message is counted once.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, Literal

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.errors import SourcesChanged
from aforesaid.extras import re
from aforesaid.facts.timeline import zone_of
from aforesaid.profiles import Profile
from aforesaid.store import Store
from aforesaid.store.memories import DerivedText, Memories, PutDerived
from aforesaid.store.messages import MessagesAfter
from aforesaid.text.languages import guess_language, language_told, stop_words, vocabulary
from aforesaid.text.sentences import POLITE
from aforesaid.text.words import words_of

KIND: Final = "habits"
_PAGE: Final = 500
_FEW: Final = 4
"""Messages up to which counting them takes less time than a change of thread."""
_WORDS_KEPT: Final = 400
"""Number of words counted; when there are twice as many, the rarest are dropped."""
_TOPICS: Final = 10
_LEAST_OFTEN: Final = 2
_LEAST_TURNS: Final = 10
"""Minimum number of turns before habits are reported."""
_OFTEN: Final = 0.2
_NAMED: Final = 5
_SHOWN_TONES: Final = frozenset({"emoji", "polite", "casual", "exclaims"})
_LONGEST: Final = 4_000
_SHORT: Final = 12
_LONG: Final = 60
_THANKS: Final = (
    r"\b(?:thanks?|thank you|thx|great|perfect|awesome|love it|nice|cool|danke|super|gracias|genial|merci|parfait|"
    r"grazie|perfetto|obrigad[oa]|bedankt|спасибо|отлично)\b|谢谢|太好了|ありがとう|감사|شكرا|धन्यवाद"
)
_TOO_LONG: Final = (
    r"\b(?:too long|tl;?dr|shorter|be brief|keep it short|in short|zu lang|kürzer|más corto|trop long|plus court|"
    r"troppo lungo|muito longo|короче)\b|太长|短一点|長すぎ|短く"
)
_MORE: Final = (
    r"\b(?:more detail\w*|in detail|elaborate|explain more|tell me more|mehr details|ausführlicher|más detalles?|"
    r"plus de détails|più dettagli|mais detalhes|подробнее)\b|详细|具体一点|詳しく"
)
_CASUAL: Final = (
    r"\b(?:lol|haha\w*|hey|yo|gonna|wanna|dude|bro|omg|btw|u|ur|pls|alter|jaja\w*|mdr|kkk+|ахах\w*)\b|哈哈|笑"
)
_MARKS: Final = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in (
        ("exclaims", "[!！]"),
        ("asks", "[?？؟]"),
        ("polite", POLITE.pattern),
        ("casual", _CASUAL),
        ("thanks", _THANKS),
        ("shorter", _TOO_LONG),
        ("longer", _MORE),
        ("emoji", "[\u2600-\u27bf\U0001f300-\U0001faff]"),
    )
}
"""Marks of a writing style."""
TONES: Final = tuple(_MARKS)


_SHORTEST: Final = 2
_LONGEST_CHINESE: Final = 4
_JAPANESE: Final = re.compile(r"[\u30a1-\u30fa\u30fc]{3,}|[\u4e00-\u9fff]{2,6}")
_CHINESE: Final = re.compile(
    r"[^\u4e00-\u9fff]|[的了是我你您他她它们在有和也都就不没很还吗呢吧啊呀哦嗯么这那哪个要会能可去来到说看想给把被跟从对上下里过着得地让又再太真好多少一二两三几点"
    r"沒還嗎個這會過說們給對裡來讓幾點為什怎今明昨天年月日号號时時候最後后前]"
)
"""What ends a word in Chinese, roughly: words of grammar, and what is no letter."""
_KOREAN: Final = re.compile(r"([가-힣]{2,8}?)(?:을|를|이랑|랑|에서|으로|하고|이는|한테|에게|부터|까지)(?![가-힣])")
"""Nouns in Korean: the words before a particle."""
_COUNTED: Final = 3
"""The version of what is counted. Other counts are made anew."""


@dataclass(slots=True)
class Counts:
    """Counts over the messages of a user."""

    turns: int = 0
    words: int = 0
    """Words of the user."""
    hours: Counter[str] = field(default_factory=Counter)
    """Hours of the day in UTC."""
    languages: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    tone: Counter[str] = field(default_factory=Counter)
    """emoji, exclaims, asks, polite, casual, thanks, shorter, longer."""
    liked_words: int = 0
    """Words in replies that the user thanked for. `liked` is the number of such replies."""
    liked: int = 0
    last_reply: int = 0
    """Words of the last reply, until the user's next message."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Preferences:
    """Preferences of a user, with the counts behind them."""

    turns: int
    """How many of their messages were counted."""
    topics: tuple[tuple[str, int], ...]
    """Frequent words, most frequent first, each with the number of messages that contain it."""
    hours: tuple[tuple[int, int], ...]
    """Hours of the day of their messages, in their time zone, most frequent first."""
    languages: tuple[tuple[str, int], ...]
    words_per_turn: float
    reply_length: Literal["short", "medium", "long", "unknown"]
    """How long replies should be, by what they asked for, thanked for, or write themselves."""
    tone: tuple[tuple[str, int], ...]
    """What marks how they write: emoji, polite, casual, exclaims, asks, thanks; each with the number of messages."""
    stated: tuple[str, ...]
    """Preferences that they stated."""

    def describe(self) -> str:
        """Return a description in a few lines, for a prompt or a person; empty if nothing is known."""
        lines = []
        if self.stated:
            lines.append("Stated: " + " ".join(self.stated))
        if self.topics:
            lines.append("Often talks about: " + ", ".join(f"{word} ({count})" for word, count in self.topics))
        if self.languages:
            lines.append("Writes in: " + ", ".join(f"{name} ({count})" for name, count in self.languages[:3]))
        if self.hours:
            lines.append("Active at: " + ", ".join(f"{hour:02}h ({count})" for hour, count in self.hours[:3]))
        if self.reply_length != "unknown":
            lines.append(f"Replies they seem to like: {self.reply_length}")
        if self.tone:
            lines.append("Tone: " + ", ".join(f"{name} ({count} of {self.turns})" for name, count in self.tone[:4]))
        return "\n".join(lines)

    def habits(self) -> str:
        """Return in one line how to talk with them; empty while there are too few messages."""
        if self.turns < _LEAST_TURNS:
            return ""
        often = [name for name, times in self.tone if name in _SHOWN_TONES and times >= self.turns * _OFTEN]
        parts = [
            f"Replies they seem to like: {self.reply_length}." if self.reply_length != "unknown" else "",
            f"Writes in {', '.join(name.capitalize() for name, _ in self.languages[:2])}." if self.languages else "",
            f"Their tone: {', '.join(often)}." if often else "",
            f"Often talks about {', '.join(word for word, _ in self.topics[:_NAMED])}." if self.topics else "",
        ]
        return " ".join(filter(None, parts))


class HabitCounter:
    """Counts the habits of users incrementally, each time they are requested."""

    def __init__(self, store: Store, profile: Profile) -> None:
        self._store = store
        self._profile = profile

    async def preferences(self, scope: Scope) -> Preferences:
        """Return the preferences of a user, after counting the messages since the last call."""
        counts = await self.count_new(scope)
        zone = await zone_of(self._store, self._profile, scope)
        stated = [memory for memory in await self._store.read(Memories(scope)) if memory.category == "preference"]
        return preferences(counts, zone, stated)

    async def count_new(self, scope: Scope, after: int = 0, messages: Sequence[Message] = ()) -> Counts:
        """Count the messages of a user since the last call, and return all counts.

        If all since the last call are known to be `messages`, those that follow message `after`, none are read.
        """
        counts, up_to, key = await self._stored(scope)
        first, seen, read = 0, up_to, 0
        known = messages if after == up_to else ()
        while page := known or await self._store.read(MessagesAfter(scope, seen, _PAGE)):
            if len(page) <= _FEW:
                count(counts, page)
            else:
                await asyncio.to_thread(count, counts, page)
            first, seen, read = first or page[0].seq, page[-1].seq, read + len(page)
            if known or len(page) < _PAGE:
                break
        if read:
            # If another process counted the same messages at the same time, its counts are kept. If one of them was
            # erased meanwhile, nothing is kept, and the next call counts again.
            with suppress(SourcesChanged):
                values = {name: getattr(counts, name) for name in Counts.__slots__}
                values["topics"] = dict(counts.topics.most_common(_WORDS_KEPT))
                value, new = json.dumps(values, ensure_ascii=False), (first, seen, read)
                habits = PutDerived(scope, KIND, str(seen), value, instead_of=key, known_user=True, messages=new)
                await self._store.apply([habits])
        return counts

    async def stored_preferences(self, scope: Scope, stated: Sequence[MemoryRecord] = ()) -> Preferences:
        """Return the preferences of a user as they were counted last, without counting new messages."""
        counts, _, _ = await self._stored(scope)
        return preferences(counts, UTC, stated)

    async def _stored(self, scope: Scope) -> tuple[Counts, int, str]:
        kept = await self._store.read(DerivedText(scope, KIND))
        counts = None if kept is None else _read(kept.value)
        if kept is None or counts is None or counts.version != _COUNTED:
            return Counts(version=_COUNTED), 0, "" if kept is None else kept.key
        return counts, int(kept.key), kept.key


def count(counts: Counts, messages: Sequence[Message]) -> None:
    """Add messages to counts. Of a message with several versions, only the newest."""
    for message in messages:
        if message.replaced:
            continue
        words = words_of(message.text[:_LONGEST])
        if message.role == "assistant":
            counts.last_reply = len(words)
        elif message.role == "user" and message.author == message.user:
            _count_turn(counts, message, words)
    if len(counts.topics) > 2 * _WORDS_KEPT:
        counts.topics = Counter(dict(counts.topics.most_common(_WORDS_KEPT)))


def _count_turn(counts: Counts, message: Message, words: Sequence[str]) -> None:
    text = message.text[:_LONGEST]
    usual = next((language for language, _ in counts.languages.most_common(1)), None)
    language = language_told(text, usual) or usual or guess_language(text)
    lists = vocabulary(language)
    counts.turns += 1
    counts.words += len(words)
    counts.hours[str(message.at.hour)] += 1
    counts.languages[language] += 1
    left_out = stop_words(language) | lists.dull | lists.small_talk | lists.times | lists.first_person
    counts.topics.update({word for word in _nouns(text, language, words) if word not in left_out})
    marks = {name for name, pattern in _MARKS.items() if pattern.search(text)}
    counts.tone.update(marks)
    if "thanks" in marks and counts.last_reply:
        counts.liked += 1
        counts.liked_words += counts.last_reply
    counts.last_reply = 0


def _nouns(text: str, language: str, words: Sequence[str]) -> Iterable[str]:
    """Return the words of a text that may name what it is about.

    Where words are not separated, these are runs of letters of which words are made, and no pairs of characters.
    """
    if language == "japanese":
        return _JAPANESE.findall(text)
    if language == "chinese":
        return (each for each in _CHINESE.split(text) if _SHORTEST <= len(each) <= _LONGEST_CHINESE)
    if language == "korean":
        return _KOREAN.findall(text)
    return (word for word in words if len(word) >= _SHORTEST and not word[0].isdigit())


def preferences(counts: Counts, zone: tzinfo, stated: Sequence[MemoryRecord]) -> Preferences:
    return Preferences(
        turns=counts.turns,
        topics=tuple((word, times) for word, times in _most(counts.topics)[:_TOPICS] if times >= _LEAST_OFTEN),
        hours=tuple(_most(_local(counts.hours, zone))),
        languages=tuple(_most(counts.languages)),
        words_per_turn=round(counts.words / counts.turns, 1) if counts.turns else 0.0,
        reply_length=_reply_length(counts),
        tone=tuple((name, times) for name, times in _most(counts.tone) if name not in {"shorter", "longer"}),
        stated=tuple(memory.text for memory in stated),
    )


def _reply_length(counts: Counts) -> Literal["short", "medium", "long", "unknown"]:
    asked = counts.tone["longer"] - counts.tone["shorter"]
    if asked:
        return "long" if asked > 0 else "short"
    if counts.liked:
        length = counts.liked_words / counts.liked
    elif counts.turns:
        length = counts.words / counts.turns
    else:
        return "unknown"
    return "short" if length <= _SHORT else "medium" if length <= _LONG else "long"


def _local(hours: Counter[str], zone: tzinfo) -> Counter[int]:
    found: Counter[int] = Counter()
    for hour, times in hours.items():
        shifted = datetime.fromtimestamp(int(hour) * 3600, tz=zone)
        found[shifted.hour] += times
    return found


def _most(counted: Counter[Any]) -> list[tuple[Any, int]]:
    """Return counted items, most frequent first, in a stable order."""
    return sorted(counted.items(), key=lambda each: (-each[1], str(each[0])))


def _read(text: str) -> Counts:
    values: dict[str, Any] = json.loads(text)
    read: dict[str, Any] = {name: Counter(each) if isinstance(each, dict) else each for name, each in values.items()}
    # Counts of another version may have other fields.
    return Counts(**{each.name: read[each.name] for each in fields(Counts) if each.name in read})
