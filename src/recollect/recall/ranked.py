"""From scored candidates to hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from recollect.domain.hit import Hit
from recollect.domain.message import Message
from recollect.recall.candidates import Candidates
from recollect.store.ranking import has
from recollect.store.terms import words_of

if TYPE_CHECKING:
    from recollect.recall.candidates import Numbers
    from recollect.store.columns import Columns


def order(candidates: Candidates, parts: Mapping[str, Numbers]) -> list[int]:
    """Return the candidates' places, best first, newer first among equals."""
    import numpy as np  # noqa: PLC0415

    places: list[int] = np.lexsort((-candidates.rows, -np.sum(list(parts.values()), axis=0))).tolist()
    return places


def without_repetitions(ranked: Iterable[int], texts: Sequence[str], limit: int) -> list[list[int]]:
    """Put messages that say the same in the same words together, the best `limit` of them first."""
    kept: dict[tuple[str, ...], list[int]] = {}
    for place in ranked:
        said = tuple(words_of(texts[place])) or (texts[place],)
        if said not in kept and len(kept) == limit:
            break
        kept.setdefault(said, []).append(place)
    return list(kept.values())


def without_repeated_sessions(ranked: Iterable[int], candidates: Candidates) -> list[list[int]]:
    """Put messages of one session together, best first."""
    sessions = candidates.columns.session[candidates.rows].tolist()
    kept: dict[int, list[int]] = {}
    for place in ranked:
        kept.setdefault(sessions[place], []).append(place)
    return list(kept.values())


def rows_around(columns: Columns, row: int, count: int) -> list[int]:
    """Return the rows around one in its session: a third before, two thirds after, more where a side is short."""
    session, last = columns.session[row], len(columns) - 1
    before: list[int] = []
    after: list[int] = []
    while len(before) < count and row - len(before) > 0 and columns.session[row - len(before) - 1] == session:
        before.append(row - len(before) - 1)
    while len(after) < count and row + len(after) < last and columns.session[row + len(after) + 1] == session:
        after.append(row + len(after) + 1)
    fewer = min(count // 3, len(before))
    later = min(count - fewer, len(after))
    fewer = min(count - later, len(before))
    return [*reversed(before[:fewer]), *after[:later]]


def message_hit(
    candidates: Candidates, group: Sequence[int], parts: Mapping[str, Numbers], messages: Mapping[int, Message]
) -> Hit | None:
    """Make a hit of messages that say the same, best first. None when it is gone."""
    seqs = candidates.columns.seq[candidates.rows[list(group)]].tolist()
    best, message = group[0], messages.get(seqs[0])
    if message is None:
        return None
    added = tuple((name, float(values[best])) for name, values in parts.items())
    row = candidates.rows[best]
    return Hit(
        kind="message",
        id=message.id,
        text=message.text,
        score=sum(value for _, value in added),
        at=message.at,
        sources=tuple(messages[seq].id for seq in seqs if seq in messages),
        terms=tuple(posting.word for posting in candidates.postings if has(posting.rows, row)),
        message=message,
        parts=added,
        similarity=candidates.usual.cosine(float(candidates.dense[row])),
    )
