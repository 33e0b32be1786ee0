"""Checks of values and of the arguments of public methods."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args
from unicodedata import category

from aforesaid.errors import InvalidInput, TooLarge, quoted

Role = Literal["user", "assistant", "system", "tool"]

Within = Literal["user", "thread", "session"]
"""Where a read looks: what the user owns, everything in the thread, or one session."""

Category = Literal["schedule", "fact", "task", "preference", "reminder", "other"]

Kind = Literal["fact", "preference", "event", "schedule", "task", "reminder", "relationship", "instruction"]
"""What a memory is. `event`: something dated, past or to come, that does not expire; `schedule`: an appointment;
`instruction`: a standing request to the assistant. The order is that of the outputs of the salience model."""

CategoryOrKind = Literal[
    "schedule", "fact", "task", "preference", "reminder", "other", "event", "relationship", "instruction"
]
"""What a memory that is written by hand can be called: by its category or by its kind."""

MemoryState = Literal["active", "superseded", "deactivated", "quarantined", "expired"]
"""Active; superseded by a newer one; deactivated by a person; quarantined for approval; expired."""

Trust = Literal["stated", "said", "reported"]
"""`stated`: asked to be remembered. `said`: extracted from the user's messages. `reported`: from other people's."""

Timely = Literal["expiry", "reminder", "unseen"]
"""Why a memory is due: it expires, it reminds, or (`unseen`) it was not stated or changed for a long time."""

SessionState = Literal["active", "idle", "closed"]

ComponentStatus = Literal["active", "failing", "initializing"]

AlertKind = Literal["failure", "capacity", "slowness", "errors", "backlog"]
"""A component fails; disk space runs out; calls are slow; calls fail; background work lags behind."""

HitKind = Literal["message", "summary", "memory", "session"]
"""What a search can find."""

SettingValue: TypeAlias = str | int | float | bool | None
"""The type of a setting's value."""

ExportFormat = Literal["auto", "jsonl", "markdown"]
"""How an export is written. `auto`: Markdown if the file's name ends in `.md`, otherwise JSON Lines."""


IDENTIFIER_CHARACTERS: Final = 255
LARGEST: Final = 2**63 - 1
"""The largest integer that every store supports."""
MESSAGE_BYTES: Final = 64 * 1024
QUERY_CHARACTERS: Final = 20_000
"""Maximum length of a search text. A longer one would take seconds and find nothing more."""
SETTING_CHARACTERS: Final = 100_000
"""Maximum length of a setting that is a text."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
EARLIEST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LATEST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The earliest and latest times that can be stored, in microseconds since 1970."""
_ROLES: Final = frozenset(get_args(Role))


def storable(value: object, what: str, field: str | None = None) -> str:
    """Return `value` if every backend can store it unchanged; otherwise raise InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__}", field)
    if "\0" in value:
        position = value.index("\0")
        raise InvalidInput(f"{what} has a NUL character at position {position}; remove it and try again", field)
    # An enum member that is a string too would be stored as one text and hashed as another.
    text = value if type(value) is str else str.__str__(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} has half of a surrogate pair at position {error.start}, which is not valid Unicode; "
            "decode the text with errors='replace' before you pass it",
            field,
        ) from None
    return text


def _is_unicode(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def identifier(value: object, what: str, field: str | None = None) -> str:
    """Return an id as a string; integers, which some platforms use, are converted. Raises InvalidInput."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(at_least(value, -LARGEST, what, field))
    text = storable(value, what, field)
    if not text:
        raise InvalidInput(f"{what} is empty", field)
    if len(text) > IDENTIFIER_CHARACTERS:
        raise TooLarge(f"{what} has {len(text)} characters; at most {IDENTIFIER_CHARACTERS} are allowed", field)
    control = None if text.isprintable() else next((c for c in text if category(c) == "Cc"), None)
    if control is not None:
        raise InvalidInput(f"{what} has the control character U+{ord(control):04X}: {quoted(text)}", field)
    return text


def short_text(value: object, what: str, field: str | None = None) -> str:
    """Return a text of at most 255 characters; unlike an id it may be empty and hold control characters."""
    text = storable(value, what, field)
    if len(text) > IDENTIFIER_CHARACTERS:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {IDENTIFIER_CHARACTERS} are allowed", field)
    return text


def display_name(value: object) -> str | None:
    """Return the name a person showed when they spoke, or None for an empty one."""
    return short_text(value, "the name", "name") or None


def message_text(value: object, limit: int = MESSAGE_BYTES, *, field: str = "text") -> str:
    """Return the text of a message. Raises InvalidInput if it is empty or too long."""
    if type(value) is str and 0 < len(value) * 4 <= limit and "\0" not in value and _is_unicode(value):
        return value  # as most texts are, in one step
    text = storable(value, "the text", field)
    if not text:
        raise InvalidInput("the text is empty", field)
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        raise TooLarge(
            f"the text has {size:,} bytes; at most {limit:,} are allowed (profile key message_bytes)", field, most=limit
        )
    return text


def filled_text(value: object, what: str, field: str) -> str:
    """Return a text that is not blank, such as that of a memory. Raises InvalidInput."""
    text = message_text(value, field=field)
    if not text.strip():
        raise InvalidInput(f"{what} is empty", field)
    return text


def query_text(value: object, most: int = QUERY_CHARACTERS) -> str:
    """Return the text of a query without characters that no message can hold. Of a longer one, the middle is left out.

    What is asked about a long text stands before it or after it.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"the query must be a string, not {type(value).__name__}")
    if len(value) > most:
        value = f"{value[: most // 2]} {value[-(most // 2) :]}"
    return value.encode(errors="ignore").decode().replace("\0", " ")


def file_path(value: object, what: str) -> Path:
    """Return a path that the file system accepts. Raises InvalidInput."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidInput(f"{what} must be a path, not {type(value).__name__}")
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(f"{what} is not a path: {quoted(value)}")
    return Path(text)


def role(value: object) -> Role:
    """Return a valid role. Raises InvalidInput."""
    if type(value) is str and value in _ROLES:
        return cast("Role", value)
    if not isinstance(value, str) or value not in _ROLES:
        raise InvalidInput(f"unknown role {quoted(value)}; use one of {', '.join(sorted(_ROLES))}", "role")
    return cast("Role", str.__str__(value))


def are_message_texts(values: Sequence[object], limit: int) -> bool:
    """Return whether all values are surely texts of messages. Of others, `message_text` looks at each."""
    if {*map(type, values)} != {str}:
        return False
    texts = cast("Sequence[str]", values)
    whole = "".join(texts)
    return all(texts) and len(max(texts, key=len)) * 4 <= limit and "\0" not in whole and _is_unicode(whole)


def are_identifiers(values: Sequence[object]) -> bool:
    """Return whether all values are surely ids. Of others, `identifier` looks at each."""
    if {*map(type, values)} != {str}:
        return False
    texts = cast("Sequence[str]", values)
    return all(texts) and len(max(texts, key=len)) <= IDENTIFIER_CHARACTERS and "".join(texts).isprintable()


def are_roles(values: Sequence[object]) -> bool:
    """Return whether all values are surely roles. Of others, `role` looks at each."""
    return {*map(type, values)} == {str} and _ROLES.issuperset(values)


def microseconds(value: object, what: str, field: str | None = None) -> int:
    """Return a time as microseconds since 1970 in UTC: exact, and the same on every backend."""
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be a datetime, not {type(value).__name__}", field)
    if value.utcoffset() is None:
        raise InvalidInput(f"{what} has no time zone; use datetime.now(UTC) or .replace(tzinfo=…)", field)
    number = (value - _EPOCH) // _MICROSECOND
    if not EARLIEST <= number <= LATEST:
        raise InvalidInput(f"{what} lies outside the years 1 to 9999 in UTC", field)
    return number


def moment(microseconds_since_epoch: int) -> datetime:
    """Return a datetime in UTC: the inverse of `microseconds`."""
    # Twice as fast as making a timedelta of the number, and every message that is read has two times.
    return _EPOCH + microseconds_since_epoch * _MICROSECOND


def at_least(value: object, minimum: int, what: str, field: str | None = None) -> int:
    """Return an integer of at least `minimum`. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{what} must be a whole number, not {type(value).__name__}", field)
    if value < minimum:
        raise InvalidInput(f"{what} must be at least {minimum}, not {quoted(value)}", field)
    return at_most(value, LARGEST, what, field)


def number(value: object, what: str, field: str | None = None) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{what} must be a number, not {type(value).__name__}", field)
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise InvalidInput(f"{what} must be a finite number, not {quoted(value)}", field)
    return found


def setting_value(value: object, what: str) -> SettingValue:
    """Return the value of a setting if every store can hold it: a text, a number, True, False or None."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return at_least(value, -LARGEST, what)
    if isinstance(value, float):
        return number(value, what)
    text = storable(value, what)
    if len(text) > SETTING_CHARACTERS:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {SETTING_CHARACTERS:,} are allowed")
    return text


def at_most(value: int, maximum: int, what: str, field: str | None = None) -> int:
    """Return an integer of at most `maximum`. Raises InvalidInput."""
    if value > maximum:
        raise TooLarge(f"{what} must be at most {maximum:,}", field)
    return int(value)


def now() -> int:
    """Return the time in microseconds since 1970, in UTC."""
    return time.time_ns() // 1000


def beginning(text: str, limit: int) -> str:
    """Return as many characters from the beginning of a text as have at most `limit` bytes."""
    if len(text) * 4 <= limit:
        return text
    encoded = text.encode(errors="surrogatepass")
    return text if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that a text has as JSON; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def did_you_mean(wrong: object, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: a question with the most similar known one, or nothing."""
    close = get_close_matches(str(wrong), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def to_zone(at: datetime, zone: tzinfo | None) -> datetime:
    """Return a time in a time zone; unchanged if the calendar (years 1 to 9999) has no name for it there."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun in the singular or plural. `noun` is in the singular, and regular if no plural."""
    if number == 1:
        return f"{number:,} {noun}"
    if plural is not None:
        return f"{number:,} {plural}"
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") and noun[-2:-1] not in set("aeiou") else f"{noun}s"
    return f"{number:,} {plural}"
