"""Stores a message, answers it with a context or without a language model, and stores the reply, on any platform."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from aforesaid.assistant import chat_texts, wishes
from aforesaid.assistant.commands import CALLED, Answer, Names, Turn, meant, reminders_here, told_here, with_names
from aforesaid.assistant.phrases import ChatLanguages, Phrases
from aforesaid.assistant.router import FreeForm, Router
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import DOUBTED, ENDED, FORGOTTEN, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import is_direct
from aforesaid.errors import ModelError
from aforesaid.facts.describing import (
    answer_from,
    asked_about,
    asked_for,
    names_somebody,
    of_member,
    of_somebody,
    people_lines,
)
from aforesaid.facts.values import HEALTH
from aforesaid.models.offline import Spoken, extract
from aforesaid.models.offline.memories.keys import asks_own_name
from aforesaid.models.offline.request_rules import recognise_request
from aforesaid.text.sentences import length_in_words, split_sentences
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
_SURELY_SIMILAR: Final = 0.5
"""The same of a question for a matter of which nothing is known."""
_CLOSE_TO_BEST: Final = 0.7
"""Minimum share of the best answer's fit; worse ones are left out."""
_WORTH_OF_A_WORD: Final = 0.25
"""Weight of a found word of the question, on the scale of similarities."""
_READ: Final = 8
"""Hits whose sentences are read for an answer."""
_INTERJECTION: Final = 2
"""Words up to which a text without a statement is an exclamation."""
_TELLING: Final = frozenset({"tell", "correct", "request"})
"""Intents of sentences that say something about somebody."""
_TOLD: Final = _TELLING | {"reminders"}
"""The same for a part of a message that asks for no reminders, though it sounds so."""
_PERSONAL: Final = HEALTH | {"age", "own", "like", "dislike", "hobby"}
"""Matters of others that are no answer to a question about oneself."""
_QUESTION_MARKS: Final = ("?", "？", "؟")
_CHATS: Final = 10_000


async def _remembered(memory: Memory, turn: Turn, question: str, say: Phrases) -> str:
    """Answer a question with what is remembered: what is known and what was said, without what is over."""
    without = () if turn.message is None else (turn.message.id,)
    known = await turn.user.memories(active=None)
    language = say.language
    if lines := await _of_somebody(memory, turn, question, known, language, say):
        return "\n".join(lines)
    if (asked := answer_from(question, known, language)) is not None and asked:
        return "\n".join(say("recall.memory", text=each) for each in asked)
    # With its opening words ("tell me"): search recognises the same question, asked before, by all of its words.
    found = await turn.user.search(question, _CANDIDATES, within=turn.within, without=without, min_score=0)
    remembered = {source for hit in found if hit.kind == "memory" for source in hit.sources}
    reminders = {str(each.id) for each in known if each.category == "reminder"}
    texts = {str(each.id): chat_texts.told(each) for each in known}
    people = {str(number): text for number, text in people_lines(known, language).items()}
    texts |= people
    current = {seq for each in known if each.active for seq in each.sources}
    ended = [each for each in known if _is_over(each)]
    over = {seq for each in ended for seq in each.sources} - current
    # What is asked of oneself is not answered with what is known of somebody else, nor with one's name.
    own = asks_own_name(question)
    left_out = reminders | {str(each.id) for each in known if each.matter == "name" and each.about is None and not own}
    if asked is not None or (wishes.speaks_of_self(question) and not names_somebody(question, known, language)):
        of_others = [each for each in known if each.about is not None and each.matter in _PERSONAL]
        left_out |= {str(each.id) for each in of_others}
        over |= {seq for each in of_others for seq in each.sources}
    for author in {hit.message.author for hit in found if hit.message is not None} - {turn.user.scope.user}:
        theirs = await memory.user(author, space=turn.user.scope.space).memories(active=None)
        ended += [each for each in theirs if _is_over(each)]
    hits = []
    for hit in found:
        message = hit.message
        if (hit.kind == "memory" and hit.id in left_out) or (message is not None and message.seq in over):
            continue
        action = "none" if message is None else recognise_request(message.text).action
        # The request behind a memory among the hits says the same again. Other requests tell nothing.
        if message and action != "none" and (action != "remember" or message.id in remembered):
            continue
        if hit.kind == "memory" or (message is not None and message.role == "user"):
            hits.append(hit)
    over_values = [(each.sources, each.value) for each in ended if each.value]
    statements = await _statements(memory, hits[:_READ], over_values, turn.called)
    tells = {hit: statements.get(hit, texts.get(hit.id, hit.text)) for hit in hits[:_READ]}
    answers = {hit: line for hit, text in tells.items() if (line := _told(hit, text, turn, say))}
    # What is asked for by its matter is not guessed from what only sounds alike.
    open_question = asked is None and not wishes.mentions("why", question) and not asked_about(question)
    telling = wishes.telling({term for hit in answers for term in hit.terms}, question)
    close = [
        hit
        for hit in answers
        if _answers(hit) and (open_question or _is_surely_about(hit, telling, of_oneself=asked is not None))
    ]
    asked_for = set(words_of(question))
    most = max((len(hit.terms) for hit in close if hit.kind == "message"), default=0)
    # Who Ana is does not answer when her birthday is.
    close = [hit for hit in close if hit.id not in people or len(hit.terms) >= most]
    if named := [hit for hit in close if hit.id in people and not asked_for.isdisjoint(hit.terms)]:
        # "Where does Beth live" is not answered with where somebody else lives.
        close = [hit for hit in close if hit in named or hit.kind == "message"]
    best = max(map(_strength, close), default=0.0)
    fitting = [hit for hit in close if _strength(hit) >= _CLOSE_TO_BEST * best]
    told = [answers[hit] for hit in _each_once(sorted(fitting, key=_strength, reverse=True))]
    if own:
        # "Wie heiße ich?" shares no word with "Ann heißt Jonas", and "Hi, I am Max" is less of an answer than the name.
        told = [
            say("recall.memory", text=chat_texts.told(each)) for each in known if each.active and each.subject == "name"
        ] or told
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


def _is_surely_about(hit: Hit, telling: Collection[str], *, of_oneself: bool) -> bool:
    """Return whether a hit answers a question for a matter without a known value: it shares words that tell something.

    Without an embedder, one word is enough: no values are read then either. So it is of what is asked of oneself, where
    what is known of others is left out.
    """
    shared = [each for each in hit.terms if each in telling]
    is_close = of_oneself or hit.similarity is None or hit.similarity >= _SURELY_SIMILAR
    return len(shared) > 1 or (bool(shared) and is_close)


def _is_over(memory: MemoryRecord) -> bool:
    return memory.state == "superseded" or memory.reason in {FORGOTTEN, ENDED}


async def _of_somebody(
    memory: Memory, turn: Turn, question: str, known: Sequence[MemoryRecord], language: str, say: Phrases
) -> list[str]:
    """Return what is known of somebody whom a question names: a relative or a pet, or a member of the group."""
    now, before = of_somebody(question, known, language)
    if now or before:
        return [*(say("recall.memory", text=each) for each in now), *(say("recall.past", text=each) for each in before)]
    scope, asked = turn.user.scope, asked_about(question)
    if is_direct(scope.thread) or not asked:
        return []
    names = Names.around(turn, await memory.names(scope.space))
    members = {user for word in question.split() for user in meant(word.strip("?!.,;:¿¡"), turn, names)}
    lines = [
        f"{names.of(member) or member}: {line}"
        for member in sorted(members - {scope.user})
        for theirs in [await told_here(memory.user(member, space=scope.space, thread=scope.thread))]
        for line in of_member(asked, theirs, language)
    ]
    return [say("recall.memory", text=each) for each in lines]


def _strength(hit: Hit) -> float:
    """Return how well a hit fits a question, without its neighbours."""
    # A message that was just stored has not been compared yet.
    meaning = hit.score if hit.similarity is None and hit.kind == "message" else hit.similarity or 0.0
    return meaning + _WORTH_OF_A_WORD * len(hit.terms)


async def _statements(
    memory: Memory, hits: Sequence[Hit], ended: Sequence[tuple[tuple[int, ...], str]], called: Sequence[str]
) -> dict[Hit, str]:
    """Return what messages among the hits tell: their sentences without questions, requests and pleasantries.

    A sentence that tells a value which is over is left out. `ended` has these, with the messages that told them.
    """
    sentences = {
        hit: split_sentences(wishes.without_address(hit.message.text, called))
        for hit in hits
        if hit.message is not None
    }
    every = list(dict.fromkeys(each for said in sentences.values() for each in said if each.strip()))
    wants = dict(zip(every, await memory.intents(every), strict=True)) if every else {}
    found = {}
    for hit, said in sentences.items():
        over = [value for sources, value in ended if hit.message is not None and hit.message.seq in sources]
        told = [
            each
            for each in said
            if each in wants and wants[each].best in _TELLING and not wishes.is_asked(each, wants[each])
            if not any(_tells(each, value) for value in over)
        ]
        # What is left of a message has to share a word with the question, if the whole does.
        terms = wishes.telling(hit.terms, hit.text)
        is_whole = len(told) == len(said) or not hit.terms
        fits = is_whole or any(fold(term) in fold(each) for each in told for term in terms)
        found[hit] = " ".join(told) if fits else ""
    return found


def _tells(sentence: str, value: str) -> bool:
    return fold(value) in fold(sentence) or set(words_of(fold(sentence))).issuperset(words_of(fold(value)))


def _told(hit: Hit, statement: str, turn: Turn, say: Phrases) -> str:
    """Return a hit as an answer; empty for messages that tell nothing."""
    message = hit.message
    if message is None:
        return say("recall.memory", text=statement)
    if not statement:
        return ""
    date = say.day(message.at)
    if message.author == turn.user.scope.user:
        return say("recall.you", date=date, text=statement)
    if not message.name:
        return say("recall.somebody", date=date, text=statement)
    return say("recall.other", name=message.name, date=date, text=statement)


def _asks(part: wishes.Part) -> bool:
    """Return whether a part of a message wants an answer; a call for help does too."""
    # One word for help sounds like thanks in some languages.
    may_help = part.intent in {"tell", "chat"} or length_in_words(part.text) <= _INTERJECTION
    helps = may_help and wishes.asks_only("can_do", part.text)
    plans = part.intent == "reminders" and wishes.asks_for_plans(part.text)
    return part.intent == "ask" or helps or plans or wishes.asks_only("coming_up", part.text)


async def _small_answer(memory: Memory, turn: Turn, question: str, say: Phrases) -> str | None:
    """Answer what needs no memory: the day, the time, how and who the bot is, what it can do. None for the rest."""
    now = datetime.now(await turn.user.time_zone())
    if wishes.asks_for_plans(question):
        return chat_texts.coming_up(await turn.user.schedule(), await reminders_here(memory, turn.user), now, say)
    if wishes.asks_only("today", question):
        return say("small.today", date=say.day(now), weekday=say.weekday(now))
    if wishes.asks_only("time", question):
        return say("small.time", time=f"{now:%H:%M}", zone=now.tzinfo)
    if wishes.asks_only("can_do", question):
        return say("small.can_do")
    if wishes.asks_only("who_are_you", question):
        name = next((each for each in turn.called if each not in CALLED), CALLED[-1].title())
        return say("small.who_are_you", name=name)
    if wishes.asks_only("how_are_you", question):
        return say("small.how_are_you")
    # "Que descanses" begins like a question.
    return say("small.bye") if wishes.greeting_languages(question, "bye") else None


def _polite_answer(part: wishes.Part, say: Phrases) -> str:
    """Answer what tells nothing and asks for nothing: a greeting, thanks, a mood, a joke, a task."""
    if wishes.greeting_languages(part.text, "bye"):
        return say("small.bye")
    if part.intent == "greet":
        if wishes.mentions("how_are_you", part.text):
            return say("small.how_are_you")
        if wishes.mentions("bye", part.text):
            return say("small.bye")
        # What only sounds like a greeting may be sad news.
        greets = wishes.mentions("hello", part.text) or length_in_words(part.text) <= _INTERJECTION
        return say("hello" if greets else "small.ok")
    if part.intent == "thank":
        return say("welcome")
    if part.intent == "feel":
        return say("small.feel")
    # Answer a laugh, an emoji or a cheer with an emoji. Say of a task that the bot cannot do it.
    is_task = length_in_words(part.text) > _INTERJECTION and not part.text.rstrip().endswith(("!", "！"))
    is_task = is_task and not wishes.says_little(part.text)
    return say("small.cannot") if is_task else "🙂"


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
        self._given: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(_CHATS)
        """The notices about storing that users were given with their last message."""
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
        for notice in self._new_notices(user, receipt):
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

    def _new_notices(self, user: UserMemory, receipt: Receipt) -> list[str]:
        """Return the notices of a receipt that this user was not given with the message before."""
        key, found = (user.scope.space, user.scope.user), chat_texts.notices(receipt)
        before = self._given.get(key, frozenset())
        self._given[key] = found
        return sorted(found - before)

    async def requested(self, turn: Turn) -> Answer | None:
        """Carry out the free-form request of a stored message; return None if it is none."""
        request = await self._free_form.recognise(turn)
        if request is None:
            return None
        return await self._free_form.carry_out(turn, request, await self.languages.of(turn.user, turn.text))

    async def _without_model(self, turn: Turn, say: Phrases) -> str:
        """Answer each part of a message: questions with what is known, statements with what was noted of them."""
        if wishes.is_name(turn.words, turn.called):
            return say("hello")
        parts = await wishes.parts_of(self._memory, turn.words)
        asked = [part for part in parts if _asks(part)]
        told = [
            part.text
            for part in parts
            if part.intent in _TOLD and part not in asked and not wishes.greeting_languages(part.text, "bye")
        ]
        lines = [await self._answered(turn, part, say, alone=not told) for part in asked]
        if told:
            lines.insert(0, await self._noted(turn, " ".join(told), say) or say("small.ok"))
        if not lines:
            lines = [_polite_answer(max(parts, key=lambda part: max(part.wants.probabilities)), say)]
            # "Hi, I am Max" greets, and tells a name.
            if length_in_words(turn.words) > _INTERJECTION:
                lines.append(await self._noted(turn, turn.words, say))
        return "\n".join(dict.fromkeys(line for line in lines if line))

    async def _answered(self, turn: Turn, part: wishes.Part, say: Phrases, *, alone: bool) -> str:
        """Answer a question. One that stands alone, without a question mark, may be a statement; learn from it."""
        if small := await _small_answer(self._memory, turn, part.text, say):
            return small
        may_tell = alone and not part.text.rstrip().endswith(_QUESTION_MARKS)
        noted = await self._noted(turn, part.text, say) if may_tell and asked_for(part.text) is None else ""
        if noted:
            return noted
        found = await _remembered(self._memory, turn, part.text, say)
        if may_tell and found == say("recall.nothing"):
            return await self._noted(turn, part.text, say) or found
        return found

    async def _noted(self, turn: Turn, told: str, say: Phrases) -> str:
        """Learn from a stored message, and say that something was noted of it; empty if nothing was."""
        if turn.message is None:
            return ""
        if await self._memory.learn(turn.user.scope):
            known = await turn.user.memories(active=None)
            learned = any(turn.message.seq in each.sources for each in known if each.active or each.reason == DOUBTED)
        else:
            # Nothing is extracted in this profile. What states something is found again as it was said.
            learned = bool(extract([Spoken(turn.name or turn.user.scope.user, told, turn.message.at)]))
        return say("noted_that", what=told) if learned else ""

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
            text = await self._without_model(turn, say)
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
