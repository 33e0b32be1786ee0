"""Methods that summarise a chat in a number of words: the one used without a model, and simple baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from random import Random
from typing import Final, NamedTuple

from aforesaid.models.offline import Spoken, count_words, summarise
from aforesaid.text.sentences import split_sentences

Method = Callable[[Sequence[Spoken], int], str]

_FIRST: Final = 3
_SEED: Final = 20


class _Piece(NamedTuple):
    place: int
    speaker: str
    text: str


def _extractive(turns: Sequence[Spoken], words: int) -> str:
    return summarise(turns, words, count_words)


def _first_three(turns: Sequence[Spoken], words: int) -> str:
    return _first(turns[:_FIRST], words)


def _first(turns: Sequence[Spoken], words: int) -> str:
    """Return the first words of the chat up to the limit, even if that cuts a sentence."""
    lines: list[str] = []
    for turn in turns:
        left = words - count_words("\n".join(lines))
        pieces = f"{turn.speaker}: {turn.text}".split()
        while pieces and count_words(" ".join(pieces)) > left:
            pieces = pieces[: max(left, 0)] if len(pieces) > left else pieces[:-1]
        if not pieces:
            break
        lines.append(" ".join(pieces))
    return "\n".join(lines)


def _longest(turns: Sequence[Spoken], words: int) -> str:
    return _fill(sorted(_pieces(turns), key=lambda piece: (-count_words(piece.text), piece.place)), words)


def _random(turns: Sequence[Spoken], words: int) -> str:
    pieces = _pieces(turns)
    Random(_SEED).shuffle(pieces)
    return _fill(pieces, words)


METHODS: Final[dict[str, Method]] = {
    "first three turns": _first_three,
    "first turns": _first,
    "longest sentences": _longest,
    "random sentences": _random,
    "extractive": _extractive,
}


def _pieces(turns: Sequence[Spoken]) -> list[_Piece]:
    said = ((turn.speaker, sentence) for turn in turns for sentence in split_sentences(turn.text))
    return [_Piece(place, speaker, sentence) for place, (speaker, sentence) in enumerate(said)]


def _fill(ordered: Iterable[_Piece], words: int) -> str:
    """Take pieces in this order while they fit, and return them in conversation order."""
    taken: list[_Piece] = []
    left = words
    for piece in ordered:
        if count_words(piece.text) >= left:
            continue
        attempt = sorted([*taken, piece])
        if (length := count_words(_written(attempt))) <= words:
            taken, left = attempt, words - length
    return _written(taken)


def _written(pieces: Iterable[_Piece]) -> str:
    return "\n".join(
        f"{speaker}: " + " ".join(piece.text for piece in same)
        for speaker, same in groupby(pieces, key=lambda piece: piece.speaker)
    )
