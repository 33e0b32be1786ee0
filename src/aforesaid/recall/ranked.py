"""From scored candidates to hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from aforesaid.domain.caches import fast_constructor
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.recall.candidates import Candidates
from aforesaid.recall.features.about import QUESTION_MARKS
from aforesaid.recall.score import ScoreScale
from aforesaid.store.ranking import have
from aforesaid.text.words import word_key

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers
    from aforesaid.store.columns import Columns, Rows

_ABOVE: Final = 1e-6
"""How much the sum of a message with the text of the query is above the others, at least."""
_hit: Final = fast_constructor(Hit)


def totals(parts: Mapping[str, Numbers]) -> Numbers:
    """Return the weighted sum of each candidate."""
    import numpy as np  # noqa: PLC0415

    return reduce(np.add, parts.values())


def order(candidates: Candidates, sums: Numbers) -> list[int]:
    """Return the candidates' places, best first, newer first among equals."""
    import numpy as np  # noqa: PLC0415

    places: list[int] = np.lexsort((-candidates.rows, -sums)).tolist()
    return places


def same_words_first(candidates: Candidates, sums: Numbers) -> dict[str, Numbers]:
    """Return what lifts messages with the text of the query above all others, as a feature.

    Nothing where the query is a question: what answers it comes first, not the same question asked before.
    """
    import numpy as np  # noqa: PLC0415

    same = candidates.same_words
    if not same.any() or same.all() or candidates.question.text.rstrip().endswith(QUESTION_MARKS):
        return {}
    lift = np.where(same, np.maximum(sums[~same].max() + _ABOVE - sums, 0.0), 0.0)
    return {"same_words": lift} if lift.any() else {}


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


def seqs_around(columns: Columns, row: int, count: int) -> list[int]:
    """Return the sequence numbers of the messages around one in its session, in order.

    A third of them comes before it and two thirds after it, more where the other side is short.
    """
    first = max(row - count, 0)
    near: list[int] = columns.session[first : row + count + 1].tolist()
    place = row - first
    session, before, after = near[place], 0, 0
    while before < place and near[place - before - 1] == session:
        before += 1
    while after < len(near) - place - 1 and near[place + after + 1] == session:
        after += 1
    after = min(count - min(count // 3, before), after)
    before = min(count - after, before)
    seqs: list[int] = columns.seq[row - before : row + after + 1].tolist()
    del seqs[before]
    return seqs


def message_hits(
    candidates: Candidates,
    groups: Sequence[Sequence[int]],
    sums: Numbers,
    messages: Mapping[int, Message],
    around: Mapping[int, Sequence[Message]],
    scale: ScoreScale,
    explained: Mapping[str, Numbers] | None = None,
) -> list[Hit]:
    """Make hits of groups of equal messages, best first in each; messages removed in the meantime are left out.

    `sums` are the weighted sums. `explained` has what each feature added, for hits that are to say it.
    """
    best = [group[0] for group in groups]
    rows = candidates.rows[best]
    # Looked up for all hits at once: reading numbers one by one is slow.
    scores = scale.scores(sums[best])
    similarities = candidates.background.similarities(candidates.dense[rows])
    words, added = _explanations(candidates, rows, best, explained)
    seqs = candidates.columns.seq[candidates.rows].tolist()
    hits = []
    for place, group in enumerate(groups):
        first = messages.get(seqs[group[0]])
        if first is None:
            continue
        sources: tuple[str, ...] = (first.id,)
        if len(group) > 1:
            sources = tuple([messages[seqs[each]].id for each in group if seqs[each] in messages])
        hits.append(
            _hit(
                "message",
                first.id,
                first.text,
                scores[place],
                first.at,
                sources,
                words[place] if words else (),
                first,
                added[place] if added else (),
                similarities[place],
                tuple(around.get(group[0], ())),
            )
        )
    return hits


def _explanations(
    candidates: Candidates, rows: Rows, best: list[int], parts: Mapping[str, Numbers] | None
) -> tuple[list[tuple[str, ...]], list[tuple[tuple[str, float], ...]]]:
    """Return the words of the question that each hit has, and what each feature added to it."""
    if parts is None:
        return [], []
    found = [(posting.word, have(posting.rows, rows)) for posting in candidates.postings]
    words = [tuple([word for word, has in found if has[place]]) for place in range(len(best))]
    names, columns = tuple(parts), [values[best].tolist() for values in parts.values()]
    return words, [tuple(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
