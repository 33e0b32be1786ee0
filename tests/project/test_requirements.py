"""Every promise has a test, or waits in a list that only shrinks."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent.parent
LIST = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))
PROMISES: dict[str, str] = LIST["promises"]
WAITING: list[str] = LIST["waiting"]["ids"]


def marked() -> dict[str, list[str]]:
    """Return which tests are marked with which id, read from the tests themselves."""
    found: dict[str, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.req":
                        for argument in mark.args:
                            found.setdefault(ast.literal_eval(argument), []).append(f"{path.name}::{node.name}")
    return found


def test_the_list_is_complete() -> None:
    counts = {"A": 18, "B": 16, "C": 20, "D": 15, "E": 9}
    expected = [f"{letter}{number}" for letter, count in counts.items() for number in range(1, count + 1)]
    assert list(PROMISES) == expected


def test_the_waiting_list_only_shrinks() -> None:
    assert len(WAITING) <= 67


def test_every_promise_has_a_marked_test_or_waits() -> None:
    tests = marked()
    assert set(tests) <= set(PROMISES), "a test is marked with an unknown id"
    assert set(WAITING) <= set(PROMISES)
    missing = [promise for promise in PROMISES if promise not in tests and promise not in WAITING]
    assert not missing
    done = [promise for promise in WAITING if promise in tests]
    assert not done, "these have tests now: take them off the waiting list"
