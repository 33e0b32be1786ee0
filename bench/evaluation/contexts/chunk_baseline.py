"""A baseline for contexts: split the chat into chunks and send those most similar to the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.models.embed import Embedder
from aforesaid.models.tokens import TokenCounter
from evaluation.conversation import Conversation, Turn

if TYPE_CHECKING:
    from aforesaid.models.embed import Vectors

_TURNS: Final = 8


class Chunks:
    """A conversation, split into chunks of turns with their vectors."""

    def __init__(self, chunks: Sequence[Sequence[Turn]], sizes: Sequence[int], vectors: Vectors) -> None:
        self._chunks = chunks
        self._sizes = sizes
        self._vectors = vectors

    @classmethod
    async def of(cls, conversation: Conversation, embedder: Embedder, counter: TokenCounter) -> Chunks:
        """Split a conversation into chunks and embed them."""
        turns = conversation.turns
        chunks = [turns[start : start + _TURNS] for start in range(0, len(turns), _TURNS)]
        texts = ["\n".join(f"{turn.speaker or turn.role}: {turn.text}" for turn in chunk) for chunk in chunks]
        return cls(chunks, [counter.count(text) + 4 for text in texts], await embedder.embed(texts))

    async def best(self, question: str, embedder: Embedder, budget: int) -> set[str]:
        """Return the ids of the turns in the most similar chunks that fit the budget."""
        vector = (await embedder.embed([question]))[0]
        found: set[str] = set()
        for place in (-(self._vectors @ vector)).argsort(kind="stable").tolist():
            if self._sizes[place] <= budget:
                budget -= self._sizes[place]
                found.update(turn.id for turn in self._chunks[place])
        return found
