"""Every error that Aforesaid raises on purpose.

    AforesaidError
    ├── InvalidInput            an argument is invalid (also a ValueError)
    │   ├── TooLarge            a text or a name is over its limit
    │   └── WrongState          it exists, but this cannot be done with it in its present state
    ├── NotFound                an id that does not exist in this scope (also a LookupError)
    ├── ModelError              a model could not be loaded, or its answer is unusable
    │   ├── NoModel             no model is configured for this
    │   ├── ModelUnavailable    it cannot be reached, is overloaded, or did not answer in time
    │   ├── ModelRefused        it rejects the key, the model's name or the request: a configuration error
    │   ├── ModelGarbled        its answer does not match the requested format
    │   └── SpendingLimit       today's token limit is reached
    ├── PlatformError           a request to a chat platform failed
    │   ├── PlatformUnavailable it cannot be reached, or limits the request rate
    │   └── PlatformRefused     it rejects the token, or the bot may not do this
    ├── SourcesChanged          the data was changed by somebody else; read it again and retry
    └── StoreError              the store failed
        ├── StoreUnavailable    it cannot be opened or reached
        │   └── StoreTooNew     it was written by a newer version of Aforesaid
        ├── StoreFailed         the disk below it failed
        ├── StoreFull           the disk is full
        ├── StoreBusy           another process held it for too long
        ├── StoreRefused        it refuses what was asked: missing rights, wrong schema, unsupported feature
        ├── StoreDamaged        the stored data is damaged
        └── StoreClosed         it was used after it was closed

A change that raised was not stored, and the same call can be repeated. (One case cannot be prevented: a disk fails
during a commit and keeps failing, and the process dies before the disk works again. Then the change may have been
stored; a message with an id is recognised when it is sent again.)
Error messages say what happened, to what, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

__all__ = [
    "AforesaidError",
    "InvalidInput",
    "ModelError",
    "ModelGarbled",
    "ModelRefused",
    "ModelUnavailable",
    "NoModel",
    "NotFound",
    "PlatformError",
    "PlatformRefused",
    "PlatformUnavailable",
    "SourcesChanged",
    "SpendingLimit",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreRefused",
    "StoreTooNew",
    "StoreUnavailable",
    "TooLarge",
    "WrongState",
]

_MOST_QUOTED: Final = 80
"""Maximum characters of one quoted value: two of them fit into the 200 characters of input that an error may repeat."""
_MOST_BITS: Final = 256
"""Integers with more bits are described instead of written out: Python refuses to print more than 4,300 digits."""


def quoted(value: object) -> str:
    """Return a value as an error text shows it: its repr, at most 80 characters long. Never raises."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length():,} bits"
    try:
        text = repr(value[: _MOST_QUOTED + 1] if isinstance(value, str | bytes) else value)
    except Exception:  # the repr of somebody else's class, or of a container with a very long number
        return f"a {type(value).__name__}"[:_MOST_QUOTED]
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 1]}…"


class AforesaidError(Exception):
    """The base class: catch this to catch everything that Aforesaid raises on purpose."""


class InvalidInput(AforesaidError, ValueError):
    """An argument is invalid.

    `field` is the name of the argument, if it is known: forms show the message beside the field of that name.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class TooLarge(InvalidInput):
    """A text or a name is over its limit. `most` is the limit in bytes, if it is that of a message."""

    def __init__(self, message: str, field: str | None = None, *, most: int | None = None) -> None:
        super().__init__(message, field)
        self.most = most


class WrongState(InvalidInput):
    """What was named exists, but this cannot be done with it in its present state."""


class NotFound(AforesaidError, LookupError):
    """An id that does not exist in this scope; another user's id looks the same."""


class ModelError(AforesaidError):
    """A model could not be loaded or did not answer as it should."""


class NoModel(ModelError):
    """No model is configured for this operation."""


class ModelUnavailable(ModelError):
    """A model cannot be reached, is overloaded, or did not answer in time.

    `retry_after` is the number of seconds to wait before a retry, if known.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """A model rejects the key, its own name or the request: trying again would not help."""


class ModelGarbled(ModelError):
    """A model's answer does not match the requested format, also after a retry with the validation error."""


class SpendingLimit(ModelError):
    """Today's token limit is reached."""


class PlatformError(AforesaidError):
    """A request to a chat platform failed."""


class PlatformUnavailable(PlatformError):
    """A chat platform cannot be reached, or limits the request rate; a retry may help.

    `retry_after` is the number of seconds to wait, if known.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PlatformRefused(PlatformError):
    """A chat platform rejects the token, or the bot may not do this: trying again would not help."""


class SourcesChanged(AforesaidError):
    """The data that a change was based on was changed by somebody else; nothing was stored."""


Consequence: TypeAlias = Literal["fail over", "retry", "refuse"]
"""What an error of a store leads to. Fail over: messages go to the fallback until the store works again. Retry: the
same call may succeed later. Refuse: the caller gets the error, because it would be the same every time."""


class StoreError(AforesaidError):
    """The store failed."""

    consequence: ClassVar[Consequence] = "refuse"


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""

    consequence: ClassVar[Consequence] = "fail over"


class StoreTooNew(StoreUnavailable):
    """The store was written by a newer version of Aforesaid."""

    consequence: ClassVar[Consequence] = "refuse"


class StoreFailed(StoreError):
    """The disk below the store failed."""

    consequence: ClassVar[Consequence] = "fail over"


class StoreFull(StoreError):
    """No room is left on the device."""

    consequence: ClassVar[Consequence] = "fail over"


class StoreBusy(StoreError):
    """Another process held the store for too long."""

    consequence: ClassVar[Consequence] = "retry"


class StoreRefused(StoreError):
    """The store refuses what was asked: missing rights, a wrong schema, an unsupported feature. The text is its own."""


class StoreDamaged(StoreError):
    """The stored data is damaged; `aforesaid verify` says where."""


class StoreClosed(StoreError):
    """The store was used after it was closed."""
