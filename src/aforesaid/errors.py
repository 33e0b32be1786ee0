"""Every error that Aforesaid raises on purpose.

    AforesaidError
    ├── InvalidInput            what the caller passed cannot be accepted (also a ValueError)
    │   └── TooLarge            a text or a name is over its limit
    ├── NotFound                an id that does not exist in this scope (also a LookupError)
    ├── ModelError              a model could not be loaded or did not answer as it should
    │   ├── NoModel             no model is configured for this
    │   ├── ModelUnavailable    it cannot be reached, is overloaded, or did not answer in time
    │   ├── ModelRefused        it rejects the key, the model's name or the request: the configuration is at fault
    │   ├── ModelGarbled        what it wrote does not fit what was asked for
    │   └── SpendingLimit       the limit of tokens for today is reached
    ├── PlatformError           a chat platform did not do what a bot asked of it
    │   ├── PlatformUnavailable it cannot be reached, or wants to be asked less often
    │   └── PlatformRefused     it rejects the token, or the bot may not do this
    ├── SourcesChanged          a change set no longer fits what is stored; read again and retry
    └── StoreError              the store could not do what was asked
        ├── StoreUnavailable    it cannot be opened or reached
        │   └── StoreTooNew     it was written by a newer version of Aforesaid
        ├── StoreBusy           another process held it for too long
        ├── StoreFull           no room is left on the device
        ├── StoreDamaged        what is on disk contradicts itself
        └── StoreClosed         it was used after it was closed

A change that raised was not stored: nothing of it is visible, and the same call can be made again. (One exception is
beyond anybody's reach: a disk that fails during a commit, goes on failing, and a process that dies before it works
again. Then the change may turn out to be there; a message that has an id is recognised when it is sent again.)
Messages say what happened, to what, and what to do next.
"""

from __future__ import annotations

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
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "TooLarge",
]


class AforesaidError(Exception):
    """The root of the tree: catch this to catch everything Aforesaid raises on purpose."""


class InvalidInput(AforesaidError, ValueError):
    """What the caller passed cannot be accepted."""


class TooLarge(InvalidInput):
    """A text or a name is over its limit."""


class NotFound(AforesaidError, LookupError):
    """An id that does not exist in this scope; another user's id looks the same."""


class ModelError(AforesaidError):
    """A model could not be loaded or did not answer as it should."""


class NoModel(ModelError):
    """No model is configured for this operation."""


class ModelUnavailable(ModelError):
    """A model cannot be reached, is overloaded, or did not answer in time.

    `retry_after` says in how many seconds another try may help, where that is known.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """A model rejects the key, its own name or the request: trying again would not help."""


class ModelGarbled(ModelError):
    """What a model wrote does not fit what was asked for, also after it was told so."""


class SpendingLimit(ModelError):
    """The limit of tokens for today is reached."""


class PlatformError(AforesaidError):
    """A chat platform did not do what a bot asked of it."""


class PlatformUnavailable(PlatformError):
    """A chat platform cannot be reached, or wants to be asked less often: another try may help.

    `retry_after` says in how many seconds, where that is known.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PlatformRefused(PlatformError):
    """A chat platform rejects the token, or the bot may not do this: trying again would not help."""


class SourcesChanged(AforesaidError):
    """A change set was planned on a state that is no longer there; nothing of it was stored."""


class StoreError(AforesaidError):
    """The store could not do what was asked."""


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""


class StoreTooNew(StoreUnavailable):
    """The store was written by a newer version of Aforesaid."""


class StoreBusy(StoreError):
    """Another process held the store for too long."""


class StoreFull(StoreError):
    """No room is left on the device."""


class StoreDamaged(StoreError):
    """What is on disk contradicts itself; `aforesaid verify` says where."""


class StoreClosed(StoreError):
    """The store was used after it was closed."""
