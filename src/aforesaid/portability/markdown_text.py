"""Text of people as Markdown that shows it literally, so that it can neither hide nor imitate what is around it."""

from __future__ import annotations

import re
from typing import Final

_INLINE: Final = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|$)         # a backslash that would escape something, or break the line
    | [`*\[\]~]                     # code, emphasis, links and images, struck-out text
    | (?<![^\W_])_ | _(?![^\W_])    # emphasis, but not the underscore of snake_case
    | <(?=[A-Za-z/!?])              # HTML
    | &(?=\#?\w+;)                  # entities
    """,
    re.VERBOSE,
)
_BLOCK_START: Final = frozenset("#>+=|:-")
"""Characters that make the line which they start a heading, a quote, a list, a rule or a table."""
_NUMBER: Final = re.compile(r"(\d{1,9})(?=[.)])")
"""The start of a numbered list."""
_HIDDEN: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction in which the rest of a line is shown."""
_NO_BREAK_SPACE: Final = "\u00a0"
_LINE_BREAK: Final = "  \n"


def inline(text: str) -> str:
    """Return a text as one line, to be used within a line."""
    return _escaped(" ".join(text.split()))


def lines(text: str, indent: str) -> str:
    """Return a text of any number of lines, each after the first with an indent, each with its line break."""
    shown = [_line(line) for line in text.splitlines()]
    while shown and not shown[-1]:
        shown.pop()
    joined = ""
    for number, line in enumerate(shown):
        if number:
            # An empty line ends a paragraph already; a break would be shown as one line more.
            joined += f"{_LINE_BREAK if line and shown[number - 1] else chr(10)}{indent if line else ''}"
        joined += line
    return joined


def _line(line: str) -> str:
    text = line.strip()
    width = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    escaped = f"\\{_escaped(text)}" if text[:1] in _BLOCK_START else _escaped(text)
    if found := _NUMBER.match(text):
        escaped = f"{found[1]}\\{escaped[found.end() :]}"
    # Spaces at the start of a line would make it code, which shows backslashes.
    return f"{_NO_BREAK_SPACE * width}{escaped}" if text else ""


def _escaped(text: str) -> str:
    return _HIDDEN.sub(lambda found: f"\\<U+{ord(found[0]):04X}>", _INLINE.sub(r"\\\g<0>", text))
