"""From scored candidates to hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.domain.fast_constructor import fast_constructor
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.recall.candidates import Candidates
from aforesaid.recall.score import ScoreScale
from aforesaid.store.ranking import have
from aforesaid.text.words import word_key

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers
    from aforesaid.store.columns import Columns

_hit: Final = fast_constructor(Hit)


def order(candidates: Candidates, parts: Mapping[str, Numbers]) -> list[int]:
    """Return the candidates' places, best first, newer first among equals."""
    import numpy as np  # noqa: PLC0415

    places: list[int] = np.lexsort((-candidates.rows, -np.sum(list(parts.values()), axis=0))).tolist()
    return places


def without_repetitions(ranked: Iterable[int], texts: Sequence[str], limit: int) -> list[list[int]]:
    """Group messages with the same words; return the best `limit` groups, best first."""
    kept: dict[str, list[int]] = {}
    for place in ranked:
        said = word_key(texts[place])
        if said not in kept and len(kept) == limit:
            break
        kept.setdefault(said, []).append(place)
    return list(kept.values())


def without_repeated_sessions(ranked: Iterable[int], candidates: Candidates) -> list[list[int]]:
    """Group messages by session, best first."""
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


def message_hits(
    candidates: Candidates,
    groups: Sequence[Sequence[int]],
    parts: Mapping[str, Numbers],
    messages: Mapping[int, Message],
    around: Mapping[int, Sequence[Message]],
    scale: ScoreScale,
    *,
    explained: bool = True,
) -> list[Hit]:
    """Make hits of groups of equal messages, best first in each; messages removed in the meantime are left out."""
    import numpy as np  # noqa: PLC0415

    best = [group[0] for group in groups]
    rows, names = candidates.rows[best], tuple(parts)
    # Looked up for all hits at once: reading numbers one by one is slow.
    added = np.stack([values[best] for values in parts.values()], axis=1) if best else np.zeros((0, 0))
    scores, each_added = scale.scores(added.sum(axis=1)), added.tolist() if explained else ()
    words = [(posting.word, have(posting.rows, rows)) for posting in candidates.postings] if explained else []
    similarities = candidates.background.similarities(candidates.dense[rows])
    seqs = candidates.columns.seq[candidates.rows].tolist()
    hits = []
    for place, group in enumerate(groups):
        said = [messages[seqs[each]] for each in group if seqs[each] in messages]
        if not said or said[0].seq != seqs[group[0]]:
            continue
        first = said[0]
        hits.append(
            _hit(
                "message",
                first.id,
                first.text,
                scores[place],
                first.at,
                (first.id,) if len(said) == 1 else tuple([message.id for message in said]),
                tuple([word for word, found in words if found[place]]) if explained else (),
                first,
                tuple(zip(names, each_added[place], strict=True)) if explained else (),
                similarities[place],
                tuple(around.get(group[0], ())),
            )
        )
    return hits
