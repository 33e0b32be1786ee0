"""Pairs of statements of one person, and how a model is fitted to those of which the second made the first outdated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from evaluation.memories.transcripts import FactTranscript
from linear import Floats, Inputs, Projection, logistic
from numpy.typing import NDArray

from aforesaid.models.superseding import Compared, OlderWords, SupersedingModel, pair_features, statement_words

Booleans = NDArray[np.bool_]
RIDGE = {"message": 3.0, "pair": 1.0}
RIGHT = 0.5
"""Least share of superseded statements that must state a replaced fact, in conversations left out of training."""
LEAST_TUNED = 50
"""Least superseded statements over which that share is counted."""


class Statements(NamedTuple):
    """The messages that are worth remembering, one row for each, in the order of time in each conversation."""

    conversations: Sequence[FactTranscript]
    conversation: NDArray[np.int64]
    turn: Sequence[str]
    texts: Sequence[str]
    vectors: Floats
    remembered: Booleans


class Succession(NamedTuple):
    """The older statement that a new one most likely made outdated, by its row."""

    old: int
    log_odds: float


class Pairs(NamedTuple):
    """Pairs of an older and a newer statement of one speaker, by their rows in `Statements`."""

    old: NDArray[np.int64]
    new: NDArray[np.int64]
    compared: Compared
    outdated: Booleans


def pairs_of(given: Statements) -> list[Pairs]:
    """Return the pairs of each new statement with all older ones, one entry per new statement."""
    found: list[Pairs] = []
    words = [statement_words(text) for text in given.texts]
    for number, each in enumerate(given.conversations):
        changed = {
            (old, new)
            for before, after in each.changes
            for old in set(each.facts[before].turns) - set(each.facts[after].turns)
            for new in set(each.facts[after].turns) - set(each.facts[before].turns)
        }
        turns = {turn.id: turn for turn in each.turns}
        rows = np.flatnonzero((given.conversation == number) & given.remembered).tolist()
        for place, new in enumerate(rows):
            own = turns[given.turn[new]]
            old = [row for row in rows[:place] if turns[given.turn[row]].speaker == own.speaker]
            if not old:
                continue
            days = np.array([(own.at - turns[given.turn[row]].at).total_seconds() / 86_400 for row in old], np.float32)
            similarity = (given.vectors[old] @ given.vectors[new]).astype(np.float32)
            found.append(
                Pairs(
                    np.array(old),
                    np.full(len(old), new),
                    OlderWords(words[row] for row in old).compare(similarity, days, words[new]),
                    np.array([(given.turn[row], given.turn[new]) in changed for row in old]),
                )
            )
    return found


def message_labels(given: Statements) -> tuple[Booleans, Booleans]:
    """Return which rows state a fact that replaced another, and which state one that was replaced."""
    new, old = np.zeros(len(given.texts), bool), np.zeros(len(given.texts), bool)
    rows = zip(given.conversation.tolist(), given.turn, strict=True)
    places = {place: row for row, place in enumerate(rows)}
    for number, each in enumerate(given.conversations):
        for before, after in each.changes:
            for marked, fact in ((old, each.facts[before]), (new, each.facts[after])):
                for turn in fact.turns:
                    if (number, turn) in places:
                        marked[places[number, turn]] = True
    return new, old


def fitted(given: Statements, pairs: Sequence[Pairs], rows: Booleans) -> SupersedingModel:
    """Fit a model to the pairs of some rows. Half of the conversations judge the messages of the other half."""
    labels = message_labels(given)
    half = given.conversation % 2 == 0
    judged = np.zeros((2, len(given.texts)))
    for side in (half, ~half):
        heads = [_head(given, label, rows & given.remembered & side) for label in labels]
        for number, head in enumerate(heads):
            judged[number, ~side] = given.vectors[~side] @ head[:-1] + head[-1]
    used = [pair for pair in pairs if rows[pair.new[0]]]
    features = np.concatenate([_features(pair, judged) for pair in used])
    weights = logistic(features.astype(np.float64), np.concatenate([pair.outdated for pair in used]), RIDGE["pair"])
    new, old = (_head(given, label, rows & given.remembered).astype(np.float32) for label in labels)
    return SupersedingModel(new, old, weights.astype(np.float32), 0.0)


def _features(pair: Pairs, judged: Floats) -> Floats:
    new = float(judged[0, pair.new[0]])
    return pair_features(pair.compared, new, judged[1, pair.old]).astype(np.float64)


def _head(given: Statements, label: Booleans, rows: Booleans) -> Floats:
    inputs = Inputs(given.vectors[rows], np.zeros((int(rows.sum()), 0)))
    projection = Projection.fit(inputs)
    vector, _, offset = projection.expand(logistic(projection.reduce(inputs), label[rows], RIDGE["message"]))
    return np.append(vector, offset)


def superseded(model: SupersedingModel, given: Statements, pairs: Sequence[Pairs], rows: Booleans) -> list[Succession]:
    """Return for each new statement of some rows the older one that a model finds most likely outdated."""
    found = []
    vectors = given.vectors.astype(np.float32)
    for pair in pairs:
        if rows[pair.new[0]]:
            says_change = model.says_change(vectors[pair.new[0]])
            log_odds = model.margins(says_change, model.changes_later(vectors[pair.old]), pair.compared)
            best = int(log_odds.argmax())
            found.append(Succession(int(pair.old[best]), float(log_odds[best])))
    return found


def lowest_threshold(given: Statements, successions: Sequence[Succession]) -> float:
    """Return the lowest log-odds from which enough of the superseded statements state a fact that was replaced."""
    _, replaced = message_labels(given)
    gone: set[int] = set()
    lowest = float("inf")
    for each in sorted(successions, key=lambda succession: -succession.log_odds):
        gone.add(each.old)
        if len(gone) < LEAST_TUNED or replaced[list(gone)].mean() >= RIGHT:
            lowest = each.log_odds
    return lowest
