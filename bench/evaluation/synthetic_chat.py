"""Generated chat with a realistic word distribution, for benchmarks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate, product
from typing import Final

_SYLLABLES: Final = [first + second for first, second in product("bdklmnrst", "aeio")][:34]


class SyntheticChat:
    """Generates turns and questions from a fixed vocabulary. The same seed gives the same texts."""

    def __init__(self, seed: int, vocabulary: int = 20_000) -> None:
        """Generate the vocabulary."""
        self._random = random.Random(seed)
        self.words = [self._word(number) for number in range(vocabulary)]
        # Zipf's law: the n-th most frequent word is about 1/n as frequent as the first.
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(vocabulary)))

    def text(self) -> str:
        """Return one turn of 4 to 30 words."""
        length = self._random.randint(4, 30)
        return " ".join(self._random.choices(self.words, cum_weights=self._weights, k=length))

    def texts(self, count: int) -> Iterator[str]:
        """Return `count` turns."""
        return (self.text() for _ in range(count))

    def question(self) -> str:
        """Return a query of two to five words, none of them among the ten most frequent."""
        return " ".join(self._random.choices(self.words[10:], k=self._random.randint(2, 5)))

    @staticmethod
    def _word(number: int) -> str:
        word = ""
        while True:
            number, rest = divmod(number, len(_SYLLABLES))
            word += _SYLLABLES[rest]
            if number == 0:
                return word
