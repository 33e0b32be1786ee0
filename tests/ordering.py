"""The order of test files: the slowest first, so that no worker is left with a long one when the others are done."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SLOWEST = (
    "benches/test_benches.py",
    "cli/test_commands.py",
    "server/test_described.py",
    "models/test_process_embedder.py",
    "store/test_machine.py",
    "store/test_machine_postgres.py",
    "bots/test_killed.py",
    "torture/test_bots.py",
    "torture/test_bot_growth.py",
    "torture/test_workers_killed.py",
    "project/test_docs.py",
    "mumble/test_voice.py",
    "server/test_serve.py",
    "server/test_mcp.py",
    "api/test_arguments.py",
    "panel/test_browser.py",
    "panel/test_access.py",
    "panel/test_scripts.py",
    "panel/test_room.py",
    "store/test_refusals.py",
    "store/test_search.py",
    "store/test_moving.py",
    "store/test_postgres.py",
    "upkeep/test_workers.py",
    "bots/test_command.py",
    "portability/test_damaged_imports.py",
    "facts/test_salience.py",
    "context/test_ordinary_questions.py",
    "torture/test_api.py",
    "benches/test_speed.py",
    "project/test_examples.py",
)
"""The files that take longest, about 50 to 6 seconds of CPU each, the longest first."""
_PLACES = {TESTS / name: place for place, name in enumerate(SLOWEST)}


def place(item: pytest.Item) -> int:
    """Return the place of a test's file. Files that are not listed keep their order, after the others."""
    return _PLACES.get(item.path, len(SLOWEST))
