"""Read JSON data sets. Every value knows its position, so that an error names the file and the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from aforesaid.domain import checks
from aforesaid.domain.checks import Role
from aforesaid.errors import InvalidInput, quoted


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a JSON file."""

    raw: object
    file: Path
    steps: tuple[str | int, ...] = ()

    def field(self, name: str) -> Node:
        """Return a field of an object; it must be there."""
        found = self.find(name)
        if found is None:
            raise self.damaged(f"has no {quoted(name)}")
        return found

    def find(self, name: str) -> Node | None:
        """Return a field of an object; None when it is missing, null or an empty string."""
        if not isinstance(self.raw, dict):
            raise self.damaged(f"is not an object but {_kind(self.raw)}")
        value = self.raw.get(name)
        return None if value is None or value == "" else Node(value, self.file, (*self.steps, name))

    def items(self) -> Iterator[Node]:
        """Yield the items of a list."""
        if not isinstance(self.raw, list):
            raise self.damaged(f"is not a list but {_kind(self.raw)}")
        return (Node(item, self.file, (*self.steps, number)) for number, item in enumerate(self.raw))

    def fields(self) -> Iterator[tuple[str, Node]]:
        """Yield the fields of an object."""
        if not isinstance(self.raw, dict):
            raise self.damaged(f"is not an object but {_kind(self.raw)}")
        return ((name, Node(value, self.file, (*self.steps, name))) for name, value in self.raw.items())

    def text(self) -> str:
        """Return a string that a store can hold."""
        try:
            return checks.storable(self.raw, "it")
        except InvalidInput as error:
            raise self.damaged(f"is not a text: {error}") from None

    def text_of(self, name: str) -> str:
        """Return a text field, empty when it is missing or null."""
        found = self.find(name)
        return "" if found is None else found.text()

    def words(self) -> str:
        """Return an answer, written as a text, a number, or a list of these."""
        return ", ".join(str(leaf.raw) for leaf in self.leaves() if leaf.raw is not None)

    def words_of(self, *names: str) -> str:
        """Return the words of the first of these fields that is there, empty if none is."""
        return next((found.words() for name in names if (found := self.find(name)) is not None), "")

    def name(self) -> str:
        """Return an id, written as a text or as a whole number."""
        try:
            return checks.identifier(self.raw, "it")
        except InvalidInput as error:
            raise self.damaged(f"is not an id: {error}") from None

    def role(self) -> Role:
        """Return the role of a speaker."""
        try:
            return checks.role(self.raw)
        except InvalidInput as error:
            raise self.damaged(f"is not a role: {error}") from None

    def moment(self, *forms: str, example: str, ignoring: str = r"\A\Z") -> datetime:
        """Return a time written in one of these formats. Text that matches the pattern `ignoring` is skipped."""
        written = re.sub(ignoring, "", self.text()).strip()
        for form in forms:
            try:
                return datetime.strptime(written, form).replace(tzinfo=UTC)
            except ValueError:
                continue
        raise self.damaged(f"is not a time like {example!r}: {quoted(self.raw)}")

    def leaves(self) -> Iterator[Node]:
        """Yield every value that is neither a list nor an object, at any depth."""
        if isinstance(self.raw, dict):
            for _, node in self.fields():
                yield from node.leaves()
        elif isinstance(self.raw, list):
            for node in self.items():
                yield from node.leaves()
        else:
            yield self

    def starts_with(self, **fields: type) -> bool:
        """Return whether this is a list whose first item is an object with these fields, of these types."""
        return isinstance(self.raw, list) and bool(self.raw) and Node(self.raw[0], self.file).has(**fields)

    def has(self, **fields: type) -> bool:
        """Return whether this is an object with these fields, of these types."""
        raw = self.raw
        return isinstance(raw, dict) and all(isinstance(raw.get(name), kind) for name, kind in fields.items())

    def damaged(self, how: str) -> InvalidInput:
        """Return an error that names the file and the position of the damage."""
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps).lstrip(".")
        return InvalidInput(f"{self.file} is damaged: {steps or 'its content'} {how}")


def read_json(path: Path) -> Node:
    """Read a JSON file."""
    value, rest = read_first_value(path)
    if rest is not None:
        raise rest
    return value


def read_first_value(path: Path) -> tuple[Node, InvalidInput | None]:
    """Read the first value of a JSON file. If more data follows, also return an error that says so."""
    text = read_text(path)
    start = len(text) - len(text.lstrip())
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _broken(path, error) from None
    except RecursionError:
        raise InvalidInput(f"{path} is damaged: it is nested too deeply") from None
    rest = text[end:].lstrip()
    if not rest:
        return Node(value, path), None
    return Node(value, path), _broken(path, json.JSONDecodeError("more text follows", text, len(text) - len(rest)))


def read_json_lines(path: Path) -> Node:
    """Read a file with a JSON value in each line, as a list."""
    values = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path} is damaged: line {number}, column {error.colno}: {error.msg}") from None
        except RecursionError:
            raise InvalidInput(f"{path} is damaged: line {number} is nested too deeply") from None
    return Node(values, path)


def read_text(path: Path) -> str:
    """Read a UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is damaged: it is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None


def _broken(path: Path, error: json.JSONDecodeError) -> InvalidInput:
    return InvalidInput(f"{path} is damaged: line {error.lineno}, column {error.colno}: {error.msg}")


def _kind(value: object) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(type(value), "a number")
