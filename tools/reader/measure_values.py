"""Measure what is known after one message: make the memories of labelled messages, each of a person of their own.

    PYTHONPATH=src python tools/reader/measure_values.py FILE...

A file has lines `intent | text` with marked values, as in `marked/`, and the code of its language at the beginning of
its name. Those in `fresh/` were a test once and are training text now: write others to measure. What is spoken has no
question mark and stands in files of its own.

Printed are the share of values whose words stand in a memory or in the portrait, by language and by matter; the share
of messages without a value that became a memory; and how intents were read.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter, defaultdict
from pathlib import Path
from unicodedata import normalize

import aforesaid
from aforesaid.models.reader import INTENTS

MARK = re.compile(r"\[(-?)(other\.)?(-?)([a-z]+):([^\[\]]+)\]")
_UNTOLD = {"when"}
_DULL = re.compile(r"[\W_]+")


def _folded(text: str) -> str:
    return _DULL.sub(" ", normalize("NFKC", text).casefold()).strip()


def _read(paths: list[Path]) -> list[tuple[str, str, str, list[tuple[str, str, str]]]]:
    found: list[tuple[str, str, str, list[tuple[str, str, str]]]] = []
    for path in paths:
        language = re.match("[a-z]+", path.name)[0]  # type: ignore[index]
        for line in path.read_text(encoding="utf-8").splitlines():
            intent, separator, marked = line.partition(" | ")
            if not separator or intent not in INTENTS:
                continue
            values = [
                (minus or past, f"{other}{slot}", words)
                for minus, other, past, slot, words in MARK.findall(marked)
                if slot not in _UNTOLD
            ]
            found.append((language, intent, MARK.sub(r"\5", marked), values))
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", type=int, default=0, help="how many missed values and false memories to print")
    arguments = parser.parse_args()
    rows = _read(arguments.files)
    known, asked, false = (
        defaultdict[str, list[int]](list),
        defaultdict[str, list[int]](list),
        defaultdict[str, list[int]](list),
    )
    matters, values_known = defaultdict[str, list[int]](list), list[int]()
    shown = Counter[str]()
    async with aforesaid.connect(":memory:", embedder="local", settings={"background": False}) as memory:
        for number, (_, _, text, _) in enumerate(rows):
            await memory.user(f"u{number}").add("user", text)
        await memory.upkeep()
        wants = [
            each
            for first in range(0, len(rows), 64)
            for each in await memory.intents([row[2] for row in rows[first : first + 64]])
        ]
        for number, (language, intent, text, values) in enumerate(rows):
            user = memory.user(f"u{number}")
            made = [each for each in await user.memories(active=None) if each.state != "quarantined"]
            told = _folded(" ".join([*(each.text for each in made), await user.portrait() or ""]))
            in_values = _folded(" ".join(each.value or "" for each in made))
            best = wants[number].best
            asked[language].append((best == "ask") == (intent == "ask"))
            asked["intent"].append(best == intent)
            for over, matter, words in values:
                is_known = _folded(words) in told
                known[language].append(is_known)
                matters[("-" if over else "") + matter].append(is_known)
                values_known.append(_folded(words) in in_values)
                if not is_known and shown["missed"] < arguments.show:
                    shown["missed"] += 1
                    print("missed", language, matter, repr(words), "|", text, "|", [each.text for each in made])
            if not values and intent not in {"remind", "request", "forget"}:
                false[language].append(bool(made))
                if made and shown["false"] < arguments.show:
                    shown["false"] += 1
                    print("false", language, intent, text, "|", [(each.text, each.extractor) for each in made])
    everything = [each for found in known.values() for each in found]
    print(f"values known {_share(everything)} of {len(everything)}; as values of their own {_share(values_known)}")
    print("by language", {each: _share(found) for each, found in sorted(known.items())})
    print("by matter", {each: f"{_share(found)} of {len(found)}" for each, found in sorted(matters.items())})
    empty = [each for found in false.values() for each in found]
    print(
        f"memories of messages that tell nothing {_share(empty)} of {len(empty)}",
        {each: _share(found) for each, found in sorted(false.items())},
    )
    questions = [each for name, found in asked.items() if name != "intent" for each in found]
    print(
        f"intents {_share(asked['intent'])}; questions {_share(questions)}",
        {each: _share(found) for each, found in sorted(asked.items())},
    )


def _share(found: list[int]) -> str:
    return f"{100 * sum(found) / max(len(found), 1):.1f}"


if __name__ == "__main__":
    asyncio.run(main())
