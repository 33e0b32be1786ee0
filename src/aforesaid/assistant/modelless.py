"""Replies without a language model: what was noted, and what is remembered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from aforesaid.domain.checks import Within
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.models.offline import Spoken, extract
from aforesaid.models.offline.memories.keys import asks_own_name
from aforesaid.models.offline.request_rules import asks, recognise_request
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import fold, words_of

if TYPE_CHECKING:
    from aforesaid.memory import UserMemory


CALLED = ("bot", "aforesaid")
"""Default names of the assistant."""
_QUOTED: Final = 500
"""Maximum characters of a quoted text that a model is shown."""


@dataclass(frozen=True, slots=True)
class Turn:
    user: UserMemory
    """The author's memory, in their thread."""
    text: str
    message: Message | None = None
    """The stored message, if it is stored already."""
    name: str | None = None
    """The author's display name."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of other people who are present, by id; the display name comes first."""
    called: tuple[str, ...] = CALLED
    """Names of the assistant."""
    quoted: str | None = None
    """The text that it replies to."""

    @property
    def asked(self) -> str:
        """What a model is asked: the text, after the beginning of the one that it replies to."""
        quoted = " ".join((self.quoted or "").split())
        if not quoted:
            return self.text
        return f"(In reply to: “{quoted[:_QUOTED]}{'…' if len(quoted) > _QUOTED else ''}”)\n{self.text}"

    def names(self) -> dict[str, str]:
        shown = {user: names[0] for user, names in self.people.items() if names}
        return shown if self.name is None else {**shown, self.user.scope.user: self.name}


_ANSWERS: Final = 3
"""Maximum number of hits in an answer."""
_CANDIDATES: Final = 20
"""Number of hits examined for an answer."""
_LEAST_SCORE: Final = 0.25
"""Minimum score of an answer. It is higher than that of a search: an answer is given as if it were right."""
_LEAST_SIMILARITY: Final = 0.3
"""Minimum similarity (0 to 1, calibrated) of an answer that shares no word with the question."""
_SURE_SIMILARITY: Final = 0.7
"""Minimum similarity of an answer with a low score, as questions without a known word have in small memories."""
_CLOSE_TO_BEST: Final = 0.7
"""Minimum share of the best answer's fit; worse ones are left out."""
_WORTH_OF_A_WORD: Final = 0.25
"""Weight of a found word of the question, on the scale of similarities."""
_CHATS: Final = 10_000
_NO_MODEL: Final = (
    "(No language model is connected, so I note what you tell me and answer with it. /help shows what I can do.)"
)
_GREETING: Final = re.compile(
    r"(?:hi|hello|hey|good (?:morning|evening|day|afternoon)|hallo|guten (?:morgen|tag|abend)|hola|buenos dias|salut|"
    r"bonjour|ciao|ola|oi|hoi|привет|здравствуи\w*|你好|こんにちは|مرحبا|" + fold("안녕(?:하세요)?") + r")\b"
)
_THANKS: Final = re.compile(
    r"(?:(?:many |vielen |herzlichen |besten |muchas |mille |muito |большое )?"
    r"(?:thanks|thank you|thx|danke|dank|gracias|merci|grazie|obrigad[oa]|dank je|bedankt|спасибо)\b|谢谢|شكرا|"
    + fold("ありがとう(?:ございます)?|감사합니다|고마워요?")
    + ")"
)
_NAMES_ADDRESSED: Final = 1
"""Number of unknown words that may follow a greeting: the name of somebody."""


class Modelless:
    """Answers without a model, and mentions that once a day per chat."""

    def __init__(self) -> None:
        self._excused: LRUCache[tuple[str, str, str], date] = LRUCache(_CHATS)

    async def answer(self, turn: Turn) -> str:
        """Answer a question from memory; confirm other messages with what was noted."""
        text = await _remembered(turn) if asks(turn.text) else _noted(turn)
        return f"{text}\n{_NO_MODEL}" if self._is_first_today(turn.user) else text

    def _is_first_today(self, user: UserMemory) -> bool:
        scope, today = user.scope, datetime.now(UTC).date()
        chat = (scope.space, scope.thread, scope.user if is_direct(scope.thread) else "")
        if self._excused.get(chat) == today:
            return False
        self._excused[chat] = today
        return True


def _noted(turn: Turn) -> str:
    """Return a short confirmation of what a message states, or a polite reply."""
    at = datetime.now(UTC) if turn.message is None else turn.message.at
    found = extract([Spoken(turn.name or turn.user.scope.user, turn.text, at)])
    if found:
        return "Noted: " + " ".join(each.quote.strip().rstrip(".") + "." for each in found[:_ANSWERS])
    folded = fold(turn.text).strip()
    if _THANKS.match(folded):
        return "You are welcome."
    return "Hello!" if _GREETING.match(folded) else "Noted."


async def _remembered(turn: Turn) -> str:
    without = () if turn.message is None else (turn.message.id,)
    # With its opening words ("tell me"): search recognises the same question, asked before, by all of its words.
    found = await turn.user.search(turn.text, _CANDIDATES, within=within(turn), without=without, min_score=0)
    remembered = {source for hit in found if hit.kind == "memory" for source in hit.sources}
    reminders = {str(memory.id) for memory in await turn.user.reminders()}
    answers = {
        hit: line
        for hit in found
        if not (hit.kind == "memory" and hit.id in reminders)
        and not _repeats(hit, remembered)
        and (line := _told(hit, turn))
    }
    close = [hit for hit in answers if _answers(hit)]
    best = max(map(_strength, close), default=0.0)
    fitting = [hit for hit in close if _strength(hit) >= _CLOSE_TO_BEST * best]
    told = [answers[hit] for hit in _each_once(sorted(fitting, key=_strength, reverse=True))]
    if asks_own_name(turn.text):
        # "Wie heiße ich?" shares no word with "Ann heißt Jonas", and "Hi, I am Max" is less of an answer than the name.
        known = [memory.text for memory in await turn.user.memories() if memory.subject == "name"]
        told = [f"I know: {text}" for text in known] or told
    return "\n".join(told[:_ANSWERS]) or "I remember nothing about that."


def _each_once(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Return hits without those that say the same again: a memory and its source, or the same words on another day."""
    messages: set[str] = set()
    texts: set[str] = set()
    for hit in hits:
        sources = set(hit.sources) if hit.message is None else {hit.message.id}
        text = " ".join(fold(hit.text).split())
        if messages.isdisjoint(sources) and text not in texts:
            yield hit
        messages |= sources
        texts.add(text)


def _repeats(hit: Hit, remembered: set[str]) -> bool:
    """Return whether a hit is the request behind a memory among the hits. `remembered` are the memories' sources."""
    message = hit.message
    return message is not None and message.id in remembered and recognise_request(message.text).action == "remember"


def _answers(hit: Hit) -> bool:
    """Return whether a hit is good enough for an answer: by its score, or by its meaning alone."""
    similarity = hit.similarity or 0.0
    return similarity >= _SURE_SIMILARITY or (
        hit.score >= _LEAST_SCORE and (bool(hit.terms) or similarity >= _LEAST_SIMILARITY)
    )


def _strength(hit: Hit) -> float:
    """Return how well a hit fits a question, without its neighbours."""
    return (hit.similarity or 0.0) + _WORTH_OF_A_WORD * len(hit.terms)


def _told(hit: Hit, turn: Turn) -> str:
    """Return a hit as an answer; empty for questions, commands, greetings, thanks and messages of the assistant."""
    message = hit.message
    if hit.kind not in {"message", "memory"} or (message is not None and message.role != "user"):
        return ""
    if message is None:
        return f"I know: {hit.text}"
    said = [
        sentence
        for sentence in split_sentences(message.text)
        if not asks(sentence)
        and not _only_polite(sentence)
        and recognise_request(sentence, bots=turn.called).action not in {"recall", "forget", "remind"}
    ]
    if not said:
        return ""
    who = "You" if message.author == turn.user.scope.user else message.name or "Somebody"
    return f"{who} said on {message.at.day} {message.at:%B %Y}: {' '.join(said)}"


def _only_polite(sentence: str) -> bool:
    """Return whether a sentence greets or thanks somebody, and says nothing else."""
    folded = fold(sentence).strip()
    found = _GREETING.match(folded) or _THANKS.match(folded)
    if found is None:
        return False
    language = guess_language(sentence)
    lists = vocabulary(language)
    light = stop_words(language) | lists.small_talk | lists.second_person | lists.dull
    rest = words_of(folded[found.end() :])
    unknown = [word for word in rest if word not in light]
    return not unknown or len(rest) == len(unknown) <= _NAMES_ADDRESSED


def within(turn: Turn) -> Within:
    """Return where to search: the whole thread in a channel, the person's messages in a direct chat."""
    return "user" if is_direct(turn.user.scope.thread) else "thread"
