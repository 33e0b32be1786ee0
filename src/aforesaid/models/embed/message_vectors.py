"""Vectors of stored messages, for everything that compares messages by meaning.

The text of a message is encoded once, when upkeep embeds it. Later uses read the stored vector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, direct_thread
from aforesaid.models.embed.contract import Embedder, Vectors
from aforesaid.store import Store, questions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CHARACTERS: Final = 800
"""Maximum characters of a text that are embedded. The rest of a message is found by its words."""


class MessageVectors:
    """Returns vectors of messages: those in the store, and new ones of messages that upkeep has not embedded yet."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self.embedder = embedder

    async def of(self, messages: Sequence[Message]) -> Vectors:
        """Return one row for each message; no message may be without text. Raises ModelError."""
        import numpy as np  # noqa: PLC0415 - loaded with the first vector

        if not messages:
            return np.zeros((0, 0), dtype=np.float32)
        found: dict[int, Vectors] = {}
        owned: dict[tuple[str, str], list[int]] = defaultdict(list)
        for message in messages:
            owned[message.space, message.user].append(message.seq)
        for (space, user), seqs in owned.items():
            found |= await self.stored(Scope(space, user, direct_thread(user)), seqs)
        missing = [message for message in messages if message.seq not in found]
        if missing:
            made = await self.of_texts([message.text for message in missing])
            found |= {message.seq: row for message, row in zip(missing, made, strict=True)}
        return np.stack([found[message.seq] for message in messages])

    async def of_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text; no text may be empty. Raises ModelError."""
        import numpy as np  # noqa: PLC0415

        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        made = await self.embedder.embed([text[:MOST_CHARACTERS] for text in texts])
        # As precise as a stored vector, so that a result does not depend on what was embedded first.
        return made.astype(np.float16).astype(np.float32)

    async def stored(self, scope: Scope, seqs: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return the vectors that the store has of a user's messages, by sequence number."""
        import numpy as np  # noqa: PLC0415

        stored = await self._store.read(questions.MessageVectors(scope, self.embedder.name, list(dict.fromkeys(seqs))))
        # A message without text has an empty vector.
        return {
            seq: np.frombuffer(value, dtype=np.float16).astype(np.float32) for seq, value in stored.items() if value
        }
