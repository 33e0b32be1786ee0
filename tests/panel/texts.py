"""The texts of the panel: those in templates and those in Python code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from jinja2.ext import extract_from_ast

import aforesaid.server
from aforesaid.server.pages import environment

SERVER: Final = Path(aforesaid.server.__file__).parent
TEMPLATES: Final = SERVER / "panel" / "templates"
_FUNCTIONS: Final = {"translate", "plural", "N_"}


class Text(NamedTuple):
    """A text of the panel, and the file it is in."""

    file: str
    english: str
    counted: bool


def texts() -> Iterator[Text]:
    """Yield every text that is looked up in the catalogues."""
    for path in sorted(TEMPLATES.rglob("*.html")):
        yield from _in_template(path)
    for path in sorted(SERVER.rglob("*.py")):
        yield from _in_module(path)


def _in_template(path: Path) -> Iterator[Text]:
    name = path.relative_to(TEMPLATES).as_posix()
    tree = environment.parse(path.read_text(encoding="utf-8"))
    for _, function, found in extract_from_ast(tree, gettext_functions=("_", "_n"), babel_style=False):
        english = found[0] if isinstance(found, tuple) else found
        if english is not None:
            yield Text(name, english, function == "_n")


def _in_module(path: Path) -> Iterator[Text]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Name):
            continue
        first = node.args[0]
        if node.func.id in _FUNCTIONS and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield Text(path.relative_to(SERVER).as_posix(), first.value, node.func.id == "plural")
