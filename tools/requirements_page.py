"""Write docs/reference/requirements.md: every promise, and the tests that hold it up."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
TARGET = ROOT / "docs/reference/requirements.md"
HEADER = """# What is promised, and which tests hold it up

Each line is a promise, with every test that is marked with its id (`@pytest.mark.req("A7")`). `make requirements`
writes this page; a test fails when it is out of date, or when a promise has no test. `make prove` breaks the code on
purpose and shows that these tests notice ([how](proofs.md)).
"""
PARTS = {
    "A": "External memory (profile `archive`)",
    "B": "Community memory (profile `community`)",
    "C": "Account memory (profile `account`)",
    "D": "Companion memory (profile `companion`)",
    "E": "Session memory (profile `session`)",
}


def promises() -> dict[str, str]:
    """Return every promise by its id."""
    return dict(tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))["promises"])


def marked() -> dict[str, list[str]]:
    """Return which tests are marked with which id, read from the tests themselves, as pytest calls them."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for promise in _ids(node):
                    found.setdefault(promise, []).append(f"{path.relative_to(ROOT).as_posix()}::{node.name}")
    return found


def _ids(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.req":
            yield from (str(ast.literal_eval(argument)) for argument in mark.args)


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
