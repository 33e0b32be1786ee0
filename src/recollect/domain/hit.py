"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from recollect.domain.message import Message


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. A higher `score` is a better match; scores of two searches do not compare."""

    kind: Literal["message"]
    id: str
    text: str
    score: float
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on."""
    terms: tuple[str, ...]
    """The words of the query that were found in it, as the index writes them."""
    message: Message = field(repr=False)
