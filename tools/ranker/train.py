"""Train the ranker, and write its weights and figures.

    python tools/ranker/train.py LISTS TARGET --encoder WEIGHTS [--train NAME …] [--folds 4] [--seed 0]

LISTS is a folder with what `lists.py` wrote, WEIGHTS the file `weights.npz` of the built-in encoder. A GPU takes
seconds, a CPU an hour. Every set that is not trained on is measured only. For the transcripts, conversations are left
out in turn (`--folds`), so that no figure comes from a conversation that the measured weights were trained on; a fifth
of them, chosen by a hash of their ids, language by language, is never trained on at all.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from features import TokenFeatures
from student import Encoded, Shape, Texts, encode, kept, new_parameters, rounded, scores
from torch.nn import functional

OWN: Final = "transcripts"
FACT: Final = "fact"
TEST_EVERY: Final = 5
"""One conversation in five of each language is the test part."""
MIXES: Final = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
FEW_RATE: Final = 5e-3
"""Learning rate of the single numbers: damping of neighbours, scale, and length."""
SAMPLE_EVERY: Final = 4
"""Share of the tokens by which the first matrix is computed: one in four."""
MISSING: Final = -1e4
"""The score of a candidate that there is not."""
MOST_QUESTIONS: Final = 64
"""Questions scored at a time."""


class Options(NamedTuple):
    """How to train."""

    epochs: int = 12
    rate: float = 1e-3
    pull: float = 0.1
    """How strongly the matrix is held where it began, and the weights of words at zero."""
    dropout: float = 0.2
    words_dropped: float = 0.25
    """Share of the words of a question that is left out, so that no single word decides."""
    whole: float = 0.3
    """Weight of the second task: find the evidence among all turns, without the scores of recall."""
    facts: float = 0.5
    """Weight of a fact beside that of a question."""


class Asked(NamedTuple):
    """A question with its candidates."""

    category: str
    rows: tuple[int, ...]
    base: tuple[float, ...]
    evidence: frozenset[int]


class Lessons(NamedTuple):
    """The questions of a conversation that something can be learned from, padded to the same number of candidates."""

    places: Any
    rows: Any
    base: Any
    evidence: Any
    """Which turns are evidence, for each question."""
    weights: Any


class Chat(NamedTuple):
    """A conversation."""

    source: str
    id: str
    language: str
    kind: str
    """`people`, `assistant` or `alone`, as recall tells them apart."""
    said: Texts
    before: Any
    after: Any
    asked: tuple[Asked, ...]
    questions: Texts
    lessons: Lessons | None


def load(folder: Path, encoder: Path, options: Options, device: str) -> list[Chat]:
    """Read all lists and compute the token features."""
    computing = TokenFeatures(encoder, device)
    chats = []
    for file in sorted(folder.glob("*.json.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            sources = json.load(opened)
        chats += [
            _chat(source["name"], made, computing, options, device)
            for source in sources
            for made in source["conversations"]
            if any(each["evidence"] and each["rows"] for each in made["questions"])
        ]
    return chats


def _chat(source: str, made: dict[str, Any], computing: TokenFeatures, options: Options, device: str) -> Chat:
    sessions = np.array(made["sessions"])
    before, after = np.arange(len(sessions)), np.arange(len(sessions))
    same = sessions[1:] == sessions[:-1]
    before[1:][same] -= 1
    after[:-1][same] += 1
    answered = [each for each in made["questions"] if each["evidence"] and each["rows"]]
    asked = tuple(
        Asked(each["category"], tuple(each["rows"]), tuple(each["base"]), frozenset(each["evidence"]))
        for each in answered
    )
    return Chat(
        source,
        made["id"],
        made["language"],
        made["kind"],
        _texts(made["turns"], computing, device),
        torch.from_numpy(before).to(device),
        torch.from_numpy(after).to(device),
        asked,
        _texts([each["tokens"] for each in answered], computing, device),
        _lessons(asked, len(sessions), options, device),
    )


def _texts(texts: list[list[int]], computing: TokenFeatures, device: str) -> Texts:
    lengths = torch.tensor([len(text) for text in texts])
    text = torch.arange(len(texts)).repeat_interleave(lengths)
    place = torch.arange(int(lengths.sum())) - (lengths.cumsum(0) - lengths)[text]
    return Texts(computing.of(texts), text.to(device), place.to(device), lengths.to(device))


def _lessons(asked: Sequence[Asked], turns: int, options: Options, device: str) -> Lessons | None:
    places = [place for place, each in enumerate(asked) if not each.evidence.isdisjoint(each.rows)]
    if not places:
        return None
    rows = torch.zeros(len(places), max(len(asked[place].rows) for place in places), dtype=torch.long)
    base = torch.full(rows.shape, MISSING)
    evidence = torch.zeros(len(places), turns)
    for number, place in enumerate(places):
        each = asked[place]
        rows[number, : len(each.rows)] = torch.tensor(each.rows)
        base[number, : len(each.rows)] = torch.tensor(each.base)
        evidence[number, list(each.evidence)] = 1.0
    weights = torch.tensor([options.facts if asked[place].category == FACT else 1.0 for place in places])
    return Lessons(*[each.to(device) for each in (torch.tensor(places), rows, base, evidence, weights)])


def train(chats: Sequence[Chat], shape: Shape, options: Options, seed: int) -> dict[str, Any]:
    """Return trained parameters."""
    random.seed(seed)
    torch.manual_seed(seed)
    chats = [chat for chat in chats if chat.lessons is not None]
    sample = torch.cat([chat.said.features[::SAMPLE_EVERY] for chat in chats]).float()
    parameters = new_parameters(shape, sample)
    begun = parameters["head"].clone()
    trained = {name: value.requires_grad_() for name, value in parameters.items() if name != "offset"}
    few = [trained[name] for name in ("beside", "scale", "length")]
    many = [value for name, value in trained.items() if name not in {"beside", "scale", "length"}]
    optimizer = torch.optim.AdamW([{"params": many}, {"params": few, "lr": FEW_RATE}], options.rate, weight_decay=0.0)
    steps = options.epochs * len(chats)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 50) * max(0.02, 1 - step / steps)
    )
    for _ in range(options.epochs):
        for chat in random.sample(chats, len(chats)):
            optimizer.zero_grad()
            loss = _loss(parameters, chat, options) + options.pull * _distance(parameters, begun)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
            optimizer.step()
            schedule.step()
    return {name: value.detach() for name, value in parameters.items()}


def _distance(parameters: dict[str, Any], begun: Any) -> Any:  # noqa: ANN401 - tensors
    """Return how far the parameters are from where they began."""
    moved = ((parameters["head"] - begun) ** 2).sum() / begun.shape[1] + 0.1 * (parameters["weight"] ** 2).sum()
    if "added" in parameters:
        moved = moved + (parameters["added"] ** 2).sum() / begun.shape[1]
    return moved


def _loss(parameters: dict[str, Any], chat: Chat, options: Options) -> Any:  # noqa: ANN401 - a tensor
    """Return how unlikely the evidence is, among the candidates with recall's scores and among all turns without."""
    if chat.lessons is None:
        raise ValueError(f"{chat.id} has no question whose evidence is among its candidates")
    places, rows, base, evidence, weights = chat.lessons
    said = kept(encode(parameters, chat.said, options.dropout))
    asked = Encoded(*[part[places] for part in encode(parameters, chat.questions, options.dropout)])
    left = asked.weights * (torch.rand_like(asked.weights) >= options.words_dropped)
    found = scores(parameters, asked._replace(weights=left + 1e-6 * asked.mask), said, chat.before, chat.after)
    among = evidence.gather(1, rows) * (base > MISSING)
    losses = _unlikely(found.gather(1, rows) + base, among) + options.whole * _unlikely(found, evidence)
    return (losses * weights).mean()


def _unlikely(found: Any, wanted: Any) -> Any:  # noqa: ANN401 - tensors
    return -(functional.log_softmax(found, -1) * wanted).sum(-1) / wanted.sum(-1)


def found_by(parameters: dict[str, Any], chat: Chat) -> list[Any]:
    """Return the ranker's scores of the candidates of every question."""
    with torch.no_grad():
        said = rounded(kept(encode(parameters, chat.said)))
        asked = encode(parameters, chat.questions)
        parts = []
        for first in range(0, len(chat.asked), MOST_QUESTIONS):
            some = Encoded(*[part[first : first + MOST_QUESTIONS] for part in asked])
            parts.append(scores(parameters, some, said, chat.before, chat.after))
    rows = torch.cat(parts).cpu().numpy()
    return [row[list(each.rows)] for each, row in zip(chat.asked, rows, strict=True)]


Results = dict[tuple[str, str], list[tuple[float, float, float]]]
"""Recall at 1 and at 10 of every question, by group of questions and mix."""


def measure(parameters: dict[str, Any], chats: Iterable[Chat], into: Results) -> None:
    """Add the recall of every question with every mix of the ranker's scores with those of recall."""
    for chat in chats:
        groups = [chat.source]
        if chat.source == OWN:
            groups += [f"{OWN} {chat.language}", f"{OWN} {chat.kind}"]
        for each, added in zip(chat.asked, found_by(parameters, chat), strict=True):
            if each.category == FACT:
                continue
            rows = np.array(each.rows)
            for mix in MIXES:
                order = np.argsort(-(np.array(each.base) + mix * added), kind="stable")
                first = [len(each.evidence.intersection(rows[order[:k]].tolist())) for k in (1, 10, 100)]
                result = tuple(found / len(each.evidence) for found in first)
                for group in groups:
                    into[group, f"{mix}"].append(result)  # type: ignore[arg-type]


def test_part(chats: Iterable[Chat]) -> set[str]:
    """Return the ids of the transcripts that are never trained on: one in five of each language.

    Languages with fewer than five conversations share one row, so that some of them are tested too.
    """
    languages: dict[str, list[str]] = defaultdict(list)
    for chat in chats:
        if chat.source == OWN:
            languages[chat.language].append(chat.id)
    small = sorted(name for name, ids in languages.items() if len(ids) < TEST_EVERY)
    rows = [ids for name, ids in languages.items() if name not in small]
    rows.append([each for name in small for each in sorted(languages[name], key=_hash)])
    chosen = [sorted(row, key=_hash)[::TEST_EVERY] for row in rows[:-1]] + [rows[-1][::TEST_EVERY]]
    return {each for row in chosen for each in row}


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def report(results: Results) -> dict[str, dict[str, list[float]]]:
    """Return the averages, in percent."""
    averages: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for (group, mix), values in sorted(results.items()):
        averages[group][mix] = [round(100 * float(value), 1) for value in np.mean(values, axis=0)]
        averages[group]["questions"] = [len(values)]
    return averages


def show(title: str, figures: dict[str, dict[str, list[float]]]) -> None:
    """Print the averages."""
    for group, mixes in figures.items():
        text = "  ".join(f"{mix}: {v[0]:.1f}/{v[1]:.1f}" for mix, v in mixes.items() if mix != "questions")
        print(f"{title} {group} ({mixes['questions'][0]}, ceiling {mixes['0.0'][2]}): {text}", flush=True)


def cross_validate(
    chats: Sequence[Chat], trained: Sequence[str], shape: Shape, options: Options, folds: int, seed: int
) -> dict[str, Any]:
    """Train without each part of the transcripts in turn, and return what was found in the parts left out."""
    test = test_part(chats)
    own = sorted((chat for chat in chats if chat.source == OWN and chat.id not in test), key=lambda c: _hash(c.id))
    others = [chat for chat in chats if chat.source in trained and chat.source != OWN]
    results: Results = defaultdict(list)
    for fold in range(folds):
        apart = {chat.id for chat in own[fold::folds]}
        parameters = train([c for c in own if c.id not in apart] + others, shape, options, seed)
        measure(parameters, own[fold::folds], results)
    return report(results)


def final(chats: Sequence[Chat], trained: Sequence[str], shape: Shape, options: Options, seed: int) -> dict[str, Any]:
    """Return parameters trained on everything but the test part."""
    test = test_part(chats)
    return train([c for c in chats if c.source in trained and c.id not in test], shape, options, seed)


def save(parameters: dict[str, Any], path: Path) -> str:
    """Write the parameters, matrices with eight bits and a scale for each column. Return the file's SHA-256."""
    stored: dict[str, Any] = {}
    for name, value in parameters.items():
        numbers = value.cpu().float().numpy()
        if numbers.ndim == 1 or numbers.shape[1] == 1:
            stored[name] = numbers.astype(np.float32)
            continue
        scale = np.abs(numbers).max(axis=0) / 127
        stored[name] = np.round(numbers / scale).astype(np.int8)
        stored[f"{name}.scale"] = scale.astype(np.float32)
    np.savez_compressed(path, **stored)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Measure by leaving out, train on everything, write weights and figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--train", nargs="*", default=[OWN, "FriendsQA", "QMSum"])
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=Options().epochs)
    given = parser.parse_args()
    began = time.monotonic()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape, options = Shape(), Options(epochs=given.epochs)
    chats = load(given.lists, given.encoder, options, device)
    print(f"{len(chats)} conversations after {time.monotonic() - began:.0f} s", flush=True)
    parameters = final(chats, given.train, shape, options, given.seed)
    sha256 = save(parameters, given.target)
    test = test_part(chats)
    results: Results = defaultdict(list)
    measure(parameters, [c for c in chats if c.source not in given.train or c.id in test], results)
    figures: dict[str, Any] = {"final": report(results)}
    show("final", figures["final"])
    figures["left out"] = cross_validate(chats, given.train, shape, options, given.folds, given.seed)
    show("left out", figures["left out"])
    for name in given.train[1:]:
        fewer = [each for each in given.train if each != name]
        results = defaultdict(list)
        measure(final(chats, fewer, shape, options, given.seed), [c for c in chats if c.source == name], results)
        figures[f"without {name}"] = report(results)
        show("without", figures[f"without {name}"])
    figures |= {
        "sha256": sha256,
        "shape": shape._asdict(),
        "options": options._asdict(),
        "trained on": given.train,
        "test part": sorted(test),
        "seed": given.seed,
        "seconds": round(time.monotonic() - began),
    }
    given.target.with_suffix(".json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
