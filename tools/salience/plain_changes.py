"""Train the model that says which plain statement a later message makes outdated, and write its weights and figures.

    python tools/salience/plain_changes.py

"I live in Leeds." and then "We moved to York." It learns from plain_changes.txt. As in a memory, each later message is
compared with the statement that it may make outdated and with others about other matters. What is taken for a plain
statement at all is learned from the list, and from the remembered messages in bench/conversations, without its test
part, which are none. Thresholds are chosen on matters and conversations that were left out. Figures are for those, and
for tests/facts/changes_held_out.txt, which nothing is trained on. It takes about a minute. What is drawn at random is
the same in each run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from common import encoded, write
from fit import CONVERSATIONS, ROOT, load, packed
from linear import Floats, Inputs, Projection, logistic
from numpy.typing import NDArray
from plain import listed

from aforesaid.models.salience import load_salience, text_features
from aforesaid.models.superseding import RELATED, Compared, OlderWords, SupersedingModel, pair_features, statement_words

CHANGES = Path(__file__).with_name("plain_changes.txt")
HELD_OUT = ROOT / "tests" / "facts" / "changes_held_out.txt"
FIGURES = Path(__file__).with_name("plain_changes_figures.json")
WEIGHTS = ROOT / "src" / "aforesaid" / "models" / "plain_changes.npz"
MODULE = ROOT / "src" / "aforesaid" / "models" / "superseding.py"
FOLDS = 5
RIDGE = {"message": 3.0, "pair": 1.0, "plain": 10.0}
NEAR = 0.07
"""Share of the messages near a statement (=) that may make something outdated, in matters left out. They were written
to look like changes."""
NOT_PLAIN = 0.01
"""Share of the remembered messages of conversations left out that are taken for plain statements."""
OTHERS = (0, 2, 4, 7, 12, 20)
"""How many other statements a message is compared with."""
GAPS = (1.0, 3.0, 10.0, 40.0)
"""Days between statements."""


class Block(NamedTuple):
    """A statement with what was said later."""

    language: str
    matter: str
    statement: str
    later: tuple[tuple[str, bool], ...]
    """Each text, and whether it makes the statement outdated."""


class Episode(NamedTuple):
    """A later message beside the older statements of the same person."""

    block: Block
    new: str
    older: tuple[str, ...]
    own: int
    """The place of the statement that it may make outdated."""
    outdates: bool
    """Whether it does, and the statement is among the older ones."""
    compared: Compared


class Trained(NamedTuple):
    """The weights, before a threshold is chosen."""

    model: SupersedingModel
    features: Floats


class Result(NamedTuple):
    """The statement that is most likely outdated in an episode."""

    episode: Episode
    right: bool
    """Whether the new message does make it outdated."""
    log_odds: float

    @property
    def near(self) -> bool:
        """Whether the new message is only near a statement."""
        return not dict(self.episode.block.later)[self.episode.new]


def main() -> None:
    """Train, measure and write."""
    blocks, held_out = list(read(CHANGES)), list(read(HELD_OUT))
    texts = {text for block in (*blocks, *held_out) for text in (block.statement, *(text for text, _ in block.later))}
    every = sorted(texts | {line.text for line in listed()})
    vectors = dict(zip(every, encoded(every), strict=True))
    learned = episodes(blocks, vectors)
    folds = [zlib.crc32(each.block.matter.encode()) % FOLDS for each in learned]
    results: list[Result] = []
    for fold in range(FOLDS):
        rest = [each for each, own in zip(learned, folds, strict=True) if own != fold]
        left_out = [each for each, own in zip(learned, folds, strict=True) if own == fold]
        results += judged(trained(rest, vectors), left_out, vectors)
    threshold = float(np.quantile([each.log_odds for each in results if each.near], 1 - NEAR))
    found = trained(learned, vectors)
    measured = judged(found, episodes(held_out, vectors), vectors)
    plain, kept = plain_head(blocks, vectors)
    held_statements = np.stack([vectors[block.statement] for block in held_out])
    figures = {
        "matters left out": shares(results, threshold),
        "held out": shares(measured, threshold),
        "held out, English": shares([each for each in measured if each.episode.block.language == "en"], threshold),
        "taken for plain statements": {
            "statements held out": round(float((held_statements @ plain[:-1] + plain[-1] >= 0).mean()), 3),
            "remembered messages of conversations": round(kept, 4),
        },
    }
    model = found.model
    arrays = {"new": model.new, "old": model.old, "pair": model.pair, "features": found.features, "plain": plain}
    values = {name: np.asarray(each, dtype=np.float64) for name, each in arrays.items()}
    weights = packed({**values, "threshold": np.array(threshold)})
    write(weights, WEIGHTS, MODULE, "_PLAIN_HASH", figures, FIGURES)


def read(path: Path) -> Iterator[Block]:
    """Yield the blocks of a file."""
    language = matter = statement = ""
    later: list[tuple[str, bool]] = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        mark, _, rest = line.partition(" ")
        if mark == "==":
            language = rest
        elif mark == "#":
            matter = rest
        elif mark in {">", "="}:
            later.append((rest, mark == ">"))
        elif not line and statement:
            yield Block(language, matter, statement, tuple(later))
            statement, later = "", []
        elif line and mark != "%":
            statement = line


def episodes(blocks: Sequence[Block], vectors: dict[str, Floats]) -> list[Episode]:
    """Return each later message beside its statement and some about other matters, in the same language.

    What makes a statement outdated comes once more without it: most changes are about something that is not known.
    """
    draw = Random(1)  # noqa: S311 - the same in each run
    found = []
    for block in blocks:
        others = [each.statement for each in blocks if each.language == block.language and each.matter != block.matter]
        for new, outdates in block.later:
            for known in (True, False) if outdates else (True,):
                older = draw.sample(others, min(len(others), draw.choice(OTHERS)))
                own = draw.randrange(len(older) + 1)
                if known:
                    older.insert(own, block.statement)
                if older:
                    compared = _compared(new, older, draw.choice(GAPS), vectors)
                    found.append(Episode(block, new, tuple(older), own, outdates and known, compared))
    return found


def _compared(new: str, older: Sequence[str], gap: float, vectors: dict[str, Floats]) -> Compared:
    days = np.array([gap * (len(older) - place) for place in range(len(older))], np.float32)
    similarity = np.array([vectors[each] @ vectors[new] for each in older], np.float32)
    words = OlderWords(statement_words(each) for each in older)
    return words.compare(similarity, days, statement_words(new))


def trained(given: Sequence[Episode], vectors: dict[str, Floats]) -> Trained:
    """Train on episodes. Half of the statements judge the messages of the other half."""
    side = np.array([zlib.crc32(each.block.statement.encode()) % 2 for each in given])
    rows: list[Floats] = []
    wanted: list[bool] = []
    for number in (0, 1):
        judging = _heads([each for each, own in zip(given, side, strict=True) if own != number], vectors)
        for each, own in zip(given, side, strict=True):
            if own == number:
                rows.append(_features(judging, each, vectors))
                wanted += [each.outdates and place == each.own for place in range(len(each.older))]
    weights = logistic(np.concatenate(rows), np.array(wanted), RIDGE["pair"])
    heads = _heads(given, vectors)
    return heads._replace(model=heads.model._replace(pair=weights.astype(np.float32)))


def _features(trained_heads: Trained, each: Episode, vectors: dict[str, Floats]) -> Floats:
    """Return the properties of the pairs of an episode."""
    model = trained_heads.model
    new, older = vectors[each.new].astype(np.float32), np.stack([vectors[text] for text in each.older])
    says_change = model.says_change(new) + float(trained_heads.features @ text_features(each.new))
    return pair_features(each.compared, says_change, model.changes_later(older.astype(np.float32))).astype(np.float64)


def _heads(given: Sequence[Episode], vectors: dict[str, Floats]) -> Trained:
    """Return weights that say how likely a message tells a change, and how likely what it says changes later."""
    later = np.stack([vectors[each.new] for each in given])
    before = np.stack([vectors[text] for text in dict.fromkeys(each.block.statement for each in given)])
    # Statements are no examples of what tells no change: they are as plain as plain changes ("I sold the car").
    inputs = Inputs(later, np.array([text_features(each.new) for each in given], dtype=np.float64))
    projection = Projection.fit(inputs)
    tells = np.array([dict(each.block.later)[each.new] for each in given])
    vector, features, offset = projection.expand(logistic(projection.reduce(inputs), tells, RIDGE["message"]))
    changes = np.append(np.zeros(len(later), dtype=bool), np.ones(len(before), dtype=bool))
    old = _head(np.vstack([later, before]), changes, RIDGE["message"])
    new = np.append(vector, offset).astype(np.float32)
    return Trained(SupersedingModel(new, old.astype(np.float32), np.zeros(1, np.float32), 0.0), features)


def _head(vectors: Floats, wanted: NDArray[np.bool_], ridge: float) -> Floats:
    inputs = Inputs(vectors, np.zeros((len(vectors), 0)))
    projection = Projection.fit(inputs)
    vector, _, offset = projection.expand(logistic(projection.reduce(inputs), wanted, ridge))
    return np.append(vector, offset)


def plain_head(blocks: Sequence[Block], vectors: dict[str, Floats]) -> tuple[Floats, float]:
    """Return what tells plain statements from other remembered messages, and the share of those taken for one."""
    tested = set((CONVERSATIONS / "test-part.txt").read_text(encoding="utf-8").split())
    data = load()
    salience = load_salience()
    inputs = data.inputs
    outputs = salience.outputs(inputs.vectors.astype(np.float32), inputs.features.astype(np.float32))
    kept = (outputs[:, 0] >= salience.threshold) & (outputs[:, -1] >= salience.alone)
    kept &= ~data.rows(lambda each: each.id in tested)
    fold = np.array([zlib.crc32(data.conversations[number].id.encode()) % FOLDS for number in data.conversation])
    lines = listed()
    statements = np.stack(
        [vectors[text] for text in (*(block.statement for block in blocks), *(line.text for line in lines))]
    )
    plain = np.array([*(True for _ in blocks), *(line.worth for line in lines)])

    def fitted(rows: NDArray[np.bool_]) -> Floats:
        wanted = np.append(plain, np.zeros(int(rows.sum()), dtype=bool))
        return _head(np.vstack([statements, inputs.vectors[rows]]), wanted, RIDGE["plain"])

    scores = np.zeros(len(kept))
    for number in range(FOLDS):
        head = fitted(kept & (fold != number))
        left_out = fold == number
        scores[left_out] = inputs.vectors[left_out] @ head[:-1] + head[-1]
    head = fitted(kept)
    threshold = float(np.quantile(scores[kept], 1 - NOT_PLAIN))
    head[-1] -= threshold
    return head, float((scores[kept] >= threshold).mean())


def judged(found: Trained, given: Sequence[Episode], vectors: dict[str, Floats]) -> list[Result]:
    """Return for each episode the statement that is most likely outdated."""
    results = []
    for each in given:
        log_odds = _features(found, each, vectors) @ found.model.pair[:-1] + found.model.pair[-1]
        log_odds[each.compared.similarity < RELATED] = -np.inf
        best = int(log_odds.argmax())
        results.append(Result(each, each.outdates and best == each.own, float(log_odds[best])))
    return results


def shares(results: Sequence[Result], threshold: float) -> dict[str, float]:
    """Return how many changes are settled, and how often something is superseded wrongly."""
    changes = [each for each in results if each.episode.outdates]
    near = [each for each in results if each.near]
    gone = [each for each in results if each.log_odds >= threshold]
    settled = sum(each.right for each in gone)
    wrong = sum(each.episode.outdates for each in gone) - settled
    misled = sum(each.near for each in gone)
    unknown = [each for each in results if not each.near and not each.episode.outdates]
    return {
        "changes": len(changes),
        "settled": round(settled / len(changes), 3),
        "another statement superseded": round(wrong / len(changes), 3),
        "near statements": len(near),
        "superseding something": round(misled / len(near), 3),
        "changes of what is not known": len(unknown),
        "superseding something else": round((len(gone) - settled - wrong - misled) / len(unknown), 3),
        "superseded rightly": round(settled / max(len(gone), 1), 3),
    }


if __name__ == "__main__":
    main()
