"""The texts of the panel: those in templates and those in Python code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from jinja2.ext import extract_from_ast

import aforesaid.server
from aforesaid.server.problems import environment

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


_MARKUP: Final = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<!--.*?-->", re.DOTALL)
_SHOWN_ATTRIBUTES: Final = re.compile(r'\b(?:aria-label|title|placeholder|alt|data-sure|data-of)="([^"]*)"')
_LOOSE_ATTRIBUTE: Final = re.compile(r"""[\w-]+=(?:'[^']*'|"[^"]*")""")
"""Attributes that a block fills into a tag of another template."""
_TAG: Final = re.compile(r"<[^>]*>")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_UNTRANSLATED: Final = frozenset({"Aforesaid", "ms", "min", "lt", "gt", "amp", "nbsp", "UTC"})
"""Words that are the same in every language."""


def unwrapped(source: str) -> list[str]:
    """Return the words of a template that are shown as they are: outside of expressions, tags and code."""
    lexed = [(kind, value) for _, kind, value in environment.lex(source)]
    # Expressions and statements become a mark that holds no words, wherever they stand.
    pieces, inside = [], False
    for kind, value in lexed:
        if kind in {"variable_begin", "block_begin"}:
            inside = True
            pieces.append("\0")
        elif kind in {"variable_end", "block_end"}:
            inside = False
        elif kind == "data" and not inside:
            pieces.append(value)
    text = _MARKUP.sub(" ", "".join(pieces))
    shown = [_LOOSE_ATTRIBUTE.sub(" ", _TAG.sub(" ", text)), *_SHOWN_ATTRIBUTES.findall(text)]
    return [word for part in shown for word in _WORD.findall(part) if word not in _UNTRANSLATED]
