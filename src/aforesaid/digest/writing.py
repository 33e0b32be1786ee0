"""Writes summaries with a model if one is configured and answers, otherwise by extracting sentences.

No store is touched here, and no transaction is open while a model writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import date, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aforesaid.digest.quality import is_supported, require_support
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
from aforesaid.models import offline
from aforesaid.models.embed import Embedder
from aforesaid.models.prompts import Fenced, Part, enclose, enclosed, fence_labelled, load_prompt, name_speakers, quote
from aforesaid.settings import Operation, Route
from aforesaid.text.languages import ENGLISH, guess_language
from aforesaid.text.words import by_language

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat

WITHOUT_MODEL: Final = "extractive/1"
"""The prompt version of summaries that were made without a model."""
_PER_SENTENCE: Final = 100
"""Characters of a sentence."""
_SENTENCE_ENDS: Final = ".!?…。！？"


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
        self, scope: Scope, messages: Sequence[Message], characters: int, known: Weights = NOTHING_KNOWN
    ) -> Written:
        """Summarise messages. The summary states the important memories that come from them."""
        zone, messages = self.zone(scope.space), newest(messages)
        said, important = spoken(messages, zone, known.worth), known.important
        written = await self._write(
            "summarize",
            scope,
            characters,
            _Sources(messages),
            lambda: {"messages": fenced(messages, zone), "important": _fenced(important)},
            lambda: offline.summarise(said, characters),
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
            lambda: {"summaries": fenced_summaries(summaries, zone), "important": _fenced(important)},
            lambda: offline.summarise_summaries(parts, characters),
        )
        return await _completed(written, important, characters, lambda room: offline.summarise_summaries(parts, room))

    async def onwards(
        self,
        scope: Scope,
        previous: Summary | None,
        messages: Sequence[Message],
        characters: int,
        known: Weights = NOTHING_KNOWN,
    ) -> Written:
        """Extend a summary with newer messages. Older ones are not read again."""
        if previous is None or not previous.valid:
            return await self.of_messages(scope, messages, characters, known._replace(important=()))
        zone, messages = self.zone(scope.space), newest(messages)
        return await self._write(
            "roll",
            scope,
            characters,
            _Sources(messages, (previous,) if messages else ()),
            lambda: {"previous": previous.text, "messages": fenced(messages, zone)},
            lambda: offline.roll(previous.text, spoken(messages, zone, known.worth), characters),
        )

    async def of_week(self, scope: Scope, name: str, days: Sequence[Summary], characters: int) -> Written:
        """Summarise several days of a person."""
        dated = [(each.day or each.began_at.date(), each) for each in days]
        zone = self.zone(scope.space)
        texts = enclose("days", "day", (({"date": day.isoformat()}, each.text) for day, each in dated))
        return await self._write(
            "week",
            scope,
            characters,
            _Sources((), days, (name,)),
            lambda: {"first": dated[0][0], "last": dated[-1][0], "name": name, "days": texts},
            lambda: offline.summarise_summaries(summarised(days, zone), characters),
        )

    async def of_day(self, scope: Scope, talk: DayTalk, characters: int) -> tuple[dict[str, Written], str]:
        """Have a model summarise a day for its participants in one call. Return its texts and the prompt's version.

        It may leave people out; without a model, or where none answers, all of them.
        """
        operation: Operation = "day"
        if self.has_model(operation):
            try:
                return await self._day(scope, talk, characters), load_prompt("day").version
            except ModelError:
                if not self._route(operation).without:
                    raise
        return {}, WITHOUT_MODEL

    async def of_persons_day(
        self, scope: Scope, messages: Sequence[Message], characters: int, worth: Mapping[int, Worth]
    ) -> str:
        """Summarise a person's day by rules: what was said in the threads in which they spoke. It may have been quiet.

        What others said counts less.
        """
        said = spoken(messages, self.zone(scope.space), worth)
        name = name_speakers(newest(messages)).get(scope.user)
        text = await asyncio.to_thread(offline.summarise, said, characters, person=name, quiet=True)
        return text or _quiet(messages)

    async def of_history(
        self,
        scope: Scope,
        previous: Summary | None,
        messages: Sequence[Message],
        characters: int,
        today: date,
        known: Weights = NOTHING_KNOWN,
    ) -> Written:
        """Extend the analysis of a history."""
        messages = newest(messages)
        previous = None if previous is None or not previous.valid else previous
        if messages and self.has_model():
            try:
                return await self._history(scope, previous, messages, characters, today)
            except ModelError:
                if not self._route("summarize").without:
                    raise
        before = previous.text if previous is not None else ""
        said = spoken(messages, self.zone(scope.space), known.worth)
        text = await asyncio.to_thread(offline.roll, before, said, characters)
        return Written(text or NOTHING_SAID, None, WITHOUT_MODEL, None if previous is None else previous.details)

    async def _write(
        self,
        prompt_name: str,
        scope: Scope,
        characters: int,
        sources: _Sources,
        parts: Callable[[], Mapping[str, Part]],
        by_rules: Callable[[], str],
    ) -> Written:
        """Have a model write, or rules where there is none. Without sources, a model would invent some."""
        if (sources.messages or sources.summaries) and self.has_model():
            try:
                prompt = load_prompt(prompt_name)
                said = prompt.render(**parts(), sentences=_sentences(characters))
                reply = await self._asking().text(prompt.operation, said, scope=scope, characters=characters)
                text = _usable(reply.text, characters, reply.model)
                await require_support(text, sources.texts, sources.names, self._embedder, reply.model)
                return Written(text, reply.model, prompt.version)
            except ModelError:
                if not self._route("summarize").without:
                    raise
        return Written(await asyncio.to_thread(by_rules) or NOTHING_SAID, None, WITHOUT_MODEL)

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
            if each.id in users and await is_supported(text, sources.texts, names, self._embedder):
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


def _quiet(messages: Sequence[Message]) -> str:
    """Return that nothing was told on a day, in the language of its messages."""
    language = guess_language("\n".join(message.text for message in messages if message.role == "user"))
    words = by_language().get(language) or by_language()[ENGLISH]
    text: str = words["quiet_day"]
    return text.format(count=len(messages))


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
    return cleaned if len(cleaned) <= most else shortened(cleaned, most)


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a sentence if one is near."""
    if most < 1:
        raise InvalidInput("a text cannot be shortened to nothing")
    cut = text[:most]
    end = max(cut.rfind(mark) for mark in _SENTENCE_ENDS)
    if end >= most // 2:
        return cut[: end + 1]
    return cut[: most - 1].rstrip() + "…"
