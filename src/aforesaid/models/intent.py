"""Says what a message wants: it tells, asks, greets, wants to be reminded and so on, each with a probability.

A small network reads the features that the built-in encoder computes for the tokens of a text anyway, the vector of the
sentence, and its spelling (hashed runs of one to five characters). The weights come with the package; tools/intents
trains them on messages in 15 languages.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self, TypeAlias, get_args

from aforesaid.extras import np
from aforesaid.models.weights import arrays, read_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Numbers = NDArray[np.intp]

Intent: TypeAlias = Literal[
    "tell", "ask", "request", "remind", "reminders", "forget", "correct", "greet", "thank", "feel", "chat"
]
"""What a message wants.

tell: it says something about somebody or something. ask: it wants an answer. request: a standing wish about answers.
remind: to be reminded. reminders: to see, move or cancel reminders. forget: to have something forgotten. correct: what
was said or known is wrong. greet, thank, feel (a mood and nothing else), chat (jokes, laughter, exclamations, small
tasks).
"""
INTENTS: Final[tuple[Intent, ...]] = get_args(Intent)

_WEIGHTS: Final = "666213d690930521f69197840b32713199b1ee3c7787d418d5b607bb769a2eeb"
"""The SHA-256 of the weights."""
_BITS: Final = 14
_LONGEST_RUN: Final = 5
_CHARACTERS: Final = 400
"""Maximum characters of which the spelling is read."""
_TOKENS: Final = 48
"""Maximum tokens that are read: the first and the last of a long text."""
_HEADS: Final = 4
_FAR: Final = 8
"""Distance from which tokens are all equally far away."""
_CLEAR: Final = 0.5
"""Probability from which a message is something else than a question or a statement."""
_VECTOR_SCALE: Final = 8.0


class Intents(NamedTuple):
    """The probability of each intent, in the order of `INTENTS`."""

    probabilities: tuple[float, ...]

    @classmethod
    def surely(cls, intent: Intent) -> Self:
        """Return the intents of a text of which one is known."""
        return cls(tuple(float(each == intent) for each in INTENTS))

    @property
    def best(self) -> Intent:
        """The most likely intent. What is not clear is a question or a statement, as most of what people say is."""
        likeliest = INTENTS[self.probabilities.index(max(self.probabilities))]
        if self.of(likeliest) >= _CLEAR:
            return likeliest
        return "ask" if self.of("ask") > self.of("tell") else "tell"

    def of(self, *intents: Intent) -> float:
        """Return the probability of one of these."""
        return sum(self.probabilities[INTENTS.index(intent)] for intent in intents)


class IntentModel:
    def __init__(self, values: dict[str, Floats]) -> None:
        self._spelling = values["spelling"]
        self._values = values

    def read(self, texts: Sequence[str], features: Floats, lengths: Numbers, vectors: Floats) -> list[Intents]:
        """Judge texts by the features of their tokens, one text after the other, and the vectors of the sentences."""
        its = self._values
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        if int(lengths.max()) > _TOKENS:
            half = _TOKENS // 2
            kept = [
                np.r_[start : start + length] if length <= _TOKENS
                else np.r_[start : start + half, start + length - half : start + length]
                for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
            ]  # fmt: skip
            features, lengths = features[np.concatenate(kept)], np.minimum(lengths, _TOKENS)
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        tokens: Floats = np.maximum(features @ its["proj"] + its["proj_offset"], 0)
        asked = _normed(tokens, its["n1"], its["n1_offset"]) @ its["qkv"] + its["qkv_offset"]
        mixed = np.empty_like(tokens)
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            mixed[start : start + length] = self._attended(asked[start : start + length])
        tokens += mixed @ its["o"] + its["o_offset"]
        inner = np.maximum(_normed(tokens, its["n2"], its["n2_offset"]) @ its["f1"] + its["f1_offset"], 0)
        tokens += inner @ its["f2"] + its["f2_offset"]
        weight = np.exp(np.clip(tokens @ its["att"], -30, 30))
        pooled = np.add.reduceat(tokens * weight[:, None], starts) / np.add.reduceat(weight, starts)[:, None]
        read = [
            pooled,
            np.maximum.reduceat(tokens, starts),
            self._spellings(texts),
            np.maximum(_VECTOR_SCALE * vectors @ its["vector"] + its["vector_offset"], 0),
        ]
        hidden = np.maximum(np.concatenate(read, axis=1) @ its["hidden"] + its["hidden_offset"], 0)
        return _intents(hidden @ its["out"] + its["out_offset"])

    def _attended(self, asked: Floats) -> Floats:
        length, width = len(asked), asked.shape[1] // 3
        size = width // _HEADS
        query, key, value = asked.reshape(length, 3, _HEADS, size).transpose(1, 2, 0, 3)
        apart = np.clip(np.arange(length)[None] - np.arange(length)[:, None], -_FAR, _FAR) + _FAR
        scores = query @ key.transpose(0, 2, 1) / size**0.5 + self._values["near"][apart].transpose(2, 0, 1)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        attended: Floats = (shares @ value).transpose(1, 0, 2).reshape(length, width)
        return attended

    def _spellings(self, texts: Sequence[str]) -> Floats:
        return np.stack([self._spelling[_runs(text)].mean(axis=0) for text in texts])


@cache
def load_intents() -> IntentModel:
    """Load the model. Raises ModelError if its weights are not the expected ones."""
    values = arrays(read_weights("intent.npz", _WEIGHTS))
    for name in [name for name in values if f"{name}.scale" in values]:
        values[name] = values[name] * values.pop(f"{name}.scale")
    return IntentModel(values)


def _runs(text: str) -> Numbers:
    """Return the hashes of the runs of one to five characters."""
    folded = f" {' '.join(unicodedata.normalize('NFKC', text).casefold().split())} "[:_CHARACTERS]
    codes = np.frombuffer(folded.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.uint64)
    hashed = np.zeros(len(codes), dtype=np.uint64)
    found = []
    for length in range(1, min(_LONGEST_RUN, len(codes)) + 1):
        hashed = hashed[: len(codes) - length + 1] * np.uint64(0x100000001B3) + codes[length - 1 :] + np.uint64(length)
        found.append((hashed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _BITS))
    return np.concatenate(found).astype(np.intp)


def _normed(values: Floats, gain: Floats, offset: Floats) -> Floats:
    values = values - values.mean(axis=-1, keepdims=True)
    made: Floats = values / np.sqrt((values**2).mean(axis=-1, keepdims=True) + 1e-5) * gain + offset
    return made


def _intents(logits: Floats) -> list[Intents]:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return [Intents(tuple(row)) for row in shares.tolist()]
