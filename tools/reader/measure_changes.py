"""Measure how changes are settled: two messages of a person, of which the second makes something outdated, or not.

    PYTHONPATH=src python tools/reader/measure_changes.py FILE

Each line of the file is JSON: `language`, `first`, `second`, `kind` (`change` or `same`), and the words that are
`gone`, hold `now`, and `stay`. A change is settled if no active memory of the first message has the words that are
gone, an active one has those that hold now, and those that stay are known as before. A near miss is wrong if a memory
of the first message is no longer active.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measure_values import _folded

import aforesaid

_FIRST = datetime(2026, 9, 1, 18, 30, tzinfo=UTC)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="print what was not settled, or wrongly")
    arguments = parser.parse_args()
    cases = [json.loads(line) for line in arguments.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    found = Counter[str]()
    by_language = Counter[str]()
    async with aforesaid.connect(":memory:", embedder="local", settings={"background": False}) as memory:
        for number, case in enumerate(cases):
            user = memory.user(f"u{number}")
            await user.add("user", case["first"], at=_FIRST)
            await memory.upkeep()
            before = await user.memories()
            await user.add("user", case["second"], at=_FIRST + timedelta(days=24))
            await memory.upkeep()
            everything = await user.memories(active=None)
            after = [each for each in everything if each.active]
            first = min(seq for each in everything for seq in each.sources) if everything else 0
            told = _folded(" ".join(each.text for each in before))
            old = _folded(" ".join(each.text for each in after if first in each.sources and before))
            new = _folded(" ".join(each.text for each in after))
            kind = case["kind"]
            found[kind] += 1
            if kind == "same":
                ended = [each for each in before if not any(each.id == other.id for other in after)]
                wrong = [each for each in ended if not any(each.text in other.text for other in after)]
                found["same: wrong"] += bool(wrong)
                if wrong and arguments.show:
                    print(
                        "WRONG",
                        case["language"],
                        case["first"],
                        "|",
                        case["second"],
                        "|",
                        [each.text for each in wrong],
                    )
                continue
            was_known = all(_folded(words) in told for words in case["gone"])
            is_gone = not any(_folded(words) in old for words in case["gone"])
            is_there = all(_folded(words) in new for words in case["now"])
            stays = all(_folded(words) in new or _folded(words) not in told for words in case["stays"])
            found["change: known before"] += was_known
            found["change: gone"] += is_gone and was_known
            settled = is_gone and is_there and stays
            found["change: settled"] += settled
            found["change: settled and known before"] += settled and was_known
            by_language[case["language"]] += settled and was_known
            if not (settled and was_known) and arguments.show:
                print(
                    "OPEN",
                    case["language"],
                    case["first"],
                    "|",
                    case["second"],
                    "|",
                    case["gone"],
                    case["now"],
                    "known" if was_known else "unknown",
                    [(each.text, each.state) for each in everything],
                )
    print(dict(found), dict(by_language))


if __name__ == "__main__":
    asyncio.run(main())
