"""Make the lists that the ranker is trained on: for every question, the first 100 candidates of recall.

    python tools/ranker/lists.py TARGET SOURCE [SOURCE …] [--keep FOLDER]

A SOURCE is what `bench/eval.py` reads (a folder of transcripts, FriendsQA, LoCoMo, …) or a file of QMSum. TARGET
becomes a compressed JSON file. Candidates and their scores come from the real recall on a real store. Turns and
questions are stored as the tokens of the built-in encoder, so that training needs neither the encoder's code nor the
store, and as texts, for the teacher. The facts in transcripts count as questions too: a fact is a statement whose
evidence is labelled.

`--keep` stores the filled memories in a folder, so that the next run does not embed everything again.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from evaluation import load_datasets, transcript
from evaluation.conversation import PAUSE, Conversation, Dataset, Question, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.filling import fill
from evaluation.json_files import Node

from aforesaid.memory import Memory, UserMemory, connect
from aforesaid.models.embed.local import load_encoder
from aforesaid.recall import SearchRequest
from aforesaid.recall.candidates import without
from aforesaid.recall.score import kind_of, order, totals, weighted_features
from aforesaid.text.words import words_of

DEPTH: Final = 100
"""Candidates per question: what the ranker orders in a search."""
CHARACTERS: Final = 800
"""Maximum characters of a message that are encoded, as in upkeep."""
LONGEST_SPAN: Final = 40
"""QMSum labels passages. A longer one says too little about which turn has the answer."""
FACT: Final = "fact"
_FACT: Final = re.compile(r"F [^|]*\|([^|]+)\|[^|]*\|[^|]*\|([^|]+)")
_HEADER: Final = re.compile(r"# (\w+): *(\S+)")
_MARK: Final = re.compile(r"\{\w+\}\s*")
_START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_PROFILE: Final = {"message_bytes": 2**24, "summaries": "none", "extract": False}


class Source(NamedTuple):
    """A data set, and what its files say beyond the questions."""

    name: str
    dataset: Dataset
    languages: dict[str, str]
    facts: dict[str, list[Question]]


def read_sources(path: Path) -> list[Source]:
    """Read one source."""
    if path.suffix == ".jsonl":
        meetings = tuple(_meetings(path))
        return [Source("QMSum", Dataset("QMSum", path, meetings), {}, {})]
    found = []
    for dataset in load_datasets(path):
        languages: dict[str, str] = {}
        facts: dict[str, list[Question]] = {}
        if dataset.format == "transcripts":
            files = [path] if path.is_file() else sorted(filter(transcript.begins, path.glob("*.txt")))
            for file in files:
                text = file.read_text(encoding="utf-8")
                header = dict(_HEADER.findall(text))
                languages[header["id"]] = header.get("lang", "?")
                facts[header["id"]] = [_fact(*each) for each in _FACT.findall(text)]
        found.append(Source(dataset.format, dataset, languages, facts))
    return found


async def lists_of(source: Source, folder: Path) -> dict[str, Any]:
    """Return the lists of one source."""
    encoder = load_encoder()
    digest = hashlib.sha256(repr(source.dataset.conversations).encode()).hexdigest()
    path = folder / f"{source.name}-{digest[:12]}.db"
    filled = path.exists()
    async with connect(path, profile=_PROFILE, embedder="local", settings={"ranker": False}) as memory:
        if not filled:
            await fill(memory, source.dataset, lambda *_: None)
        await memory.upkeep()
        conversations = []
        for conversation in source.dataset.conversations:
            made = await _conversation(memory, conversation, source, encoder)
            conversations.append(made)
            print(source.name, made["id"], len(made["turns"]), "turns", len(made["questions"]), "questions", flush=True)
    return {"name": source.name, "conversations": conversations}


async def _conversation(memory: Memory, conversation: Conversation, source: Source, encoder: Any) -> dict[str, Any]:  # noqa: ANN401 - untyped library
    user = memory.user(conversation.id, space="eval")
    messages = {message.seq: message for message in await user.history(100_000)}
    asked = [each for each in conversation.questions if each.turns and not each.apart]
    asked += source.facts.get(conversation.id, [])
    made: dict[str, Any] = {
        "id": conversation.id,
        "language": source.languages.get(conversation.id, "en"),
        "turns": [],
        "sessions": [],
        "questions": [],
    }
    for question in asked:
        await _ask(memory, user, question, messages, encoder, made)
    return made


async def _ask(
    memory: Memory,
    user: UserMemory,
    question: Question,
    messages: dict[int, Any],
    encoder: Any,  # noqa: ANN401 - untyped library
    made: dict[str, Any],
) -> None:
    """Append the candidates of a question to `made`, and with the first question the turns."""
    at = question.asked_at if question.category != FACT else None
    recall = memory._services.recall  # noqa: SLF001 - the tool looks inside
    found = await recall.candidates(user.scope, SearchRequest(question.text, at=at))
    columns, kind = found.columns, kind_of(found)
    said = [messages[seq] for seq in columns.seq.tolist()]
    if not made["turns"]:
        made["turns"] = [tokens(encoder, message.text) for message in said]
        made["texts"] = [message.text for message in said]
        made["speakers"] = [message.name or message.author or message.role for message in said]
        made["days"] = ["" if message.at.year == _START.year else str(message.at.date()) for message in said]
        made["sessions"] = columns.session.tolist()
        made["assistant"] = columns.assistant.astype(int).tolist()
        made["kind"] = kind
    parts = weighted_features(found, kind, textual=False)
    first = sorted(order(found, totals(parts))[:DEPTH])
    parts = {name: values[first] for name, values in (parts | weighted_features(found, kind, textual=True)).items()}
    base = totals(parts)
    best = np.lexsort((-found.rows[first], -base))
    names = frozenset(word for speaker in columns.speakers for word in words_of(speaker))
    places = {message.id: row for row, message in enumerate(said)}
    made["questions"].append(
        {
            "category": question.category,
            "text": question.text,
            "tokens": tokens(encoder, without(question.text, names)),
            "rows": found.rows[first][best].tolist(),
            "base": np.round(base[best], 3).tolist(),
            "evidence": [places[turn] for turn in question.turns if turn in places],
        }
    )


def tokens(encoder: Any, text: str) -> list[int]:  # noqa: ANN401 - untyped library
    """Return the token ids of a text, as the encoder reads it."""
    found: list[int] = encoder._tokenizer.encode(text[:CHARACTERS], out_type=int, add_bos=True, add_eos=True)  # noqa: SLF001
    return found


def _fact(text: str, turns: str) -> Question:
    return Question(text.strip(), FACT, _START, tuple(re.findall(r"\d+", turns)), ())


def _meetings(path: Path) -> Iterator[Conversation]:
    """Read QMSum: meetings with questions about passages."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        row = Node(json.loads(line), path, (number,))
        builder = ConversationBuilder(f"meeting {number}", Tallies())
        for place, turn in enumerate(row.field("meeting_transcripts").items()):
            text = _MARK.sub("", turn.text_of("content")).strip()
            speaker = turn.field("speaker").text()
            builder.say(turn, str(place), text, session="meeting", at=_START + place * PAUSE, speaker=speaker)
        for query in row.field("specific_query_list").items():
            spans = query.field("relevant_text_span").raw
            rows = [str(turn) for first, last in _pairs(spans) for turn in range(first, last + 1)]
            if len(rows) <= LONGEST_SPAN:
                builder.ask(query.field("query").text(), "passage", rows)
        yield builder.conversation()


def _pairs(spans: object) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last in spans] if isinstance(spans, list) else []


async def main() -> None:
    """Read the sources and write the lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        made = [
            await lists_of(source, options.keep or Path(temporary))
            for path in options.sources
            for source in read_sources(path)
        ]
    with gzip.open(options.target, "wt", encoding="utf-8") as file:
        json.dump(made, file)


if __name__ == "__main__":
    asyncio.run(main())
