"""Read JSON objects from other programs: every field is validated, and errors name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from aforesaid.domain import checks
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import InvalidInput, quoted

T = TypeVar("T")


class Fields:
    """The fields of one JSON object."""

    def __init__(self, values: object, what: str = "the entry") -> None:
        """Wrap an object. Raises InvalidInput if it is none."""
        if not isinstance(values, dict):
            raise InvalidInput(f"{what} must be an object, not {_kind(values)}")
        self._values: Mapping[str, Any] = values

    def has(self, name: str) -> bool:
        """Return whether a field is there and is not null."""
        return self._values.get(name) is not None

    def raw(self, name: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return a field as it is; None where it is missing."""
        return self._values.get(name)

    def raw_all(self) -> Mapping[str, Any]:
        """Return all fields as they are."""
        return self._values

    def real(self, name: str) -> float:
        """Return a number."""
        return checks.number(self.needed(name), name)

    def needed(self, name: str) -> Any:  # noqa: ANN401
        """Return a field that must be there."""
        if name not in self._values:
            raise InvalidInput(f"{name} is missing")
        return self._values[name]

    def text(self, name: str) -> str:
        """Return a string that every store can hold."""
        return checks.storable(self.needed(name), name)

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None."""
        return self.text(name) if self.has(name) else None

    def name(self, name: str) -> str:
        """Return an id of a user, a thread, a space."""
        return checks.identifier(self.needed(name), name)

    def number(self, name: str, least: int = 0) -> int:
        """Return a whole number."""
        return checks.at_least(self.needed(name), least, name)

    def optional_number(self, name: str, least: int = 0) -> int | None:
        """Return a whole number, or None."""
        return self.number(name, least) if self.has(name) else None

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self.needed(name)
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be true or false, not {_kind(value)}")
        return value

    def moment(self, name: str) -> datetime:
        """Return a time in ISO 8601 format with a time zone."""
        return as_moment(self.needed(name), name)

    def optional_moment(self, name: str) -> datetime | None:
        """Return a time, or None."""
        return self.moment(name) if self.has(name) else None

    def day(self, name: str) -> date:
        """Return a date in ISO 8601 format."""
        try:
            return date.fromisoformat(self.text(name))
        except ValueError:
            raise InvalidInput(f"{name} is not a day: {quoted(self.raw(name))}") from None

    def word(self, name: str, known: Sequence[T]) -> T:
        """Return one of the allowed values."""
        value = self.needed(name)
        for word in known:
            if value == word:
                return word
        raise InvalidInput(f"{name} is {quoted(value)}; it must be one of {', '.join(map(str, known))}")

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        return tuple(checks.at_least(each, 1, name) for each in self.items(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(checks.storable(each, name) for each in self.items(name))

    def items(self, name: str) -> list[Any]:
        """Return a list; an empty one where it is missing."""
        value = self.raw(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidInput(f"{name} must be a list, not {_kind(value)}")
        return value

    def blob(self, name: str) -> bytes:
        """Return bytes written as hexadecimal digits."""
        try:
            return bytes.fromhex(self.text(name))
        except ValueError:
            raise InvalidInput(f"{name} must be hexadecimal digits") from None

    def seconds(self, name: str) -> timedelta:
        """Return a duration in seconds."""
        number = checks.number(self.needed(name), name)
        try:
            return timedelta(seconds=number)
        except OverflowError:
            raise InvalidInput(f"{name} is too long: {number}") from None


def somebody(user: str, space: str, thread: str) -> Scope:
    """Return the scope of an imported message. Raises InvalidInput for a reserved user id."""
    if user == EVERYBODY:
        raise InvalidInput(f"{EVERYBODY!r} cannot be a user id: it means all users of a space")
    return Scope.of(user, space, thread)


def as_moment(value: object, name: str) -> datetime:
    """Return a time in ISO 8601 format with a time zone. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a time in ISO form, not {_kind(value)}")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{name} is not a time in ISO form: {quoted(value[:40])}") from None
    return checks.moment(checks.microseconds(moment, name))


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
