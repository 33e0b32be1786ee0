"""Write docs/reference/requirements.md: every promise, with the tests that cover it."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
TARGET = ROOT / "docs/reference/requirements.md"
HEADER = """# Promises and the tests that cover them

Each promise has the tests that are marked with its id (`@pytest.mark.req("A7")`). `make requirements` writes this
page; a test fails when it is out of date, or when a promise has no test. `make prove` breaks the code on purpose and
shows that these tests notice ([how](mutation-tests.md)). Confirmed defects are listed in `tests/requirements.toml`, and
the tests that keep them fixed are marked too (`@pytest.mark.defect("P1")`).
"""
PARTS = {
    "A": "External memory (profile `archive`)",
    "B": "Community memory (profile `community`)",
    "C": "Account memory (profile `account`)",
    "D": "Companion memory (profile `companion`)",
    "E": "Session memory (profile `session`)",
    "G": "What use has shown to be missing",
}


def listed() -> dict[str, Any]:
    """Return the whole list: promises, defects, and the ids that wait for a test."""
    return tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))


def promises() -> dict[str, str]:
    """Return every promise by its id."""
    return dict(listed()["promises"])


def defects() -> dict[str, str]:
    """Return every confirmed defect by its id."""
    return dict(listed()["defects"])


def waiting() -> set[str]:
    """Return the ids that have no test yet."""
    return set(listed()["waiting"])


@cache
def parsed() -> dict[str, ast.Module]:
    """Return the syntax tree of every test file, by its path in the repository."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(TESTS.rglob("test_*.py"))
    }


@cache
def marked(mark: str = "req") -> dict[str, list[str]]:
    """Return the pytest ids of the tests per marked id, read from the test files."""
    found: dict[str, list[str]] = {}
    for path, tree in parsed().items():
        of_all = [each for node in tree.body for each in _of_module(node)]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for promise in _ids([*node.decorator_list, *of_all], mark):
                    found.setdefault(promise, []).append(f"{path}::{node.name}")
    return found


def _of_module(node: ast.stmt) -> list[ast.expr]:
    """Return the marks in `pytestmark`, which apply to all tests of a module."""
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "pytestmark":
        return []
    return node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]


def _ids(marks: list[ast.expr], mark: str) -> Iterator[str]:
    for each in marks:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == f"pytest.mark.{mark}":
            yield from (str(ast.literal_eval(argument)) for argument in each.args)


def page() -> str:
    """Return the text of the page."""
    tests, lines, part = marked(), [HEADER], ""
    for promise, said in promises().items():
        if promise[0] != part:
            part = promise[0]
            lines.append(f"\n## {part}. {PARTS[part]}\n")
        lines.append(f"**{promise}** {said}\n")
        lines += [f"- `{each.removeprefix('tests/')}`" for each in tests.get(promise, ())]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
