"""Reads messages: what one wants (it tells, asks, greets …), and which words in it hold a value about its author.

A small network reads the features that the built-in encoder computes for the tokens of a text anyway, the vector of the
sentence, and its spelling (hashed runs of one to five characters). A second one judges what the first one read: in
chats most words that look like a value are none. The weights come with the package; tools/reader trains them on
messages in 15 languages, and on judgements of whole chats.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias, get_args

from aforesaid.domain.memory import MATTERS
from aforesaid.extras import np, re
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

SLOTS: Final = (*MATTERS[:-1], "when", MATTERS[-1])
"""What marked words can hold: the matters of a person, and `when`, the time of an event or a reminder."""
Holds: TypeAlias = Literal["own", "over", "other"]
"""Of whom a value is true: of the author, not any more, or of somebody else."""
_HOLDS: Final[tuple[Holds, ...]] = get_args(Holds)

_WEIGHTS: Final = "65e02777594b824c211b4ba3730a98de6b5ebd5947d39225675ab043d939fbe2"
"""The SHA-256 of the weights,"""
_JUDGE: Final = "eeb8336a8e3530116284b3f6d50ecb024455c05bee4e01ea445b00fb6a2527cd"
"""and of those that judge what was read."""
_BITS: Final = 14
_LONGEST_RUN: Final = 5
_CHARACTERS: Final = 400
"""Maximum characters of which the spelling is read."""
_WINDOW: Final = 48
"""Tokens that are read together. A longer text is read in windows, which end with a sentence where they can."""
_HEADS: Final = 4
_FAR: Final = 8
"""Distance from which tokens are all equally far away."""
_ASKS: Final = 0.45
"""Probability from which a message is a question."""
_ASKED: Final = 0.95
"""The same of one that asks in plain words."""
_CLEAR: Final = 0.45
"""Probability from which a message is something else than a question or a statement."""
_MARKED: Final = 0.35
"""Probability from which a word belongs to a value."""
_BESIDE: Final = 0.15
"""The same of a character beside one that does, where words are not separated."""
_VECTOR_SCALE: Final = 8.0
_SPACE: Final = "\u2581"
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Letters that are not separated into words."""
_KANA: Final = re.compile("[\u3041-\u3096]+")
"""Letters in which Japanese writes its grammar."""
_ENDS: Final = frozenset(".!?…。！？।")
_AHEAD: Final = 8
"""Characters that are searched for a token which does not stand where it is expected."""


class Intents(NamedTuple):
    """The probability of each intent, in the order of `INTENTS`."""

    probabilities: tuple[float, ...]

    @classmethod
    def surely(cls, intent: Intent) -> Self:
        """Return the intents of a text of which one is known."""
        return cls(tuple(float(each == intent) for each in INTENTS))

    def asking(self) -> Self:
        """Return the intents of the same text, known to ask."""
        share = (1 - _ASKED) / max(1 - self.of("ask"), 1e-6)
        return type(self)(
            tuple(
                _ASKED if each == "ask" else value * share
                for each, value in zip(INTENTS, self.probabilities, strict=True)
            )
        )

    @property
    def best(self) -> Intent:
        """What the message wants. What is neither surely a question nor clear is a statement, as most messages are."""
        if self.of("ask") >= _ASKS:
            return "ask"
        likeliest = INTENTS[self.probabilities.index(max(self.probabilities))]
        return likeliest if likeliest != "ask" and self.of(likeliest) >= _CLEAR else "tell"

    def of(self, *intents: Intent) -> float:
        """Return the probability of one of these."""
        return sum(self.probabilities[INTENTS.index(intent)] for intent in intents)


class Mark(NamedTuple):
    """Words that hold a value."""

    start: int
    """Where they begin in the text, in its composed form (NFC)."""
    end: int
    words: str
    slot: str
    """What they say, of `SLOTS`."""
    holds: Holds
    certainty: float
    """The mean probability of its tokens to hold this."""
    marked: float
    """The same to hold any value, of whatever matter."""
    right: float = 1.0
    """The probability that this is true of whom it is said, as a second network judges from its surroundings."""


class Reading(NamedTuple):
    """What was read in a text."""

    intents: Intents
    tells: float = 0.0
    """The probability that it holds a value about its author, of today or of the past."""
    marks: tuple[Mark, ...] = ()
    """The values, in the order of the text."""
    worth: float = 1.0
    """The probability that it is worth knowing weeks later, and can be understood by itself."""

    def without_start(self, characters: int) -> Reading:
        """Return what was read after this many characters: in an answer that was read after its question."""
        after = (mark for mark in self.marks if mark.start >= characters)
        moved = (mark._replace(start=mark.start - characters, end=mark.end - characters) for mark in after)
        return self._replace(marks=tuple(moved))


class Reader:
    def __init__(self, values: dict[str, Floats], judge: dict[str, Floats]) -> None:
        self._values = values
        self._judge = judge
        self._layers = sum(name.startswith("qkv_") and "offset" not in name for name in values)

    def read(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]], features: Floats, vectors: Floats, pieces: Pieces
    ) -> list[Reading]:
        """Read texts by their tokens, the features of these, one text after the other, and the sentences' vectors."""
        its = self._values
        lengths = [len(each) for each in ids]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        tokens: Floats = np.maximum(features @ its["proj"] + its["proj_offset"], 0)
        windows = [
            (start + first, start + last)
            for start, each in zip(starts.tolist(), ids, strict=True)
            for first, last in pieces.windows(each)
        ]
        for layer in range(self._layers):
            asked = self._normed(tokens, "n1", layer) @ its[f"qkv_{layer}"] + its[f"qkv_offset_{layer}"]
            mixed = np.empty_like(tokens)
            for first, last in windows:
                mixed[first:last] = self._attended(asked[first:last], layer)
            tokens += mixed @ its[f"o_{layer}"] + its[f"o_offset_{layer}"]
            inner = self._normed(tokens, "n2", layer) @ its[f"f1_{layer}"] + its[f"f1_offset_{layer}"]
            tokens += np.maximum(inner, 0, out=inner) @ its[f"f2_{layer}"] + its[f"f2_offset_{layer}"]
        weight = np.exp(np.clip(tokens @ its["att"], -30, 30))
        pooled = np.add.reduceat(tokens * weight[:, None], starts) / np.add.reduceat(weight, starts)[:, None]
        read = [
            pooled,
            np.maximum.reduceat(tokens, starts),
            self._spellings(texts),
            np.maximum(_VECTOR_SCALE * vectors @ its["vector"] + its["vector_offset"], 0),
        ]
        hidden = np.maximum(np.concatenate(read, axis=1) @ its["hidden"] + its["hidden_offset"], 0)
        intents = _shares(hidden @ its["out"] + its["out_offset"])
        tells = 1 / (1 + np.exp(-np.clip(hidden @ its["any"] + its["any_offset"], -30, 30)))
        tags = _shares(tokens @ its["tag"] + its["tag_offset"])
        least = np.minimum.reduceat(tags[:, 0], starts)
        worth = self._judged(
            "worth", seen_in_texts(pooled.astype(np.float32, copy=False), hidden, intents, tells, np.array(lengths))
        )
        made = []
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths, strict=True)):
            # Most texts hold no value at all.
            marked = least[number] < 1 - _MARKED
            found = list(_marks(texts[number], ids[number], tags[start : start + length], pieces)) if marked else []
            marks = tuple(mark for mark, _ in found)
            reading = Reading(Intents(tuple(intents[number].tolist())), float(tells[number, 0]), marks, worth[number])
            if found:
                words = np.stack([tokens[start : start + length][its].mean(axis=0) for _, its in found])
                rights = self._judged("right", seen_in_marks(reading, words, pooled[number], hidden[number]))
                rated = (mark._replace(right=right) for mark, right in zip(marks, rights, strict=True))
                reading = reading._replace(marks=tuple(rated))
            made.append(reading)
        return made

    def _judged(self, what: str, seen: Floats) -> list[float]:
        """Return what the second network says of each row."""
        inner = np.maximum(seen @ self._judge[f"{what}_inner"] + self._judge[f"{what}_inner_offset"], 0)
        said = inner @ self._judge[what] + self._judge[f"{what}_offset"]
        return [float(each) for each in 1 / (1 + np.exp(-np.clip(said[:, 0], -30, 30)))]

    def _normed(self, values: Floats, which: str, layer: int) -> Floats:
        values = values - values.mean(axis=-1, keepdims=True)
        values /= np.sqrt((values**2).mean(axis=-1, keepdims=True) + 1e-5)
        made: Floats = values * self._values[f"{which}_{layer}"] + self._values[f"{which}_offset_{layer}"]
        return made

    def _attended(self, asked: Floats, layer: int) -> Floats:
        length, width = len(asked), asked.shape[1] // 3
        size = width // _HEADS
        query, key, value = asked.reshape(length, 3, _HEADS, size).transpose(1, 2, 0, 3)
        apart = np.clip(np.arange(length)[None] - np.arange(length)[:, None], -_FAR, _FAR) + _FAR
        scores = query @ key.transpose(0, 2, 1) / size**0.5
        scores += self._values[f"near_{layer}"][apart].transpose(2, 0, 1)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        attended: Floats = (shares @ value).transpose(1, 0, 2).reshape(length, width)
        return attended

    def _spellings(self, texts: Sequence[str]) -> Floats:
        return np.stack([self._values["spelling"][_runs(text)].mean(axis=0) for text in texts])


class Pieces:
    """The spelling of the encoder's tokens."""

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401 - of a package without types
        self._pieces = tokenizer._pieces  # noqa: SLF001
        self._ends: frozenset[int] | None = None

    def windows(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the parts of a text that are read together."""
        if len(ids) <= _WINDOW:
            return [(0, len(ids))]
        if self._ends is None:
            self._ends = frozenset(number for number in range(len(self._pieces)) if self._of(number) in _ENDS)
        found, first = [], 0
        while first < len(ids):
            # As long as the rest needs, so that the last window is not a scrap.
            wanted = first + ceil((len(ids) - first) / ceil((len(ids) - first) / _WINDOW))
            most = min(first + _WINDOW, len(ids))
            last = max((place + 1 for place in range(wanted - 1, most) if ids[place] in self._ends), default=wanted)
            found.append((first, last))
            first = last
        return found

    def places(self, text: str, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return where each token stands in a text; (-1, -1) for one that does not."""
        written: list[str] = []
        origin: list[int] = []
        for place, character in enumerate(text):
            for each in unicodedata.normalize("NFKC", character):
                if not each.isspace():
                    written.append(each)
                    origin.append(place)
        whole, at = "".join(written), 0
        found = []
        for number in ids:
            piece = self._of(number)
            if not piece or (piece[0] == "<" and piece[-1] == ">" and len(piece) > 2 and piece != "<unk>"):  # noqa: PLR2004
                found.append((-1, -1))
                continue
            if piece == "<unk>":
                length = 1
            else:
                length = len(piece)
                there = whole.find(piece, at, at + length + _AHEAD)
                at = there if there >= 0 else at
            end = min(at + length, len(origin))
            found.append((origin[at], origin[end - 1] + 1) if at < end else (-1, -1))
            at = end
        return found

    def _of(self, number: int) -> str:
        piece = self._pieces[number]
        spelled: str = piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece
        return spelled.replace(_SPACE, "")


class _Word(NamedTuple):
    """Tokens that are one word, or one token where words are not separated, and what they hold."""

    start: int
    end: int
    tags: Floats
    """The mean of the probabilities of its tokens, the longer ones counting more."""
    tokens: list[int]


def _marks(text: str, ids: Sequence[int], tags: Floats, pieces: Pieces) -> Iterator[tuple[Mark, list[int]]]:
    """Yield the values in a text, each with its tokens."""
    text = unicodedata.normalize("NFC", text)
    words = _words(text, pieces.places(text, ids), tags)
    unspaced = [_UNSPACED.search(text[word.start : word.end]) is not None for word in words]
    marked = [float(word.tags[0]) < 1 - _MARKED for word in words]
    for order in (range(1, len(words)), range(len(words) - 2, -1, -1)):
        before = -1 if order.step > 0 else 1
        for number in order:
            joins = unspaced[number] and marked[number + before] and _touch(words, number, number + before)
            joins = joins and _KANA.fullmatch(text[words[number].start : words[number].end]) is None
            marked[number] = marked[number] or (joins and float(words[number].tags[0]) < 1 - _BESIDE)
    runs: list[list[int]] = []
    for number, word in enumerate(words):
        if not marked[number]:
            continue
        last = runs[-1][-1] if runs else None
        kana = _KANA.fullmatch(text[word.start : word.end]) is not None
        is_one = last is not None and unspaced[number] and unspaced[last] and not kana
        if last == number - 1 and (is_one or _slot(word) == _slot(words[last])):
            runs[-1].append(number)
        else:
            runs.append([number])
    for run in runs:
        tags = np.mean([words[number].tags for number in run], axis=0)
        mean: Floats = tags[1:].reshape(len(SLOTS), len(_HOLDS))
        slot = int(mean.sum(axis=1).argmax())
        best = int(mean[slot].argmax())
        start, end = words[run[0]].start, words[run[-1]].end
        certainty, marked_as = float(mean[slot, best]), 1 - float(tags[0])
        mark = Mark(start, end, text[start:end], SLOTS[slot], _HOLDS[best], certainty, marked_as)
        yield mark, [token for number in run for token in words[number].tokens]


def _touch(words: Sequence[_Word], one: int, other: int) -> bool:
    first, second = sorted((one, other))
    return words[first].end == words[second].start


def _slot(word: _Word) -> int:
    return int(word.tags[1:].reshape(len(SLOTS), len(_HOLDS)).sum(axis=1).argmax())


def _words(text: str, places: Sequence[tuple[int, int]], tags: Floats) -> list[_Word]:
    groups: list[list[int]] = []
    last = 0
    for token, (start, end) in enumerate(places):
        if start < 0:
            continue
        joins = start == last and start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        if groups and joins and not _UNSPACED.search(text[start - 1 : start + 1]):
            groups[-1].append(token)
        else:
            groups.append([token])
        last = end
    made = []
    for group in groups:
        lengths = np.array([places[token][1] - places[token][0] for token in group], dtype=np.float32)
        mean = lengths @ tags[group] / lengths.sum()
        made.append(_Word(places[group[0]][0], places[group[-1]][1], mean, group))
    return made


def seen_in_marks(reading: Reading, words: Floats, text: Floats, whole: Floats) -> Floats:
    """Return what says of each mark of a text whether it is right: its words, the text, and what else is read."""
    count = len(reading.marks)
    rows = np.zeros((count, len(SLOTS) * len(_HOLDS) + 5), dtype=np.float32)
    for row, mark in zip(rows, reading.marks, strict=True):
        row[SLOTS.index(mark.slot) * len(_HOLDS) + _HOLDS.index(mark.holds)] = 1
        row[-5:] = mark.certainty, mark.marked, reading.tells, min(count, 6) / 6, min(mark.start, 100) / 100
    rest = (text, whole, np.asarray(reading.intents.probabilities, dtype=np.float32))
    made: Floats = np.concatenate([words, *(np.broadcast_to(each, (count, len(each))) for each in rest), rows], axis=1)
    return made


def seen_in_texts(pooled: Floats, hidden: Floats, intents: Floats, tells: Floats, lengths: Numbers) -> Floats:
    """Return what says of each text whether it is worth quoting."""
    long = (np.minimum(lengths, _WINDOW) / _WINDOW).astype(np.float32)[:, None]
    made: Floats = np.concatenate([pooled, hidden, intents, tells, long], axis=1)
    return made


@cache
def load_reader() -> Reader:
    """Load the networks. Raises ModelError if their weights are not the expected ones."""
    values = arrays(read_weights("reader.npz", _WEIGHTS))
    for name in [name for name in values if f"{name}.scale" in values]:
        values[name] = values[name] * values.pop(f"{name}.scale")
    return Reader(values, arrays(read_weights("judge.npz", _JUDGE)))


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


def _shares(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    made: Floats = shares
    return made
