"""What every question says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from aforesaid.domain.scope import Scope

Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105 - the usual name would say less


class Question(Generic[Answer]):
    """Something asked of a store, about all spaces unless it says otherwise."""

    __slots__ = ()
    needs_store: ClassVar[bool] = False
    """True for those who work on what is stored: while a store cannot be reached, nothing else may answer them."""

    @property
    def within_space(self) -> str | None:
        """The space that the answer comes from; None for all of them."""
        return None

    @property
    def short(self) -> bool:
        """Whether the answer takes so little time that several may be read in one go."""
        return False


@dataclass(frozen=True, slots=True)
class OfScope(Question[Answer]):
    """A question about what a scope holds."""

    scope: Scope

    @property
    def within_space(self) -> str:
        """The scope's space."""
        return self.scope.space


@dataclass(frozen=True, slots=True)
class OfScopeShort(OfScope[Answer]):
    """A question about a scope whose answer is short."""

    @property
    def short(self) -> bool:
        """True: the answer takes little time."""
        return True


@dataclass(frozen=True, slots=True)
class OfSpace(Question[Answer]):
    """A question about a whole space."""

    space: str

    @property
    def within_space(self) -> str:
        """The space."""
        return self.space
