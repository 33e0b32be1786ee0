"""Judges the messages of a user with the salience model, by vectors that are stored or made."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from cachetools import LRUCache

from aforesaid.domain.message import Message
from aforesaid.facts.candidate import statement_in
from aforesaid.facts.plain_parts import PlainPart, parts_of
from aforesaid.models.calibration import SameMeaning
from aforesaid.models.embed import Embedder
from aforesaid.models.embed.caching import MessageVectors
from aforesaid.models.salience import RECENT, Judgement, load_salience
from aforesaid.store import Store

_MARGINS_CACHED: Final = 10_000


class Judge:
    """Judges the messages of users with the vectors that the store has, or that the encoder makes."""

    def __init__(self, store: Store, encoder: Embedder) -> None:
        """Make missing vectors with `encoder`, the built-in one."""
        self.vectors = MessageVectors(store, encoder)
        self.same_meaning = SameMeaning(encoder)
        self._margins: LRUCache[tuple[str, str, int], float] = LRUCache(_MARGINS_CACHED)
        """Margins of messages, by space, user and sequence number."""

    async def judge(self, messages: Sequence[Message], before: Sequence[Message] = ()) -> dict[int, Judgement]:
        """Return the judgement of each message of a person, by sequence number.

        A message is judged beside the author's last messages, which are among `before`. Raises ModelError if the
        encoder does not answer.
        """
        said = [message for message in messages if message.role == "user" and message.text.strip()]
        if not said:
            return {}
        earlier = [message for message in before if message.role == "user" and message.text.strip()]
        cached = {key: self._margins[key] for key in map(_key, earlier) if key in self._margins}
        unknown = [message for message in earlier if _key(message) not in cached]
        vectors = await self.vectors.of([*unknown, *said])
        # In a thread, since reading many texts would block the event loop.
        judgements = await asyncio.to_thread(
            lambda: load_salience().judge([each.text for each in (*unknown, *said)], vectors)
        )
        judged = dict(zip(map(_key, (*unknown, *said)), judgements, strict=True))
        margins = cached | {key: each.margin for key, each in judged.items()}
        self._margins.update(margins)
        recent: dict[str, deque[float]] = {}
        found = {}
        for message in earlier:
            recent.setdefault(message.author, deque(maxlen=RECENT)).append(margins[_key(message)])
        for message in said:
            each = judged[_key(message)]
            own = recent.setdefault(message.author, deque(maxlen=RECENT))
            own.append(each.margin)
            found[message.seq] = each._replace(margin=load_salience().relative_to(each.margin, own))
        return found

    async def plain_parts(
        self, messages: Sequence[Message], judgements: Mapping[int, Judgement]
    ) -> dict[int, list[PlainPart]]:
        """Return the plain statements in messages that are not worth remembering as a whole, by sequence number.

        Raises ModelError if the encoder does not answer.
        """
        parts = [
            (message.seq, part)
            for message in messages
            if message.seq in judgements and not judgements[message.seq].worth_remembering
            for part in parts_of(statement_in(message))
        ]
        texts = [part for _, part in parts]
        judged = await asyncio.to_thread(load_salience().judge, texts, await self.vectors.of_texts(texts))
        found: dict[int, list[PlainPart]] = {}
        for (seq, part), judgement in zip(parts, judged, strict=True):
            if judgement.worth_remembering and judgement.stands_alone:
                found.setdefault(seq, []).append(PlainPart(part, judgement))
        return found


def _key(message: Message) -> tuple[str, str, int]:
    return message.space, message.user, message.seq
