"""Prompts as files: loaded once, filled in strictly, known by name and version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from aforesaid.errors import InvalidInput, quoted
from aforesaid.models.prompts.fence import Fenced, quote
from aforesaid.settings import OPERATIONS, Operation

if TYPE_CHECKING:
    from aforesaid.models.chat.completion import Said


Part: TypeAlias = "str | int | date"
"""What can be put into a prompt. A text that is not `Fenced` is escaped on its way in."""

NAMES: Final = (
    "summarize",
    "fold",
    "roll",
    "day",
    "week",
    "history",
    "extract",
    "remember",
    "forget",
    "portrait",
    "route",
    "chat",
)

_HEADER: Final = re.compile(r"version: ([1-9][0-9]*)\noperation: ([a-z]+)\n")
_SECTION: Final = re.compile(r"^=== ([a-z]+) ===\n", re.MULTILINE)
_PLACE: Final = re.compile(r"\$\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, in sections. Most have two: the instructions (`system`) and the input (`user`)."""

    name: str
    number: int
    operation: Operation
    """Which of the configured models it is for."""
    sections: Mapping[str, str]

    @property
    def version(self) -> str:
        """Name and number, as it is stored with what the prompt produced. The number grows with every change."""
        return f"{self.name}/{self.number}"

    def places(self) -> set[str]:
        """Return the names of all places that have to be filled."""
        return {name for text in self.sections.values() for name in _PLACE.findall(text)}

    def render(self, **parts: Part) -> list[Said]:
        """Return what to send to the model. A place that is not filled, or a part without a place, is an error."""
        from aforesaid.models.chat.completion import Said  # noqa: PLC0415 - brings pydantic

        self._check(self.places(), parts)
        if set(self.sections) != {"system", "user"}:
            raise InvalidInput(f"the prompt {self.name} is rendered section by section; it has {_names(self.sections)}")
        return [
            Said("system", _fill(self.sections["system"], parts)),
            Said("user", _fill(self.sections["user"], parts)),
        ]

    def section(self, name: str, /, **parts: Part) -> str:
        if name not in self.sections:
            raise InvalidInput(f"the prompt {self.name} has no section {quoted(name)}; it has {_names(self.sections)}")
        text = self.sections[name]
        self._check(set(_PLACE.findall(text)), parts)
        return _fill(text, parts)

    def _check(self, places: set[str], parts: Mapping[str, Part]) -> None:
        if missing := places - set(parts):
            raise InvalidInput(f"the prompt {self.version} needs {_names(missing)}")
        if unknown := set(parts) - places:
            raise InvalidInput(f"the prompt {self.version} has no place for {_names(unknown)}")


@cache
def load_prompt(name: str) -> Prompt:
    if name not in NAMES:
        raise InvalidInput(f"there is no prompt {quoted(name)}; use one of {', '.join(NAMES)}")
    return read_prompt(name, (files("aforesaid.models.prompts") / "texts" / f"{name}.md").read_text(encoding="utf-8"))


def read_prompt(name: str, text: str) -> Prompt:
    """Read a prompt: `version: N` and `operation: NAME` in the first lines, then sections under `=== name ===`."""
    header = _HEADER.match(text)
    if header is None or header[2] not in OPERATIONS:
        raise InvalidInput(f"the prompt {name} must begin with 'version: 1' and 'operation: …', {_names(OPERATIONS)}")
    before, *rest = _SECTION.split(text[header.end() :])
    if before.strip() or not rest:
        raise InvalidInput(f"the prompt {name} must have its text in sections, each below a line '=== name ==='")
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return Prompt(name, int(header[1]), cast("Operation", header[2]), sections)


def _fill(text: str, parts: Mapping[str, Part]) -> str:
    # In one pass: what looks like a place in a part stays what it is.
    return _PLACE.sub(lambda found: _write(parts[found[1]]), text)


def _write(part: Part) -> str:
    if isinstance(part, Fenced):
        return part
    if isinstance(part, str):
        return quote(part)
    return part.isoformat() if isinstance(part, date) else str(part)


def _names(names: Mapping[str, object] | set[str] | tuple[str, ...]) -> str:
    return ", ".join(sorted(names))
