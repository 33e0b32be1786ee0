"""Scores of candidates: fused from their features, calibrated, and ordered."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from aforesaid.domain.caches import fast_constructor
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import NoteMatch
from aforesaid.domain.message import Message
from aforesaid.extras import np
from aforesaid.recall.candidates import Candidates
from aforesaid.recall.features import FEATURES, NEED_TEXT, QUESTION_MARKS
from aforesaid.recall.queue import MIDDLE, STEEPNESS, Background, calibration, logistic, logistics, similarity
from aforesaid.store.ranking import have
from aforesaid.text.sentences import length_in_words
from aforesaid.text.words import word_key, words_of

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers
    from aforesaid.store.columns import Columns


MIN_SCORE: Final = 0.25
"""Minimum score of what lacks a word of the query, where the words themselves are searched for."""
MIN_SCORE_OF_ANSWERS: Final = 0.04
"""Minimum score of a hit for a question whose words are not all in one message. Of the cut-offs in steps of 0.01 it is
the highest that costs at most a quarter of a point of recall@10 on the conversations that nothing is tested with."""
_FEW_WORDS: Final = 2
"""Maximum words of a query without a question mark that is taken for words to search for, not for a question."""
_SMALL: Final = 40
"""Memories with fewer messages are judged like one of this size: that few messages make none of them an answer."""
_STRONG: Final = 6.0
"""A best candidate above this sum counts as this one, so that a very strong match does not hide good ones."""
QUESTION_FEATURES: Final = ("nearest", "coverage", "found", "messages", "best", "unknown", "constant")
"""The names of what `question_features` returns, in its order."""


class ScoreScale(NamedTuple):
    """How the weighted sums of one question become scores."""

    slope: float
    offset: float

    def score(self, total: float) -> float:
        return logistic(self.slope * total + self.offset)

    def scores(self, totals: Numbers) -> list[float]:
        return logistics(self.slope * totals + self.offset)


SIMILARITY_SCALE: Final = ScoreScale(STEEPNESS, -STEEPNESS * MIDDLE)
"""The scale of a search by meaning alone, whose sums are distances to the background: the score is the similarity."""


def least_score(query: str, *, known: bool, held: bool) -> float:
    """Return the minimum score of what lacks a word of the query. What has all of them is a hit with any score.

    `known`: whether any word of it was ever said; `held`: whether something that was said has all of them. Beside that,
    the rest is mostly noise. Without a question mark, so is all that resembles one or two words, or words that nobody
    ever said.
    """
    asked = query.rstrip().endswith(QUESTION_MARKS)
    searched = not asked and (not known or length_in_words(query) <= _FEW_WORDS)
    return MIN_SCORE if held or searched else MIN_SCORE_OF_ANSWERS


class NoteEvidence(NamedTuple):
    """What the summaries and memories found for a question say about it as a whole."""

    total: float = -math.inf
    """The highest weighted sum."""
    coverage: float = 0.0
    """The highest share of the question's words."""
    nearest: float = 0.0
    """The highest nearness in meaning."""


def score_scale(candidates: Candidates, best: float, notes: NoteEvidence) -> ScoreScale:
    """Return the scale of a question. `best` is the highest weighted sum among the messages."""
    fitted = calibration()["score"]
    features = zip(QUESTION_FEATURES, question_features(candidates, best, notes), strict=True)
    return ScoreScale(fitted["slope"], sum(fitted[name] * value for name, value in features))


def question_features(candidates: Candidates, best: float, notes: NoteEvidence) -> tuple[float, ...]:
    """Return what all candidates of a question have in common, messages and notes together.

    That is the nearness of the nearest, the coverage of the one with most words, the share of the question's words that
    are in the memory, the logarithm of its size, the highest sum, whether no word is in the memory, and 1.
    Messages that repeat the question do not count: asked again, it must find its answer as before.
    """
    repeating = candidates.repeating
    repeated, others = candidates.rows[repeating], candidates.rows[~repeating]
    words = max(len(candidates.postings), 1)
    said_elsewhere = [
        not bool(np.isin(posting.rows, repeated).all()) if len(repeated) else len(posting.rows) > 0
        for posting in candidates.postings
    ]
    found = max(sum(said_elsewhere) / words, notes.coverage)
    return (
        max(_highest(candidates.dense[others]), notes.nearest),
        max(_highest(candidates.coverage()[others]), notes.coverage),
        found,
        math.log(max(len(candidates.columns), _SMALL)),
        min(max(best, notes.total, 0.0), _STRONG),
        float(not found),
        1.0,
    )


def _highest(values: Numbers) -> float:
    return float(values.max()) if len(values) else 0.0


Kind = Literal["people", "assistant", "alone"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_ASSISTANT_SHARE: Final = 0.2
"""Minimum share of the assistant's turns in a chat with an assistant."""


@cache
def weights(kind: Kind) -> dict[str, float]:
    text = (files("aforesaid.recall") / "weights.toml").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in tomllib.loads(text)[kind].items()}


def kind_of(candidates: Candidates) -> Kind:
    """Return the kind of chat: between people, with an assistant, or one person alone.

    The weights differ: between people, statements follow questions. With an assistant, the user asks and the replies
    are long. Alone, a session has one topic.
    """
    columns, rows = candidates.columns, candidates.rows
    if len(rows) and columns.assistant[rows].mean() >= _ASSISTANT_SHARE:
        return "assistant"
    return "people" if len(set(columns.speaker[rows].tolist())) > 1 else "alone"


def weighted_features(candidates: Candidates, kind: Kind, *, textual: bool) -> dict[str, Numbers]:
    """Return the weighted values of the features that read texts (`textual`), or of the others."""
    return {
        name: weight * FEATURES[name](candidates)
        for name, weight in weights(kind).items()
        if (name in NEED_TEXT) == textual
    }


_COVERED: Final = ("coverage", "session_coverage")
_NEAR: Final = ("dense", "session_dense")
ALMOST_ALL: Final = 1 - 1e-9
"""A coverage above this is complete: it is a sum of shares."""


class ScoredNote(NamedTuple):
    """A note with the value that each feature adds to its score."""

    note: NoteMatch
    parts: tuple[tuple[str, float], ...]
    similarity: float | None

    @property
    def holds_all_words(self) -> bool:
        """Whether it has every word of the question, stop words aside."""
        return self.note.coverage > ALMOST_ALL

    @property
    def total(self) -> float:
        """The weighted sum of the features."""
        return sum(value for _, value in self.parts)


def score_notes(
    found: list[NoteMatch], background: Background, weights: Mapping[str, float], sessions: int
) -> list[ScoredNote]:
    """Score notes on the scale of messages.

    A note has no neighbours and no session. It covers several messages, so its text also counts as that of a session.
    As for messages, similarity with a session weighs less if there are few `sessions`.
    """
    scale = {"session_dense": 1 - 1 / max(sessions, 1)}
    scored = []
    for note in found:
        standard = None if note.similarity is None else background.standard(note.similarity)
        parts = [(name, weights.get(name, 0.0) * note.coverage) for name in _COVERED]
        if standard is not None:
            parts += [(name, weights.get(name, 0.0) * standard * scale.get(name, 1.0)) for name in _NEAR]
        scored.append(ScoredNote(note, tuple(parts), None if standard is None else similarity(standard)))
    return scored


def evidence(scored: list[ScoredNote], background: Background) -> NoteEvidence:
    """Return the highest values among the notes, which the score scale of the question depends on."""
    if not scored:
        return NoteEvidence()
    near = [background.standard(each.note.similarity) for each in scored if each.note.similarity is not None]
    return NoteEvidence(
        max(each.total for each in scored), max(each.note.coverage for each in scored), max(near, default=0.0)
    )


def note_hits(scored: list[ScoredNote], scale: ScoreScale) -> list[Hit]:
    return [
        Hit(
            kind=each.note.key.kind,
            id=str(each.note.key.id),
            text=each.note.text,
            score=scale.score(each.total),
            at=each.note.at,
            sources=each.note.sources,
            terms=each.note.words,
            parts=each.parts,
            similarity=each.similarity,
        )
        for each in scored
    ]


def without_quotes(hits: Sequence[Hit]) -> list[Hit]:
    """Leave out memories that merely quote a message which is a hit too. `hits` are sorted, best first.

    The message takes the place and the score of such a memory, if they are better.
    """
    messages = {source: hit for hit in hits if hit.kind == "message" for source in hit.sources}
    kept: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        message = messages.get(hit.sources[0]) if hit.kind == "memory" and len(hit.sources) == 1 else None
        shown = hit
        if message is not None:
            # A quote has the form `Ann: "some words of the message"`, and nothing after it.
            _, mark, rest = hit.text.rstrip(".").partition(': "')
            if mark and rest.endswith('"') and set(words_of(rest)) <= set(words_of(message.text)):
                shown = replace(message, score=hit.score)
        kept.setdefault((shown.kind, shown.id), shown)
    return list(kept.values())


_ABOVE: Final = 1e-6
"""How much the sum of a message with the text of the query is above the others, at least."""
_hit: Final = fast_constructor(Hit)


def totals(parts: Mapping[str, Numbers]) -> Numbers:
    return reduce(np.add, parts.values())


def order(candidates: Candidates, sums: Numbers) -> list[int]:
    """Return the candidates' places, best first, newer first among equals."""
    places: list[int] = np.lexsort((-candidates.rows, -sums)).tolist()
    return places


def same_words_first(candidates: Candidates, sums: Numbers) -> dict[str, Numbers]:
    """Return what lifts messages with the text of the query above all others, as a feature.

    Nothing where the query is a question: what answers it comes first, not the same question asked before.
    """
    if candidates.then.any() and not candidates.then.all():
        lift = np.maximum(sums[~candidates.then].max() + _ABOVE - sums[candidates.then].min(), 0.0)
        return {"period_asked": np.where(candidates.then, lift, 0.0)}
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
    words: list[tuple[str, ...]] = []
    added: list[tuple[tuple[str, float], ...]] = []
    if explained is not None:
        found = [(posting.word, have(posting.rows, rows)) for posting in candidates.postings]
        words = [tuple([word for word, has in found if has[place]]) for place in range(len(best))]
        columns = [values[best].tolist() for values in explained.values()]
        added = [tuple(zip(explained, values, strict=True)) for values in zip(*columns, strict=True)]
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
