"""Train the ranker, and write its weights and figures.

    python tools/ranker/train.py LISTS TARGET --encoder WEIGHTS [--teacher FOLDER] [--seed 0]

LISTS is a folder with what `lists.py` wrote, WEIGHTS the file `weights.npz` of the built-in encoder. FOLDER has what
`teacher.py` wrote: `0.json` to `2.json`, each by a teacher that learned nothing from that part, and `3.json`. A GPU
takes seconds, a CPU an hour. The parts are left out in turn, so that no figure comes from a conversation that the
measured weights, or their teacher, were trained on. The test part and all data sets under other licences are measured
only (`parts.py`).
"""

from __future__ import annotations

import argparse
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
from parts import FOLDS, MEASURED, OWN, part_of, read_lists, test_part
from student import Encoded, Shape, Texts, encode, kept, new_parameters, rounded, scores
from torch.nn import functional

FACT: Final = "fact"
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

    epochs: int = 14
    rate: float = 1e-3
    pull: float = 0.1
    """How strongly the matrix is held where it began, and the weights of words at zero."""
    dropout: float = 0.2
    words_dropped: float = 0.25
    """Share of the words of a question that is left out, so that no single word decides."""
    whole: float = 0.3
    """Weight of the second task: find the evidence among all turns, without the scores of recall."""
    facts: float = 0.7
    """Weight of a fact beside that of a question."""
    labels: float = 0.7
    """Weight of the labels beside the teacher."""
    alone: float = 0.7
    """Weight of the teacher's order of the candidates, to be reached without the scores of recall."""
    together: float = 0.3
    """Weight of the teacher's order and recall's together, to be reached with the scores of recall."""
    softness: float = 1.5
    """By how much the teacher's scores are divided: the more, the more its second choices count."""
    recall: float = 0.5
    """Weight of recall's scores beside the teacher's."""


class Asked(NamedTuple):
    """A question with its candidates."""

    place: int
    """Its place among the questions of the conversation."""
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
    taught: Any
    """The teacher's scores of the candidates; MISSING where it gave none."""


class Chat(NamedTuple):
    """A conversation."""

    source: str
    id: str
    part: int
    language: str
    kind: str
    """`people`, `assistant` or `alone`, as recall tells them apart."""
    said: Texts
    before: Any
    after: Any
    asked: tuple[Asked, ...]
    questions: Texts


Teachings = dict[str, list[list[float]]]
"""The rows that a teacher scored, and their scores, for each question."""


def load(folder: Path, encoder: Path, device: str) -> list[Chat]:
    """Read all lists and compute the token features."""
    computing = TokenFeatures(encoder, device)
    return [
        _chat(made, computing, device)
        for made in read_lists(folder)
        if any(each["evidence"] and each["rows"] for each in made["questions"])
    ]


def _chat(made: dict[str, Any], computing: TokenFeatures, device: str) -> Chat:
    sessions = np.array(made["sessions"])
    before, after = np.arange(len(sessions)), np.arange(len(sessions))
    same = sessions[1:] == sessions[:-1]
    before[1:][same] -= 1
    after[:-1][same] += 1
    answered = [(place, each) for place, each in enumerate(made["questions"]) if each["evidence"] and each["rows"]]
    asked = tuple(
        Asked(place, each["category"], tuple(each["rows"]), tuple(each["base"]), frozenset(each["evidence"]))
        for place, each in answered
    )
    return Chat(
        made["source"],
        made["id"],
        part_of(made["source"], made["id"]),
        made["language"],
        made["kind"],
        _texts(made["turns"], computing, device),
        torch.from_numpy(before).to(device),
        torch.from_numpy(after).to(device),
        asked,
        _texts([each["tokens"] for _, each in answered], computing, device),
    )


def _texts(texts: list[list[int]], computing: TokenFeatures, device: str) -> Texts:
    lengths = torch.tensor([len(text) for text in texts])
    text = torch.arange(len(texts)).repeat_interleave(lengths)
    place = torch.arange(int(lengths.sum())) - (lengths.cumsum(0) - lengths)[text]
    return Texts(computing.of(texts), text.to(device), place.to(device), lengths.to(device))


def _lessons(chat: Chat, taught: Teachings, options: Options) -> Lessons | None:
    places = [place for place, each in enumerate(chat.asked) if not each.evidence.isdisjoint(each.rows)]
    if not places:
        return None
    rows = torch.zeros(len(places), max(len(chat.asked[place].rows) for place in places), dtype=torch.long)
    base, scored = torch.full(rows.shape, MISSING), torch.full(rows.shape, MISSING)
    evidence = torch.zeros(len(places), len(chat.before))
    for number, place in enumerate(places):
        each = chat.asked[place]
        rows[number, : len(each.rows)] = torch.tensor(each.rows)
        base[number, : len(each.rows)] = torch.tensor(each.base)
        evidence[number, list(each.evidence)] = 1.0
        if (known := taught.get(f"{chat.source} {chat.id} {each.place}")) is not None:
            scores_of = dict(zip(*known, strict=True))
            scored[number, : len(each.rows)] = torch.tensor([scores_of.get(row, MISSING) for row in each.rows])
    weights = torch.tensor([options.facts if chat.asked[place].category == FACT else 1.0 for place in places])
    device = chat.before.device
    return Lessons(*[part.to(device) for part in (torch.tensor(places), rows, base, evidence, weights, scored)])


def train(chats: Sequence[Chat], taught: Teachings, shape: Shape, options: Options, seed: int) -> dict[str, Any]:
    """Return trained parameters."""
    random.seed(seed)
    torch.manual_seed(seed)
    taken = [(chat, lessons) for chat in chats if (lessons := _lessons(chat, taught, options)) is not None]
    sample = torch.cat([chat.said.features[::SAMPLE_EVERY] for chat, _ in taken]).float()
    parameters = new_parameters(shape, sample)
    begun = parameters["head"].clone()
    trained = {name: value.requires_grad_() for name, value in parameters.items() if name != "offset"}
    few = [trained[name] for name in ("beside", "scale", "length")]
    many = [value for name, value in trained.items() if name not in {"beside", "scale", "length"}]
    optimizer = torch.optim.AdamW([{"params": many}, {"params": few, "lr": FEW_RATE}], options.rate, weight_decay=0.0)
    steps = options.epochs * len(taken)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 50) * max(0.02, 1 - step / steps)
    )
    for _ in range(options.epochs):
        for chat, lessons in random.sample(taken, len(taken)):
            optimizer.zero_grad()
            loss = _loss(parameters, chat, lessons, options) + options.pull * _distance(parameters, begun)
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


def _loss(parameters: dict[str, Any], chat: Chat, lessons: Lessons, options: Options) -> Any:  # noqa: ANN401 - a tensor
    """Return how unlikely the evidence is, and how far the order of the candidates is from the teacher's."""
    places, rows, base, evidence, weights, taught = lessons
    said = kept(encode(parameters, chat.said, options.dropout))
    asked = Encoded(*[part[places] for part in encode(parameters, chat.questions, options.dropout)])
    left = asked.weights * (torch.rand_like(asked.weights) >= options.words_dropped)
    everywhere = scores(parameters, asked._replace(weights=left + 1e-6 * asked.mask), said, chat.before, chat.after)
    found = everywhere.gather(1, rows)
    among = evidence.gather(1, rows) * (base > MISSING)
    losses = options.labels * (_unlikely(found + base, among) + options.whole * _unlikely(everywhere, evidence))
    known = taught > MISSING
    alone = _divergence(taught / options.softness, found, known)
    together = _divergence(taught + options.recall * base, found + base, known)
    losses = losses + known.any(1) * (options.alone * alone + options.together * together)
    return (losses * weights).mean()


def _divergence(taught: Any, found: Any, known: Any) -> Any:  # noqa: ANN401 - tensors
    """Return the divergence of the distributions over the candidates that the teacher scored."""
    wanted = torch.softmax(taught.masked_fill(~known, MISSING), -1)
    likely = functional.log_softmax(found.masked_fill(~known, MISSING), -1)
    return (wanted * (torch.log(wanted + 1e-9) - likely)).sum(-1)


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
    """Train without each part in turn and on everything, measure what was left out, write weights and figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape, options = Shape(), Options()
    chats = load(given.lists, given.encoder, device)
    print(f"{len(chats)} conversations after {time.monotonic() - began:.0f} s", flush=True)
    left_out: Results = defaultdict(list)
    measured: Results = defaultdict(list)
    for fold in range(FOLDS + 1):
        taught: Teachings = {}
        if given.teacher is not None:
            taught = json.loads((given.teacher / f"{fold}.json").read_text(encoding="utf-8"))
        learned = [chat for chat in chats if chat.part not in {MEASURED, fold}]
        parameters = train(learned, taught, shape, options, given.seed)
        if fold < FOLDS:
            measure(parameters, [chat for chat in chats if chat.part == fold], left_out)
    measure(parameters, [chat for chat in chats if chat.part == MEASURED], measured)
    figures: dict[str, Any] = {"final": report(measured), "left out": report(left_out)}
    for title, part in figures.items():
        show(title, part)
    figures |= {
        "sha256": save(parameters, given.target),
        "shape": shape._asdict(),
        "options": options._asdict(),
        "test part": sorted(test_part()),
        "seed": given.seed,
        "seconds": round(time.monotonic() - began),
    }
    given.target.with_suffix(".json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
