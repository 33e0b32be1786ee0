"""Which conversations a model is trained on, and which it is measured on."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

OWN: Final = "transcripts"
TRAINED: Final = frozenset({OWN, "FriendsQA", "QMSum"})
"""Data sets that may be trained on: the project's own, Apache-2.0, MIT. All others are measured only."""
FOLDS: Final = 3
"""Parts that are left out in turn. The number itself means that none is left out."""
MEASURED: Final = -1
_TEST: Final = Path(__file__).parents[2] / "bench" / "conversations" / "test-part.txt"


def part_of(source: str, conversation: str) -> int:
    """Return the part in which a conversation is left out, or MEASURED if it is never trained on."""
    if source not in TRAINED or (source == OWN and conversation in test_part()):
        return MEASURED
    return int(hashlib.sha256(conversation.encode()).hexdigest(), 16) % FOLDS


@cache
def test_part() -> frozenset[str]:
    """Return the ids of the project's conversations that are never trained on."""
    return frozenset(_TEST.read_text(encoding="utf-8").split())


def read_lists(folder: Path) -> list[dict[str, Any]]:
    """Return the conversations in the files that `lists.py` wrote, with the name of their source."""
    found = []
    for file in sorted(folder.glob("*.json.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            sources = json.load(opened)
        found += [{"source": source["name"], **made} for source in sources for made in source["conversations"]]
    return found
