"""Values that configuration keys can have besides texts and numbers: secrets, and models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WITHOUT: Final = "none"
"""At the end of a chain: continue without a model."""


class Secret(str):
    """A string that is not printed by accident, in logs, tracebacks or `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, slots=True)
class Choice:
    """One model of one provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"
