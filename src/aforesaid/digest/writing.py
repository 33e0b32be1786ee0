"""Writes summaries with a model if one is configured and answers, otherwise by extracting sentences.

No store is touched here, and no transaction is open while a model writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import date, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from aforesaid.digest.quality import (
    is_supported,
    language_of,
    require_support,
    told_in_another_language,
    true_sentences,
)
from aforesaid.digest.sources import (
    NOTHING_KNOWN,
    DayTalk,
    ImportantMemory,
    Weights,
    Worth,
    fenced,
    fenced_summaries,
    newest,
    shown,
    spoken,
    summarised,
    with_important,
)
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import NOTHING_SAID, Summary
from aforesaid.errors import InvalidInput, ModelError, ModelGarbled, NoModel
from aforesaid.extras import re
from aforesaid.models import offline
from aforesaid.models.embed import Embedder
from aforesaid.models.offline.summary.choose import join
from aforesaid.models.prompts import (
    Fenced,
    Part,
    Prompt,
    enclose,
    enclosed,
    fence_labelled,
    load_prompt,
    name_speakers,
    quote,
)
from aforesaid.settings import Operation, Route
from aforesaid.text.languages import ENGLISH, guess_language, language_told
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import by_language

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid.digest")

WITHOUT_MODEL: Final = "extractive/1"
"""The prompt version of summaries that were made without a model."""
_PER_SENTENCE: Final = 100
"""Characters of a sentence."""
_FEW_MESSAGES: Final = 10
"""Maximum messages that a small model is given at a time,"""
_FEW_CHARACTERS: Final = 2_500
"""and their maximum characters, or those of summaries: with the instructions about 1,000 tokens."""
_FEW_SENTENCES: Final = 4
"""Maximum sentences that it is asked for: about 100 tokens."""
TELLING_LANGUAGE: Final = 50
"""Number of newest messages from which the language of a person is detected."""
_DIGITS: Final = re.compile(r"\d+")
_SENTENCE_ENDS: Final = ".!?…。！？"


_Source = TypeVar("_Source")


class Written(NamedTuple):
    """A text, and what wrote it."""

    text: str
    model: str | None
    prompt: str
    details: Mapping[str, Any] | None = None


class _Sources(NamedTuple):
    """The sources shown to a model, to check its summary."""

    messages: Sequence[Message]
    summaries: Sequence[Summary] = ()
    people: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [message.shown_text for message in self.messages] + [summary.text for summary in self.summaries]

    def in_parts(self, characters: int) -> list[tuple[_Sources, int]]:
        """Return the sources in equal parts for a small model, each with its share of the characters of a summary."""
        length, sources = sum(map(len, self.texts)), len(self.messages) + len(self.summaries)
        count = min(max(-(-len(self.messages) // _FEW_MESSAGES), -(-length // _FEW_CHARACTERS), 1), sources)
        share = min(max(characters // count, _PER_SENTENCE), _FEW_SENTENCES * _PER_SENTENCE, characters)

        def part(given: Sequence[_Source], number: int) -> Sequence[_Source]:
            return given[len(given) * number // count : len(given) * (number + 1) // count]

        return [
            (self._replace(messages=part(self.messages, number), summaries=part(self.summaries, number)), share)
            for number in range(count)
        ]

    @property
    def names(self) -> list[str]:
        """The names of the people who spoke, and the days on which they did."""
        spoken = [name for each in self.messages for name in (each.name, each.author, f"{each.at:%Y-%m-%d}") if name]
        covered = [f"{each.began_at:%Y-%m-%d} {each.ended_at:%Y-%m-%d}" for each in self.summaries]
        return [*dict.fromkeys(spoken), *covered, *self.people]


class Writer:
    def __init__(
        self,
        chat: Chat | None,
        route: Callable[[Operation], Route],
        zone: Callable[[str], tzinfo],
        embedder: Embedder | None = None,
    ) -> None:
        """Without `chat`, summaries are made by rules. `route` says what to do when no model answers.

        What a model writes must be supported by its sources: in words, or in meaning by the `embedder`. Otherwise it
        counts as no answer.
        """
        self._chat = chat
        self._embedder = embedder
        self._route = route
        self.zone = zone

    def has_model(self, operation: Operation = "summarize") -> bool:
        """Return whether a model is configured, even if it does not answer."""
        return self._chat is not None and self._chat.has(operation)

    async def of_messages(
        self,
        scope: Scope,
        messages: Sequence[Message],
        characters: int,
        known: Weights = NOTHING_KNOWN,
        *,
        quiet: bool = False,
        earlier: Sequence[Message] = (),
    ) -> Written:
        """Summarise messages. The summary states the important memories that come from them.

        Without a model, it quotes the best of what hardly tells anything, or with `quiet` says that nothing was told,
        in the language of `earlier` messages.
        """
        zone, messages = self.zone(scope.space), newest(messages)
        said, important = spoken(messages, zone, known.worth), known.important
        written = await self._write(
            "summarize",
            scope,
            characters,
            _Sources(messages),
            lambda given: {
                "messages": fenced(given.messages, zone),
                "important": _fenced(important if given.messages == messages else ()),
            },
            lambda given, room: (
                offline.summarise(spoken(given.messages, zone, known.worth), room, quiet=quiet)
                or (quiet_day(given.messages, earlier) if quiet else "")
            ),
        )
        return await _completed(written, important, characters, lambda room: offline.summarise(said, room))

    async def of_summaries(
        self, scope: Scope, summaries: Sequence[Summary], characters: int, known: Weights = NOTHING_KNOWN
    ) -> Written:
        """Summarise summaries, oldest first. The summary states the important memories of the time that they cover."""
        zone, summaries = self.zone(scope.space), [summary for summary in summaries if summary.valid]
        parts, important = summarised(summaries, zone, known.resolved), known.important
        written = await self._write(
            "fold",
            scope,
            characters,
            _Sources((), summaries),
            lambda given: {
                "summaries": fenced_summaries(given.summaries, zone),
                "important": _fenced(important if given.summaries == summaries else ()),
            },
            lambda given, room: offline.summarise_summaries(summarised(given.summaries, zone, known.resolved), room),
        )
        return await _completed(written, important, characters, lambda room: offline.summarise_summaries(parts, room))

    async def onwards(
        self,
        scope: Scope,
        previous: Summary | None,
        messages: Sequence[Message],
        characters: int,
        newer: int,
        known: Weights = NOTHING_KNOWN,
    ) -> Written:
        """Extend a summary with newer messages, which get `newer` characters. Older ones are not read again."""
        if previous is None or not previous.valid:
            return await self.of_messages(scope, messages, newer, known._replace(important=()))
        zone, messages = self.zone(scope.space), newest(messages)
        characters = min(characters, len(previous.text) + newer)
        if messages and self._is_small("summarize"):
            # It adds what is new. Rules choose what is left out of the older part, for want of room.
            added = await self.of_messages(scope, messages, newer, known._replace(important=()))
            room = max(characters - len(added.text) - 1, 1)
            kept = previous.text
            if len(kept) > room:
                kept = await asyncio.to_thread(offline.summarise_summaries, [offline.Summarised(kept)], room)
            return added._replace(text=f"{kept}\n{added.text}")
        return await self._write(
            "roll",
            scope,
            characters,
            _Sources(messages, (previous,) if messages else ()),
            lambda given: {"previous": previous.text, "messages": fenced(given.messages, zone)},
            lambda _, room: offline.roll(previous.text, spoken(messages, zone, known.worth), room, newer=newer),
        )

    async def of_week(self, scope: Scope, name: str, days: Sequence[Summary], characters: int) -> Written:
        """Summarise several days of a person. Quiet ones are left out, unless all are quiet."""
        days = [each for each in days if not _is_quiet(each.text)] or days
        zone = self.zone(scope.space)

        def parts(given: _Sources) -> Mapping[str, Part]:
            dated = [(each.day or each.began_at.date(), each.text) for each in given.summaries]
            texts = enclose("days", "day", (({"date": day.isoformat()}, text) for day, text in dated))
            return {"first": dated[0][0], "last": dated[-1][0], "name": name, "days": texts}

        return await self._write(
            "week",
            scope,
            characters,
            _Sources((), days, (name,)),
            parts,
            lambda given, room: offline.summarise_summaries(summarised(given.summaries, zone), room),
        )

    async def of_day(self, scope: Scope, talk: DayTalk, characters: int) -> tuple[dict[str, Written], str]:
        """Have a model summarise a day for its participants in one call. Return its texts and the prompt's version.

        It may leave people out; without a model, or where none answers, all of them.
        """
        operation: Operation = "day"
        if self.has_model(operation):
            try:
                if self._is_small(operation):
                    return await self._day_in_parts(scope, talk, characters), load_prompt("summarize").version
                return await self._day(scope, talk, characters), load_prompt("day").version
            except ModelError:
                if not self._route(operation).without:
                    raise
        return {}, WITHOUT_MODEL

    async def of_persons_day(
        self, scope: Scope, messages: Sequence[Message], characters: int, worth: Mapping[int, Worth]
    ) -> str:
        """Summarise a person's day by rules: what was said in the threads in which they spoke; empty if it was quiet.

        What others said counts less.
        """
        said = spoken(messages, self.zone(scope.space), worth)
        name = name_speakers(newest(messages)).get(scope.user)
        # About so many characters: names and dates take some of them.
        room = characters * 4 // 3
        return await asyncio.to_thread(offline.summarise, said, room, person=name, quiet=True)

    async def of_history(
        self,
        scope: Scope,
        previous: Summary | None,
        messages: Sequence[Message],
        characters: int,
        newer: int,
        today: date,
        known: Weights = NOTHING_KNOWN,
    ) -> Written:
        """Extend the analysis of a history with newer messages, which get `newer` characters without a model."""
        messages = newest(messages)
        previous = None if previous is None or not previous.valid else previous
        if messages and self.has_model() and self._is_small("summarize"):
            # One question: topics, preferences and items come from what is known.
            return await self.onwards(scope, previous, messages, characters, newer, known)
        if messages and self.has_model():
            try:
                return await self._history(scope, previous, messages, characters, today)
            except ModelError:
                if not self._route("summarize").without:
                    raise
        before = previous.text if previous is not None else ""
        said = spoken(messages, self.zone(scope.space), known.worth)
        text = await asyncio.to_thread(offline.roll, before, said, characters, newer=newer)
        return Written(text or NOTHING_SAID, None, WITHOUT_MODEL, None if previous is None else previous.details)

    async def _write(
        self,
        prompt_name: str,
        scope: Scope,
        characters: int,
        sources: _Sources,
        parts: Callable[[_Sources], Mapping[str, Part]],
        by_rules: Callable[[_Sources, int], str],
    ) -> Written:
        """Have a model write, or rules where there is none. Without sources, a model would invent some.

        A small model is given a part of the sources at a time. Rules tell those of which it writes nothing usable.
        """
        if (sources.messages or sources.summaries) and self.has_model():
            prompt = load_prompt(prompt_name)
            try:
                if not self._is_small(prompt.operation):
                    text, model = await self._ask(prompt, scope, characters, sources, parts)
                    return Written(text, model, prompt.version)
                told: list[tuple[str, str | None]] = []
                for part, room in sources.in_parts(characters):
                    try:
                        told.append(await self._ask(prompt, scope, room, part, parts))
                    except ModelGarbled as error:
                        _log.warning("a part of a summary of %s is written without a model: %s", scope.user, error)
                        told.append((await asyncio.to_thread(by_rules, part, room), None))
                text = shortened("\n".join(text for text, _ in told if text) or NOTHING_SAID, characters)
                # Not under the version of rules, by which summaries are found that a model is to write again.
                return Written(text, next((model for _, model in told if model), None), prompt.version)
            except ModelError:
                if not self._route("summarize").without:
                    raise
        return Written(await asyncio.to_thread(by_rules, sources, characters) or NOTHING_SAID, None, WITHOUT_MODEL)

    async def _ask(
        self,
        prompt: Prompt,
        scope: Scope,
        characters: int,
        sources: _Sources,
        parts: Callable[[_Sources], Mapping[str, Part]],
    ) -> tuple[str, str]:
        """Return a summary that is supported by its sources, and which model wrote it."""
        language = language_of(sources.texts)
        said = prompt.render(
            **parts(sources),
            sentences=_sentences(characters),
            language=language.title() if language else "their language",
        )
        reply = await self._asking().text(prompt.operation, said, scope=scope, characters=characters)
        text = _usable(reply.text, characters, reply.model)
        await require_support(text, sources.texts, sources.names, self._embedder, reply.model)
        if self._is_small(prompt.operation):
            names = name_speakers(sources.messages)
            text = await asyncio.to_thread(true_sentences, text, sources.messages, sources.summaries, names)
            if not text:
                raise ModelGarbled(f"{reply.model} wrote what its sources show to be false")
        return text, reply.model

    def _is_small(self, operation: Operation) -> bool:
        return self._chat is not None and self._chat.is_small(operation)

    async def _day_in_parts(self, scope: Scope, talk: DayTalk, characters: int) -> dict[str, Written]:
        """Have a small model tell a day, some messages of one thread at a time. Each person gets what names them."""
        zone, version = self.zone(scope.space), load_prompt("summarize").version
        names = name_speakers(talk.messages)
        told: dict[str, list[str]] = {}
        for thread in dict.fromkeys(message.thread for message in talk.messages):
            here = [message for message in talk.messages if message.thread == thread]
            people = {message.user for message in here if message.user in names}
            written = await self._write(
                "summarize",
                scope,
                characters * len(people),
                _Sources(here),
                lambda given: {"messages": fenced(given.messages, zone), "important": Fenced()},
                lambda *_: "",
            )
            for sentence in split_sentences(written.text) if written.model is not None else ():
                for user in people:
                    if names[user] in sentence:
                        told.setdefault(user, []).append(sentence)
        return {
            user: Written(shortened(join(found), 2 * characters), written.model, version)
            for user, found in told.items()
        }

    async def _day(self, scope: Scope, talk: DayTalk, characters: int) -> dict[str, Written]:
        from aforesaid.models.prompts.shapes import DaySummaries  # noqa: PLC0415 - brings pydantic

        prompt = load_prompt("day")
        labels = {person.user: str(number) for number, person in enumerate(talk.people, 1)}
        lines = [
            line._replace(label=labels.get(message.author))
            for line, message in zip(shown(talk.messages, self.zone(scope.space)), talk.messages, strict=True)
        ]
        people = enclose("people", "person", (({"id": labels[each.user]}, each.name) for each in talk.people))
        said = prompt.render(
            date=talk.day, people=people, messages=fence_labelled(lines), sentences=_sentences(characters)
        )
        answer = await self._asking().structure(prompt.operation, said, DaySummaries, scope=scope)
        users, sources = {label: user for user, label in labels.items()}, _Sources(talk.messages)
        names = [*sources.names, *(person.name for person in talk.people)]
        written: dict[str, Written] = {}
        for each in answer.value.summaries:
            text = _usable(each.summary, 2 * characters, answer.model)
            foreign = told_in_another_language(text, sources.texts) is not None
            if each.id in users and not foreign and await is_supported(text, sources.texts, names, self._embedder):
                written[users[each.id]] = Written(text, answer.model, prompt.version)
        if answer.value.summaries and not written:
            raise ModelGarbled(f"{answer.model} wrote summaries of {talk.day} that the messages do not support")
        return written

    async def _history(
        self, scope: Scope, previous: Summary | None, messages: Sequence[Message], characters: int, today: date
    ) -> Written:
        from aforesaid.models.prompts.shapes import History  # noqa: PLC0415 - brings pydantic

        prompt = load_prompt("history")
        said = prompt.render(
            today=today,
            previous="" if previous is None else _analysis(previous),
            material=fenced(messages, self.zone(scope.space)),
            sentences=_sentences(characters),
        )
        answer = await self._asking().structure(prompt.operation, said, History, scope=scope)
        found = answer.value.model_dump(mode="json")
        text = _usable(found.pop("summary"), characters, answer.model)
        sources = _Sources(messages, () if previous is None else (previous,))
        await require_support(text, sources.texts, sources.names, self._embedder, answer.model)
        return Written(text, answer.model, prompt.version, found)

    def _asking(self) -> Chat:
        if self._chat is None:
            raise NoModel("no model is configured for summaries")
        return self._chat


def _sentences(characters: int) -> int:
    """Return how many sentences have about so many characters. Models count sentences better."""
    return max(1, characters // _PER_SENTENCE)


def quiet_day(messages: Sequence[Message], earlier: Sequence[Message] = ()) -> str:
    """Return that nothing was told in messages, in their language. `earlier` ones tell it: laughter has none."""
    said = "\n".join(message.text for message in (*earlier, *messages) if message.role == "user")
    language = language_told(said) or guess_language(said)
    words = by_language().get(language) or by_language()[ENGLISH]
    text: str = words["quiet_day"]
    return text.format(count=len(messages))


def _is_quiet(text: str) -> bool:
    return _DIGITS.sub("{count}", text) in {words["quiet_day"] for words in by_language().values()}


def _fenced(important: Sequence[ImportantMemory]) -> Fenced:
    return enclosed("important", [quote(each.line) for each in important]) if important else Fenced()


async def _completed(
    written: Written, important: Sequence[ImportantMemory], characters: int, by_rules: Callable[[int], str]
) -> Written:
    """Return a summary that states important memories. A model's text is cut to make room, others are made anew."""
    if not important or written.text == NOTHING_SAID:
        return written

    def shorten(room: int) -> str:
        return by_rules(room) if written.model is None else shortened(written.text, room)

    text = await asyncio.to_thread(with_important, written.text, important, characters, shorten)
    return written._replace(text=text)


def _analysis(previous: Summary) -> str:
    """Return an earlier analysis in the form for a prompt."""
    lines = [previous.text]
    for name, value in (previous.details or {}).items():
        if name == "items":
            lines += [f"- {item['text']} (priority {item['priority']})" for item in value]
        elif value:
            lines.append(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
    return "\n".join(lines)


def _usable(text: str, most: int, model: str) -> str:
    """Return a model's text in storable form: not empty, and within the length limit."""
    cleaned = text.replace("\0", "").strip()
    try:
        cleaned.encode()
    except UnicodeEncodeError as error:
        raise ModelGarbled(f"{model} wrote a summary that is not valid Unicode") from error
    if not cleaned:
        raise ModelGarbled(f"{model} wrote an empty summary")
    return shortened(cleaned, most)


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a sentence if one is near."""
    if most < 1:
        raise InvalidInput("a text cannot be shortened to nothing")
    if len(text) <= most:
        return text
    cut = text[:most]
    end = max(cut.rfind(mark) for mark in _SENTENCE_ENDS)
    if end >= most // 2:
        return cut[: end + 1]
    return cut[: most - 1].rstrip() + "…"
