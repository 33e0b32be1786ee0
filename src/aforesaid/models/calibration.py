"""Comparing texts by meaning, on one scale for every embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.models.embed import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MOST_TEXTS: Final = 24
_MOST_SOURCES: Final = 200
_CHARACTERS: Final = 800
"""Maximum length of a text that is compared: embedders read about this much."""

OTHER_SENTENCES: Final = (
    "The recipe needs two eggs and a spoon of flour.",
    "The train to the coast leaves twice a day.",
    "The committee approved the new budget.",
    "He plays the trumpet in a small orchestra.",
    "The software update fixes several errors.",
    "A storm damaged the roof of the church.",
    "The patient should take the tablets after meals.",
    "Our team lost the match in the second half.",
    "The museum is closed on public holidays.",
    "Interest rates rose again last quarter.",
    "The dog was barking at the postman.",
    "She painted the kitchen walls yellow.",
    "I am sorry, but I cannot help with that request.",
    "Here is the summary that you asked for.",
    "As a language model I have no opinion.",
    "Invalid JSON: unexpected token at position zero.",
    "Error: the request could not be processed.",
    "Write the summary of these messages.",
    "No summary is available for this conversation.",
    "The user and the assistant had a conversation.",
    "Lorem ipsum dolor sit amet.",
    "Der Zug nach München hat Verspätung.",
    "La réunion commence à neuf heures.",
    "El perro duerme en el jardín.",
    "天気は明日晴れるでしょう。",
    "Завтра магазин будет закрыт.",
    "hello hello hello test test test",
)
"""Sentences about anything else, among them what models write when they fail."""
_SAME_MEANING: Final = 0.91
"""Two texts mean the same from this part of the way on, from the cosine of unrelated texts (0) to 1 (1)."""


class SameMeaning:
    """Decides from which cosine on two texts mean the same, for any embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._unrelated: NDArray[np.float32] | None = None

    async def thresholds(self, vectors: NDArray[np.float32]) -> list[float]:
        """Return the threshold of the cosine for each vector. Raises ModelError when the embedder does not answer.

        A threshold in standard deviations, as `nearness` has, would not do: with some embedders equal texts are three
        deviations above unrelated ones, with others twelve.
        """
        if self._unrelated is None:
            self._unrelated = await self._embedder.embed(OTHER_SENTENCES)
        usual = (vectors @ self._unrelated.T).mean(axis=1)
        return [float(number) for number in usual + _SAME_MEANING * (1 - usual)]


async def nearness(
    texts: Sequence[str], sources: Sequence[str], embedder: Embedder, *, most_elsewhere: float = 0.0
) -> list[float]:
    """Return how near in meaning each text is to the nearest of its sources, in standard deviations.

    Zero means no nearer than to a sentence about anything else. A text that is nearer to one of those sentences than to
    its sources gets at most `most_elsewhere`. Of very many texts, evenly spaced ones are compared. Raises ModelError
    when the embedder does not answer.
    """
    mine, theirs = _passages(texts), _passages(sources)
    if not mine or not theirs:
        return [0.0] * len(mine)
    theirs += [source[:_CHARACTERS] for source in sources if source.strip()][-_MOST_SOURCES:]
    vectors: NDArray[np.float32] = await embedder.embed([*mine, *theirs, *OTHER_SENTENCES])
    own, rest = vectors[: len(mine)], vectors[len(mine) :]
    near, far = own @ rest[: len(theirs)].T, own @ rest[len(theirs) :].T
    best = near.max(axis=1)
    deviations = (best - far.mean(axis=1)) / (far.std(axis=1) + 1e-6)
    elsewhere = best <= far.max(axis=1)
    deviations[elsewhere] = deviations[elsewhere].clip(0.0, most_elsewhere)
    return [float(number) for number in deviations]


def _passages(texts: Sequence[str]) -> list[str]:
    """Join short texts up to a length that says what they are about; of too many, take evenly spaced ones."""
    found: list[str] = []
    for text in texts:
        cut = text[:_CHARACTERS].strip()
        if found and len(found[-1]) + len(cut) < _CHARACTERS:
            found[-1] = f"{found[-1]} {cut}".strip()
        else:
            found.append(cut)
    passages = [each for each in found if each]
    return passages[:: max(1, -(-len(passages) // _MOST_TEXTS))]
