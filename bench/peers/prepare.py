"""Prepares the shared data once: texts, questions, conversations and their vectors."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from evaluation import Dataset, load_datasets
from evaluation.own import load_transcripts
from evaluation.own_command import read_ids
from evaluation.synthetic_chat import SyntheticChat
from peers.vectors import save

from aforesaid.models.embed import Embedder, LocalEmbedder

if TYPE_CHECKING:
    from peers.vectors import Floats

REAL = 2_000
"""Number of texts embedded by a real model. The other vectors are spread around theirs, as those of real texts are."""
MORE = 600
QUESTIONS = 600
SCATTER = 0.03


def questions(count: int) -> list[str]:
    """Return a realistic query: one or two frequent words, and one or two rare ones."""
    talk, chance = SyntheticChat(seed=6), random.Random(7)
    forms = ("When did I tell you about {0} and {1}?", "What was {0} with the {1} {2}?", "Who brought {0} {1} to {2}?")
    words = [[*talk.text().split()[:2], *talk.question().split()] for _ in range(count)]
    return [chance.choice(forms).format(*chance.sample(each, 3)) for each in words]


def scattered(centres: Floats, count: int) -> Floats:
    """Return `count` vectors spread around the given ones."""
    chance = np.random.default_rng(5)
    rows = np.empty((count, centres.shape[1]), dtype=np.float32)
    for start in range(0, count, 10_000):
        end = min(start + 10_000, count)
        noise = chance.standard_normal((end - start, centres.shape[1])).astype(np.float32) * SCATTER
        part = centres[chance.integers(0, len(centres), end - start)] + noise
        rows[start:end] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return rows


async def talk(folder: Path, size: int, embedder: Embedder, real: int = REAL) -> None:
    """Write a conversation of a given size, messages for single adds, and questions about it."""
    source = SyntheticChat(seed=4)
    texts, more = list(source.texts(size)), list(source.texts(MORE))
    asked = questions(QUESTIONS)
    centres = await embedder.embed([source.text() for _ in range(real)])
    rows = np.concatenate([scattered(centres, size + MORE), await embedder.embed(asked)])
    await asyncio.to_thread(save, folder, [*texts, *more, *asked], rows)
    said = {"texts": texts, "more": more, "questions": asked}
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    question = {"text": asked[0], "row": rows[size + MORE].tolist()}
    (folder / "question.json").write_text(json.dumps(question), encoding="utf-8")


class LabelledSet(NamedTuple):
    """Conversations with questions whose answers are known: a row of the table."""

    key: str
    title: str
    dataset: Dataset | None
    """None if there is none, for the reason given."""
    left_out: str = ""


def labelled_sets(data: Path | None, own: Path) -> list[LabelledSet]:
    """Return LoCoMo if the folder has it, and the project's own conversations: the test part where one is listed."""
    found = None if data is None else next((each for each in load_datasets(data) if each.format == "LoCoMo"), None)
    part = own / "test-part.txt"
    transcripts = load_transcripts(own, read_ids(part) if part.exists() else None)
    return [
        LabelledSet("locomo", "LoCoMo", found, "no DATA was given" if data is None else f"no LoCoMo in {data}"),
        LabelledSet("own", "own conversations, test part", transcripts.questions),
    ]


async def labelled(folder: Path, dataset: Dataset, embedder: Embedder, most: int | None = None) -> dict[str, int]:
    """Write labelled conversations with their vectors; return how many conversations, turns and questions there are."""
    texts: dict[str, None] = {}
    conversations: list[dict[str, Any]] = []
    for conversation in dataset.conversations:
        turns = [
            {
                "id": turn.id,
                "role": turn.role,
                "text": turn.text,
                "spoken": f"{turn.speaker or turn.role}: {turn.text}",
                "at": turn.at.isoformat(),
                "speaker": turn.speaker,
                "session": turn.session,
            }
            for turn in conversation.turns
        ]
        questions = [
            {"text": each.text, "at": each.asked_at.isoformat(), "turns": each.turns}
            for each in [each for each in conversation.questions if each.turns and not each.apart][:most]
        ]
        texts |= dict.fromkeys(turn[form] or "" for turn in turns for form in ("text", "spoken"))
        texts |= dict.fromkeys(str(question["text"]) for question in questions)
        conversations.append({"turns": turns, "questions": questions})
    await asyncio.to_thread(save, folder, list(texts), await embedder.embed(list(texts)))
    if embedder.name == LocalEmbedder.name:
        (folder / "local").touch()
    (folder / "conversations.json").write_text(json.dumps(conversations), encoding="utf-8")
    counts = {name: sum(len(each[name]) for each in conversations) for name in ("turns", "questions")}
    return {"conversations": len(conversations), **counts}
