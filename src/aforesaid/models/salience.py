"""Judges messages: whether one is worth remembering, what kind of memory it is, and how important.

A linear model over the vector that the built-in encoder gives a message, and over a few properties of its text. The
weights come with the package; tools/salience trains them, and docs/explanation/what-is-worth-remembering.md describes
them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from math import exp, inf, log1p
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.checks import Kind
from aforesaid.domain.memory import KINDS
from aforesaid.extras import np, re
from aforesaid.models.weights import arrays, read_weights
from aforesaid.text.languages import guess_language, vocabulary, word_finder
from aforesaid.text.sentences import is_question, length_in_words, split_sentences
from aforesaid.text.words import UNSPACED_LANGUAGES, words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

ENCODER: Final = "use-multilingual-3"
"""The name of the embedder whose vectors the weights fit."""
CHARACTERS: Final = 800
"""Maximum characters of a message that are judged: as many as are embedded."""
HEADS: Final = 3 + len(KINDS)
"""Outputs of the model: worth remembering (log-odds), importance, the log-odds of each kind, and whether it can be
understood alone."""
_WEIGHTS: Final = "7f854db95e02399fe9f536a8f3175cd8b1fbdc862f335178b37dcd274a59339d"
"""The SHA-256 of the weights."""
_PLAIN_HASH: Final = "6a99a7c614f75d5e40e58dedeefd4f951c02bbd5d16fdd0b5b9f36f8be117cc8"
"""The SHA-256 of the weights for plain statements."""
PLAIN_WORDS: Final = 8
"""Maximum words of a plain statement. The weights for those are trained on short texts only."""
_OWN_SCALE: Final = ("arabic", "chinese", "hindi", "japanese", "korean", "russian")
"""Languages in scripts without capitals or with other lengths of words. Each has an offset of its own."""
_SHORT_WORDS: Final = 4
_MOST_WORDS: Final = 60
_MOST_NUMBERS: Final = 5
_NUMBER: Final = re.compile(r"\d+")
_LARGEST_LOG_ODDS: Final = 700.0
"""Larger ones overflow when they become probabilities."""
_EMOJI: Final = re.compile("[\U0001f000-\U0001ffff]")
RECENT: Final = 50
"""Recent messages per person used to calibrate the threshold."""
_PRIOR: Final = 5
"""Messages as which the mean of all people counts beside those of one person."""
_ADAPTATION: Final = 0.5
"""Share of a person's difference from all people that is taken off. Chosen on conversations left out of training."""
REPLY_MARGIN: Final = 0.2
"""Least margin of a message that follows another user's. What people write to each other is more often banter. With
this margin it is worth remembering as often as other messages, in conversations left out of training."""
REPLY_CLARITY: Final = 0.03
"""Least clarity of a message that follows another user's, which cannot be quoted with it."""
_LEAST_IMPORTANCE: Final = 1
_MOST_IMPORTANCE: Final = 10


class Judgement(NamedTuple):
    """What the model says about a message."""

    margin: float
    """Log-odds that it is worth remembering, above the threshold. From 0 on it is."""
    importance: int
    """1 to 10."""
    kinds: tuple[float, ...]
    """The log-odds of each kind, in the order of `KINDS`."""
    clarity: float = 0.0
    """How well it can be understood without the messages before it, above the threshold. From 0 on it can."""
    plain: float = -inf
    """Log-odds that it is a short plain statement worth remembering ("I live in Leeds."), above the threshold."""

    @property
    def is_plain(self) -> bool:
        """Whether the message is a short plain statement, which is remembered and understood by itself."""
        return self.plain >= 0

    @property
    def worth_remembering(self) -> bool:
        return self.margin >= 0 or self.is_plain

    @property
    def stands_alone(self) -> bool:
        """Whether the message can be understood without those before it."""
        return self.clarity >= 0 or self.is_plain

    @property
    def is_clear_reply(self) -> bool:
        """Whether it is worth remembering and can be understood although it follows a message of another user."""
        return self.margin >= REPLY_MARGIN and self.clarity >= REPLY_CLARITY

    @classmethod
    def certain(cls, importance: int, kinds: tuple[float, ...]) -> Judgement:
        """Return the judgement of a message that something else found worth remembering."""
        return cls(REPLY_MARGIN, importance, kinds, REPLY_CLARITY)

    def as_plain(self) -> Judgement:
        """Return this judgement for a message that is worth remembering by itself, whatever the model says."""
        return self._replace(plain=max(self.plain, 0.0))

    def as_clear(self) -> Judgement:
        """Return this judgement for a message that is worth remembering and clear, also as a reply to somebody else."""
        return self._replace(margin=max(self.margin, REPLY_MARGIN), clarity=max(self.clarity, REPLY_CLARITY))

    def as_quiet(self) -> Judgement:
        """Return this judgement for a message that tells nothing, whatever the model says."""
        return self._replace(margin=min(self.margin, -1.0), plain=-inf)

    @property
    def kind(self) -> Kind:
        """The most likely kind."""
        return max(zip(self.kinds, KINDS, strict=True))[1]

    @property
    def confidence(self) -> float:
        """How sure the model is that the message is worth remembering: 0.5 is just enough, 1 is certain."""
        return 1 / (1 + exp(-max(self.margin, self.plain, -_LARGEST_LOG_ODDS)))


class SalienceModel(NamedTuple):
    vector: Floats
    """From the vector of a message to the outputs."""
    features: Floats
    """From the properties of its text to the outputs."""
    offset: Floats
    kind_importance: Floats
    """From the probability of each kind to the importance."""
    threshold: float
    """Log-odds from which a message is worth remembering."""
    usual: float
    """The mean margin of messages of all people."""
    alone: float
    """Output from which a message can be understood alone."""

    def judge(self, texts: Sequence[str], vectors: Floats) -> list[Judgement]:
        """Judge messages by their texts and the vectors of the encoder `ENCODER`, one row for each.

        The margins are those of an average person: see `relative_to`.
        """
        if not texts:
            return []
        read = np.array([text_features(text) for text in texts], dtype=np.float32)
        outputs = self.outputs(vectors, read)
        plain = load_plain().margins(texts, vectors, read)
        return [
            Judgement(
                float(row[0]) - self.threshold,
                min(max(round(float(row[1])), _LEAST_IMPORTANCE), _MOST_IMPORTANCE),
                tuple(map(float, row[2:-1])),
                float(row[-1]) - self.alone,
                margin,
            )
            for row, margin in zip(outputs, plain, strict=True)
        ]

    def outputs(self, vectors: Floats, features: Floats) -> Floats:
        outputs: Floats = vectors @ self.vector + features @ self.features + self.offset
        # Some kinds are more important than others.
        outputs[:, 1] += (1 / (1 + np.exp(-outputs[:, 2:-1]))) @ self.kind_importance
        return outputs

    def relative_to(self, margin: float, recent: Collection[float]) -> float:
        """Return a margin for a person whose last messages, this one included, have these margins."""
        return relative_margin(margin, recent, self.usual)


class PlainModel(NamedTuple):
    """The trained weights for short plain statements, which the weights for all messages hardly ever find."""

    vector: Floats
    features: Floats
    offset: float

    def margins(self, texts: Sequence[str], vectors: Floats, features: Floats) -> list[float]:
        """Return the log-odds above the threshold, one for each text: minus infinity for long texts and questions."""
        scores = (vectors @ self.vector + features @ self.features + self.offset).tolist()
        return [
            score if length_in_words(text) <= PLAIN_WORDS and not is_question(text) else -inf
            for text, score in zip(texts, scores, strict=True)
        ]


def relative_margin(margin: float, recent: Collection[float], usual: float) -> float:
    """Return a margin without half of the difference between a person's mean margin and the usual one.

    People write differently: of a diary, nearly every message seems worth remembering, of a group chat nearly none.
    """
    mean = (sum(recent) + _PRIOR * usual) / (len(recent) + _PRIOR)
    return margin - _ADAPTATION * (mean - usual)


@cache
def load_salience() -> SalienceModel:
    """Load the model. Raises ModelError if its weights are not the expected ones."""
    return read_salience(weights())


@cache
def load_plain() -> PlainModel:
    """Load the model of plain statements. Raises ModelError if its weights are not the expected ones."""
    values = arrays(read_weights("plain.npz", _PLAIN_HASH))
    return PlainModel(values["vector"], values["features"], float(values["offset"]))


def read_salience(data: bytes) -> SalienceModel:
    values = arrays(data)
    return SalienceModel(
        values["vector"],
        values["features"],
        values["offset"],
        values["kind_importance"],
        float(values["threshold"]),
        float(values["usual"]),
        float(values["alone"]),
    )


_CACHED: Final = 1_000
"""Texts whose properties are cached: a message is judged when it is learned from, and for each summary."""


def weights() -> bytes:
    """Return the file of weights. Raises ModelError if it is not the expected one."""
    return read_weights("salience.npz", _WEIGHTS)


@holds_texts
@lru_cache(_CACHED)
def text_features(text: str) -> list[float]:
    """Return the properties of a text that the model reads beside its vector."""
    text = text[:CHARACTERS]
    language = guess_language(text)
    lists = vocabulary(language)
    words, has = words_of(text), word_finder(text, language)
    length = length_in_words(text)
    sentences = split_sentences(text) or [text]
    questions = sum(map(is_question, sentences)) / len(sentences)
    numbers = len(_NUMBER.findall(text))
    return [
        log1p(length),
        length < _SHORT_WORDS,
        min(length, _MOST_WORDS) / 20,
        questions,
        questions == 1,
        numbers > 0,
        min(numbers, _MOST_NUMBERS) / 3,
        "!" in text or "！" in text,
        has(lists.first_person),
        has(lists.second_person),
        has(lists.times),
        sum(word[0].isupper() for word in text.split()[1:]) / 5,
        len(sentences) / 4,
        bool(words) and language not in UNSPACED_LANGUAGES and words[0] in lists.small_talk,
        _EMOJI.search(text) is not None,
        *(language == each for each in _OWN_SCALE),
    ]
