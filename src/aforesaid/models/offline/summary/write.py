"""Summaries without a model: the most valuable sentences in order, with speakers and dates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from math import ceil
from typing import Final, NamedTuple
from unicodedata import combining

from aforesaid.errors import InvalidInput
from aforesaid.extras import re
from aforesaid.models.offline.request_rules import NOTHING, Spoken, Summarised, asks, may_ask, recognise_request
from aforesaid.models.offline.summary.choose import Sentence, best, choose, join
from aforesaid.text.sentences import length_in_words, split_sentences

Measure = Callable[[str], int]

_LEAST_NEW: Final = 0.25
_MOST_NEW: Final = 0.5
_LABEL: Final = re.compile(r"(?:(?P<speaker>\S.{0,79}?) ?)?\((?P<day>\d{4}-\d{2}-\d{2})\): ")
"""`Ann (2026-05-08): `, as `render` writes it where the day changes."""
_NAME: Final = re.compile(r"(?P<speaker>\S.{0,79}?): ")
"""`Ann: `, as `render` writes it for the other lines of a day."""
BETWEEN: Final = " – "
"""What stands between a turn and the one that answers it, in the line of a matter."""
_COMMAND: Final = re.compile(r"[/!][a-z_]{2,}\b")
"""A command to a bot."""
_OF_VALUE: Final = 1.5
"""Factor for a sentence with words that became known."""
_LONGEST_MATTER: Final = 400
"""Maximum characters of a line of a summary that is one matter. Longer ones are of many sentences."""
_JOINER: Final = "\u200d"


class _Line(NamedTuple):
    speaker: str
    day: date | None
    text: str


def count_words(text: str) -> int:
    """Return the number of words, for a limit in words. Without spaces, two characters count as a word."""
    return ceil(length_in_words(text))


def summarise(
    turns: Sequence[Spoken], limit: int, measure: Measure = len, *, person: str | None = None, quiet: bool = False
) -> str:
    """Return a summary of turns; for a `person`, what others said counts less.

    `limit` is in characters, or in the unit of `measure`, such as words or tokens; it is never exceeded. What turns
    tell is quoted in order, without requests to the assistant, unanswered questions and small talk. Each line is one
    matter, with its speaker and the turn that it answers, and the first line of a day has its date:
    `Ann (2026-05-08): Where do you live now? – Bob: In Berlin.` The same turns give the same text. It is empty if
    the turns contain no words, or with `quiet`, if they tell nothing.
    """
    return _summarise(_of_turns(turns), _checked(limit), measure, render, person, quiet=quiet)


def summarise_summaries(parts: Sequence[Summarised], limit: int, measure: Measure = len) -> str:
    """Return a summary of several summaries, oldest first. Every line has its speaker and date."""
    return _summarise(_of_summaries(parts), _checked(limit), measure, _render_folded)


def roll(
    previous: str, turns: Sequence[Spoken], limit: int, measure: Measure = len, *, newer: int | None = None
) -> str:
    """Return a summary of the previous summary and the turns after it, which get at most `newer` of the limit.

    If both fit, the previous summary is kept unchanged. Otherwise the new turns get between a quarter and a half of the
    limit, and the previous summary is shortened to the rest.
    """
    fresh = summarise(turns, min(_checked(limit), newer or limit), measure)
    if not previous.strip() or not fresh:
        return fresh or summarise_summaries([Summarised(previous)], limit, measure)
    joined = f"{previous.strip()}\n{fresh}"
    if measure(joined) <= limit:
        return joined
    share = measure(fresh) / (measure(fresh) + measure(previous))
    room = max(limit - int(limit * min(max(share, _LEAST_NEW), _MOST_NEW)), 1)
    older = summarise_summaries([Summarised(previous)], room, measure)
    rest = limit - measure(f"{older}\n")
    if not older or rest < 1:
        return fresh
    joined = f"{older}\n{summarise(turns, min(rest, newer or rest), measure)}"
    return joined if measure(joined) <= limit else fresh


def _checked(limit: int) -> int:
    if limit < 1:
        raise InvalidInput(f"a summary needs room for something; the limit must be at least 1, not {limit}")
    return limit


def _summarise(
    said: list[Sentence],
    limit: int,
    measure: Measure,
    write: Callable[[Sequence[Sentence]], str],
    person: str | None = None,
    *,
    quiet: bool = False,
) -> str:
    if not said:
        return ""
    folded = write is _render_folded
    chosen = choose(said, lambda attempt: measure(write(attempt)) <= limit, person, folded=folded)
    if not chosen and quiet:
        # What hardly changes what is known may still tell what happened.
        said = [replace(sentence, worth=1.0) for sentence in said]
        if not choose(said, lambda _: True):
            return ""
        chosen = choose(said, lambda attempt: measure(write(attempt)) <= limit, person)
    return write(chosen) or _cut_to_fit(best(said), limit, measure)


def _of_turns(turns: Sequence[Spoken]) -> list[Sentence]:
    return [
        Sentence(
            (number, place),
            _name(turn.speaker),
            _day(turn.at),
            text,
            turn.role == "assistant",
            turn.worth * (_OF_VALUE if any(value in text for value in turn.values) else 1.0),
            turn.alone,
            turn.thread,
        )
        for number, turn in enumerate(_without_unanswered(_without_requests(turns)) or turns)
        for place, text in enumerate(split_sentences(turn.text))
    ]


def _without_requests(turns: Sequence[Spoken]) -> list[Spoken]:
    """Skip requests to the assistant and its replies to them. Of "remember that …", keep the statement."""
    kept: list[Spoken] = []
    requested = False
    for turn in turns:
        if turn.role == "assistant":
            if not requested:
                kept.append(turn)
            requested = False
            continue
        request = recognise_request(turn.text) if turn.role == "user" and may_ask(turn.text) else NOTHING
        requested = request.action != "none" or _COMMAND.match(turn.text) is not None
        if not requested:
            kept.append(turn)
        elif request.action == "remember" and request.content:
            kept.append(turn._replace(text=request.content))
    return kept


def _without_unanswered(turns: Sequence[Spoken]) -> list[Spoken]:
    """In a chat of one person with an assistant, skip questions without an answer: they say nothing about the person.

    A question is answered if the assistant speaks next, perhaps after more questions. Among people, a question often
    says what the chat is about, and its answer may come later.
    """
    if len({turn.speaker for turn in turns if turn.role == "user"}) > 1:
        return list(turns)
    kept: list[Spoken] = []
    next_speaker: str | None = None  # who speaks next, apart from questions
    for turn in reversed(turns):
        said = split_sentences(turn.text)
        questions = 0
        while turn.role == "user" and questions < len(said) and asks(said[-1 - questions]):
            questions += 1
        statements = said[: len(said) - questions]
        if questions == 0 or next_speaker not in (None, turn.speaker):
            kept.append(turn)
        elif statements:
            kept.append(turn._replace(text=" ".join(statements)))
        if statements:
            next_speaker = turn.speaker
    return kept[::-1]


def _of_summaries(parts: Sequence[Summarised]) -> list[Sentence]:
    """Return the matters of summaries: their lines, and of what a model wrote, the sentences."""
    lines = [fitting for part in parts for line in _lines(part) for fitting in _fitting(line)]
    return [
        Sentence((number, place), line.speaker, line.day, text, thread=str(number))
        for number, line in enumerate(lines)
        for place, text in enumerate(
            [line.text] if line.speaker and len(line.text) <= _LONGEST_MATTER else split_sentences(line.text)
        )
    ]


def _fitting(line: _Line) -> list[_Line]:
    """Return a line, or the parts of one that is too long to be quoted whole, each under the name of who said it."""
    parts: list[_Line] = []
    while len(line.text) > _LONGEST_MATTER:
        first, _, rest = line.text.partition(BETWEEN)
        label = _NAME.match(rest)
        if not line.speaker or label is None:
            break
        parts.append(line._replace(text=first))
        line = line._replace(speaker=label["speaker"], text=rest[label.end() :])
    return [*parts, line]


def _name(speaker: str) -> str:
    """Return a name that `_lines` reads back as it was written: on one line, without the colon that ends a label."""
    return " ".join(speaker.replace(":", " ").split())


def _lines(part: Summarised) -> Iterator[_Line]:
    """Split a summary into lines with their speakers and days.

    If the first line has a name and a day, `render` wrote the text, and every line begins with a name. In other texts,
    such as a model's, only lines with a day, or with a name that has a day elsewhere, are labelled; other lines have no
    speaker and the first day of the summary.
    """
    day = _day(part.first)
    lines = part.text.splitlines()
    labels = [_LABEL.match(line) for line in lines]
    first = labels[0] if labels else None
    rendered = first is not None and first["speaker"] is not None
    known = {label["speaker"] for label in labels if label is not None}
    for written, label in zip(lines, labels, strict=True):
        match, speaker = label, ""
        if label is not None:
            day, speaker = _written_day(label["day"]) or day, label["speaker"] or ""
        else:
            match = _NAME.match(written)
            if match is not None and not (rendered or match["speaker"] in known):
                match = None
            speaker = match["speaker"] if match is not None else ""
        yield _Line(speaker, day, written[match.end() :] if match else written)


def _day(at: datetime | None) -> date | None:
    return None if at is None else at.date()


def _written_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def render(chosen: Sequence[Sentence], *, every_date: bool = False) -> str:
    """Return sentences as lines, one per matter, with the date where it changes or on every line.

    What answers the sentence before is on its line, after the name of who said it.
    """
    lines: list[tuple[str, list[str]]] = []
    before: Sentence | None = None
    for sentence in chosen:
        if before is not None and _goes_on(before, sentence):
            lines[-1][1].append(sentence.text)
        elif before is not None and sentence.answers == before.place:
            lines[-1][1][-1] += f"{BETWEEN}{_label(sentence, dated=False)}{sentence.text}"
        else:
            dated = every_date or before is None or sentence.day != before.day
            lines.append((_label(sentence, dated=dated), [sentence.text]))
        before = sentence
    return "\n".join(label + join(texts) for label, texts in lines)


def _goes_on(one: Sentence, other: Sentence) -> bool:
    """Return whether the same person went on, so that both are on one line. Lines of summaries stay by themselves."""
    alike = (one.speaker, one.day, one.thread) == (other.speaker, other.day, other.thread)
    return alike and (other.place[0] - one.place[0] <= 1 or other.answers == one.place)


def _render_folded(chosen: Sequence[Sentence]) -> str:
    return render(chosen, every_date=True)


def _label(sentence: Sentence, *, dated: bool) -> str:
    parts = [sentence.speaker] if sentence.speaker else []
    if dated and sentence.day is not None:
        parts.append(f"({sentence.day.isoformat()})")
    return f"{' '.join(parts)}: " if parts else ""


def _cut_to_fit(sentence: Sentence, limit: int, measure: Measure) -> str:
    """Return the beginning of a sentence that is too long, with its label if that takes less than half of the limit."""
    label = _label(sentence, dated=True)
    # The longest prefix of a text within the limit, without splitting a displayed character.
    text = (label if 2 * measure(label) <= limit else "") + sentence.text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle]) <= limit else (low, middle - 1)
    end = low
    while end > 1 and end < len(text) and (combining(text[end]) or _JOINER in text[end - 1 : end + 1]):
        end -= 1
    return text[:end].rstrip() or text[:end]
