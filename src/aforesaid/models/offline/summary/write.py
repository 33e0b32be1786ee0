"""Summaries without a model: the sentences that say most, in order, with who said them and when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from math import ceil
from typing import Final, NamedTuple
from unicodedata import combining

from aforesaid.errors import InvalidInput
from aforesaid.models.offline.spoken import Spoken, Summarised
from aforesaid.models.offline.summary.choose import best, choose
from aforesaid.models.offline.summary.signals import Sentence
from aforesaid.models.offline.text.sentences import length_in_words, sentences

Measure = Callable[[str], int]

_LEAST_NEW: Final = 0.25
_MOST_NEW: Final = 0.5
_LABEL: Final = re.compile(r"(?:(?P<speaker>\S.{0,79}?) ?)?\((?P<day>\d{4}-\d{2}-\d{2})\): ")
_NAME: Final = re.compile(r"(?P<speaker>\S.{0,79}?): ")
_UNSPACED_END: Final = "。！？｡）」』】"
_JOINER: Final = "\u200d"


class _Line(NamedTuple):
    speaker: str
    day: date | None
    text: str


def count_words(text: str) -> int:
    """Count words, for a limit in words. Where words are not spaced, two characters count as one."""
    return ceil(length_in_words(text))


def summarise(turns: Sequence[Spoken], limit: int, measure: Measure = len) -> str:
    """Return what matters most of what was said.

    `limit` is in characters, or in what `measure` counts, such as words or tokens; it is never exceeded. The sentences
    are those that were said, in their order, without the interjections at their beginning. Each line names its speaker,
    and the day where it begins: `Ann (2026-05-08): I moved to Berlin.` The same turns give the same text. It is empty
    only when nothing was said.
    """
    return _summarise(_of_turns(turns), _checked(limit), measure)


def summarise_summaries(parts: Sequence[Summarised], limit: int, measure: Measure = len) -> str:
    """Return what matters most of several summaries, oldest first. Their sentences keep their speakers and days."""
    return _summarise(_of_summaries(parts), _checked(limit), measure)


def roll(previous: str, turns: Sequence[Spoken], limit: int, measure: Measure = len) -> str:
    """Return a summary of what a previous one says and of what was said since.

    While both fit, the previous summary is kept as it is. Otherwise what is new gets its share of the room, between a
    quarter and a half, and the previous summary is summarised in the rest.
    """
    fresh = summarise(turns, _checked(limit), measure)
    if not previous.strip() or not fresh:
        return fresh or _summarise(_of_summaries([Summarised(previous)]), limit, measure)
    joined = f"{previous.strip()}\n{fresh}"
    if measure(joined) <= limit:
        return joined
    share = measure(fresh) / (measure(fresh) + measure(previous))
    room = max(limit - int(limit * min(max(share, _LEAST_NEW), _MOST_NEW)), 1)
    older = _summarise(_of_summaries([Summarised(previous)]), room, measure)
    rest = limit - measure(f"{older}\n")
    if not older or rest < 1:
        return fresh
    joined = f"{older}\n{summarise(turns, rest, measure)}"
    return joined if measure(joined) <= limit else fresh


def _checked(limit: int) -> int:
    if limit < 1:
        raise InvalidInput(f"a summary needs room for something; the limit must be at least 1, not {limit}")
    return limit


def _summarise(said: list[Sentence], limit: int, measure: Measure) -> str:
    if not said:
        return ""
    chosen = choose(said, lambda attempt: measure(render(attempt)) <= limit)
    return render(chosen) or _cut_to_fit(best(said), limit, measure)


def _of_turns(turns: Sequence[Spoken]) -> list[Sentence]:
    return [
        Sentence((number, place), " ".join(turn.speaker.split()), _day(turn.at), text, turn.role == "assistant")
        for number, turn in enumerate(turns)
        for place, text in enumerate(sentences(turn.text))
    ]


def _of_summaries(parts: Sequence[Summarised]) -> list[Sentence]:
    lines = [line for part in parts for line in _lines(part)]
    return [
        Sentence((number, place), line.speaker, line.day, text)
        for number, line in enumerate(lines)
        for place, text in enumerate(sentences(line.text))
    ]


def _lines(part: Summarised) -> Iterator[_Line]:
    """Take a summary apart. Lines that name nobody belong to nobody, on the day on which the time of it begins."""
    day = _day(part.first)
    known: set[str] = set()
    for written in part.text.splitlines():
        speaker = ""
        match = _LABEL.match(written)
        if match is not None:
            day, speaker = _written_day(match["day"]) or day, match["speaker"] or ""
            known.add(speaker)
        elif (match := _NAME.match(written)) is not None and match["speaker"] in known:
            speaker = match["speaker"]
        else:
            match = None
        yield _Line(speaker, day, written[match.end() :] if match else written)


def _day(at: datetime | None) -> date | None:
    return None if at is None else at.date()


def _written_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def render(chosen: Sequence[Sentence]) -> str:
    """Write sentences down: a line for each speaker, the day where it changes."""
    lines: list[tuple[str, list[str]]] = []
    speaker: str | None = None
    day: date | None = None
    for sentence in chosen:
        if not lines or sentence.speaker != speaker or sentence.day != day:
            lines.append((_label(sentence, dated=sentence.day != day), []))
            speaker, day = sentence.speaker, sentence.day
        lines[-1][1].append(sentence.text)
    return "\n".join(label + _join(texts) for label, texts in lines)


def _label(sentence: Sentence, *, dated: bool) -> str:
    parts = [sentence.speaker] if sentence.speaker else []
    if dated and sentence.day is not None:
        parts.append(f"({sentence.day.isoformat()})")
    return f"{' '.join(parts)}: " if parts else ""


def _join(texts: Sequence[str]) -> str:
    """Put sentences next to one another; one that has no stop gets one, so that two do not read as one."""
    joined = texts[0]
    for text in texts[1:]:
        if joined[-1].isalnum():
            joined += "."
        joined += text if joined[-1] in _UNSPACED_END else f" {text}"
    return joined


def _cut_to_fit(sentence: Sentence, limit: int, measure: Measure) -> str:
    """Return the beginning of a sentence that is too long, with its label unless that would take half of the room."""
    label = _label(sentence, dated=True)
    return _cut((label if 2 * measure(label) <= limit else "") + sentence.text, limit, measure)


def _cut(text: str, limit: int, measure: Measure) -> str:
    """Return the longest beginning of a text that is short enough, without cutting a character from its marks."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle]) <= limit else (low, middle - 1)
    end = low
    while end > 1 and end < len(text) and (combining(text[end]) or _JOINER in text[end - 1 : end + 1]):
        end -= 1
    return text[:end].rstrip() or text[:end]
