"""What the errors of databases and file systems mean: tables of rules, which the stores apply and the docs print."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aforesaid.errors import AforesaidError, StoreError, StoreFailed, StoreFull, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Rule:
    """Some errors of a library, and the error of ours that they become."""

    errors: str
    """Which errors, in the words of the library's documentation."""
    applies: Callable[[BaseException], bool]
    becomes: type[AforesaidError]
    advice: str
    """What to do, added to the message. Empty where the message says all."""

    @property
    def consequence(self) -> str:
        """What it leads to: fail over, retry or refuse."""
        return self.becomes.consequence if issubclass(self.becomes, StoreError) else "refuse"


def rule_for(error: BaseException, rules: Sequence[Rule]) -> Rule:
    """Return the first rule that applies. The last one of each table applies to everything."""
    return next(rule for rule in rules if rule.applies(error))


def of(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    """Make a condition: the error is of one of these classes."""
    return lambda error: isinstance(error, kinds)


def numbered(*numbers: int) -> Callable[[BaseException], bool]:
    """Make a condition: the error is one of the operating system with one of these numbers."""
    return lambda error: isinstance(error, OSError) and error.errno in numbers


FILE_RULES: Final = (
    Rule("ENOSPC, EDQUOT", numbered(errno.ENOSPC, errno.EDQUOT), StoreFull, "free some space and try again"),
    Rule(
        "EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ELOOP",
        numbered(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
        StoreUnavailable,
        "check the folder and its rights",
    ),
    Rule("every other error of the operating system", of(OSError), StoreFailed, "the disk failed"),
)
"""What errors of the operating system mean."""
