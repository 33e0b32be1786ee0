"""Stores a message, answers it with a context or without a language model, and stores the reply, on any platform."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from aforesaid.assistant import chat_texts
from aforesaid.assistant.commands import Answer, Names, Turn, with_names
from aforesaid.assistant.phrases import ChatLanguages, Phrases
from aforesaid.assistant.router import FreeForm, Router
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.errors import ModelError
from aforesaid.models.offline import Spoken, extract
from aforesaid.models.offline.memories.keys import asks_own_name
from aforesaid.models.offline.request_rules import asks, recognise_request
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import fold, words_of

if TYPE_CHECKING:
    from aforesaid.context import Context
    from aforesaid.memory import Memory, UserMemory
    from aforesaid.models.chat import Reply as ModelReply


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


def _noted(turn: Turn, say: Phrases) -> str:
    """Return a short confirmation of what a message states, or a polite reply."""
    at = datetime.now(UTC) if turn.message is None else turn.message.at
    found = extract([Spoken(turn.name or turn.user.scope.user, turn.text, at)])
    if found:
        return say("noted_that", what=" ".join(each.quote.strip().rstrip(".") + "." for each in found[:_ANSWERS]))
    folded = fold(turn.text).strip()
    if _THANKS.match(folded):
        return say("welcome")
    return say("hello" if _GREETING.match(folded) else "noted")


async def _remembered(turn: Turn, say: Phrases) -> str:
    without = () if turn.message is None else (turn.message.id,)
    # With its opening words ("tell me"): search recognises the same question, asked before, by all of its words.
    found = await turn.user.search(turn.text, _CANDIDATES, within=turn.within, without=without, min_score=0)
    remembered = {source for hit in found if hit.kind == "memory" for source in hit.sources}
    reminders = {str(memory.id) for memory in await turn.user.reminders()}
    answers: dict[Hit, str] = {}
    for hit in found:
        if hit.kind == "memory" and hit.id in reminders:
            continue
        # The request behind a memory among the hits says the same again.
        message = hit.message
        if message and message.id in remembered and recognise_request(message.text).action == "remember":
            continue
        if line := _told(hit, turn, say):
            answers[hit] = line
    close = [hit for hit in answers if _answers(hit)]
    best = max(map(_strength, close), default=0.0)
    fitting = [hit for hit in close if _strength(hit) >= _CLOSE_TO_BEST * best]
    told = [answers[hit] for hit in _each_once(sorted(fitting, key=_strength, reverse=True))]
    if asks_own_name(turn.text):
        # "Wie heiße ich?" shares no word with "Ann heißt Jonas", and "Hi, I am Max" is less of an answer than the name.
        known = [memory.text for memory in await turn.user.memories() if memory.subject == "name"]
        told = [say("recall.memory", text=text) for text in known] or told
    return "\n".join(told[:_ANSWERS]) or say("recall.nothing")


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


def _answers(hit: Hit) -> bool:
    """Return whether a hit is good enough for an answer: by its score, or by its meaning alone."""
    similarity = hit.similarity or 0.0
    return similarity >= _SURE_SIMILARITY or (
        hit.score >= _LEAST_SCORE and (bool(hit.terms) or similarity >= _LEAST_SIMILARITY)
    )


def _strength(hit: Hit) -> float:
    """Return how well a hit fits a question, without its neighbours."""
    return (hit.similarity or 0.0) + _WORTH_OF_A_WORD * len(hit.terms)


def _told(hit: Hit, turn: Turn, say: Phrases) -> str:
    """Return a hit as an answer; empty for questions, commands, greetings, thanks and messages of the assistant."""
    message = hit.message
    if hit.kind not in {"message", "memory"} or (message is not None and message.role != "user"):
        return ""
    if message is None:
        return say("recall.memory", text=hit.text)
    said = [
        sentence
        for sentence in split_sentences(message.text)
        if not asks(sentence)
        and not _only_polite(sentence)
        and recognise_request(sentence, bots=turn.called).action not in {"recall", "forget", "remind"}
    ]
    if not said:
        return ""
    date, text = say.day(message.at), " ".join(said)
    if message.author == turn.user.scope.user:
        return say("recall.you", date=date, text=text)
    if not message.name:
        return say("recall.somebody", date=date, text=text)
    return say("recall.other", name=message.name, date=date, text=text)


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


SYSTEM: Final = "You are a helpful assistant with a long memory. Answer briefly."


@dataclass(slots=True)
class SentContext:
    """What a model was sent for one answer, and what it reported."""

    context: Context | None = None
    """None until a model is asked."""
    answered: ModelReply | None = None
    """The model and the tokens that it reported."""
    milliseconds: dict[str, int] = field(default_factory=dict)
    _began: float = 0.0

    def start(self, context: Context) -> None:
        self.context, self._began = context, perf_counter()

    def note(self, what: str) -> None:
        """Note how long something took since then, unless it was noted before."""
        self.milliseconds.setdefault(what, round((perf_counter() - self._began) * 1_000))

    def end(self, answered: ModelReply) -> None:
        self.answered = answered


class Assistant:
    def __init__(self, memory: Memory, *, system: str = SYSTEM) -> None:
        self._memory = memory
        self._system = system
        self._free_form = FreeForm(memory)
        self._excused: LRUCache[tuple[str, str, str], date] = LRUCache(_CHATS)
        """The chats in which it was mentioned that no model answers, and the day."""
        self.router = Router(memory)

    @property
    def languages(self) -> ChatLanguages:
        return self.router.languages

    @property
    def speaks(self) -> bool:
        """Whether a model answers. Replies without a model are not part of the conversation and not stored."""
        return self._memory.models is not None and self._memory.models.has("chat")

    async def command(self, user: UserMemory, text: str, *, name: str | None = None) -> Answer | None:
        """Answer a command or a free-form request; return None for anything else. Requests are stored as messages."""
        answer = await self.router.answer(user, text)
        if answer is not None or not text.strip():
            return answer
        turn = Turn(user, text, name=name)
        request = await self._free_form.recognise(turn)
        if request is None:
            return None
        # Stored first, so that forgetting applies to this message too.
        receipt = await user.add("user", text, name=name)
        say = await self.languages.of(user, text)
        answer = await self._free_form.carry_out(Turn(user, text, receipt.message, name), request, say)
        await user.add("assistant", answer.text)
        return answer

    async def reply(self, user: UserMemory, text: str, *, name: str | None = None) -> AsyncGenerator[str, None]:
        """Store a message, and yield the reply piece by piece. Notices that are not the model's are in brackets."""
        receipt = await user.add("user", text, name=name)
        say = await self.languages.of(user, text)
        for notice in sorted(chat_texts.notices(receipt)):
            yield f"{say(notice)}\n"
        turn, sent = Turn(user, text, receipt.message, name), SentContext()
        pieces: list[str] = []
        reply: Message | None = None
        try:
            try:
                async with aclosing(self.answer(turn, sent)) as answer:
                    async for piece in answer:
                        pieces.append(piece)
                        yield piece
            except ModelError as error:
                yield say("model.failed", why=chat_texts.failure(error, say))
            if pieces and self.speaks:
                reply = (await user.add("assistant", "".join(pieces))).message
        finally:  # also if nobody waits for the rest of the answer: the model was sent it all the same
            self.keep_receipt(turn, sent, reply)

    async def requested(self, turn: Turn) -> Answer | None:
        """Carry out the free-form request of a stored message; return None if it is none."""
        request = await self._free_form.recognise(turn)
        if request is None:
            return None
        return await self._free_form.carry_out(turn, request, await self.languages.of(turn.user, turn.text))

    def keep_receipt(self, turn: Turn, sent: SentContext, reply: Message | None) -> None:
        """Store in the background what a model was sent to answer a turn, and the stored reply; nothing without one."""
        if sent.context is None:
            return
        keeper, answered = self._memory.receipt_keeper, sent.answered
        receipt = keeper.receipt_of(turn.user.scope, turn.user.actor, sent.context)
        keeper.keep_later(
            replace(
                receipt,
                reply=None if reply is None else reply.seq,
                model=None if answered is None else answered.model,
                # Zero if the provider reports none.
                input_tokens=None if answered is None else answered.prompt_tokens or None,
                output_tokens=None if answered is None else answered.reply_tokens or None,
                milliseconds={**receipt.milliseconds, **sent.milliseconds},
            )
        )

    async def answer(self, turn: Turn, sent: SentContext | None = None) -> AsyncGenerator[str, None]:
        """Yield the answer to a stored message piece by piece. Nothing is stored here.

        `sent` is filled with what was sent to the model, for `keep_receipt`. Raises ModelError when the model fails,
        perhaps after some pieces. Without a model it says what it remembers.
        """
        chat = self._memory.models
        if chat is None or not self.speaks:
            say = await self.languages.of(turn.user, turn.text)
            text = await _remembered(turn, say) if asks(turn.text) else _noted(turn, say)
            scope, today = turn.user.scope, datetime.now(UTC).date()
            place = (scope.space, scope.thread, scope.user if is_direct(scope.thread) else "")
            yield text if self._excused.get(place) == today else f"{text}\n{say('model.none')}"
            self._excused[place] = today
            return
        from aforesaid.models.chat import Said  # noqa: PLC0415 - brings the libraries of models

        sent = SentContext() if sent is None else sent
        # Without the stored message, a context knows what is asked by its text alone.
        asked = turn.text if turn.message is None else turn.asked
        context = await turn.user.context(asked, system=self._system, answers=turn.message, tools=False, sent=False)
        sent.start(context)
        mentions = any("@" in message["content"] for message in context.messages)
        direct = is_direct(turn.user.scope.thread)
        known = {} if direct or not mentions else await self._memory.names(turn.user.scope.space)
        names = Names.around(turn, known)
        said = [
            Said(message["role"], with_names(message["content"], names), message.get("name"))
            for message in context.messages
        ]
        async with aclosing(chat.stream("chat", said, scope=turn.user.scope, ended=sent.end)) as stream:
            async for piece in stream:
                sent.note("first_byte")
                yield piece
        sent.note("reply")
