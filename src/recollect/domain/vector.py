"""Vectors, as the store keeps and compares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from recollect.domain.message import Message


class Unembedded(NamedTuple):
    """A message that an embedder has not seen yet, and the vector of an equal text if there is one."""

    seq: int
    text: str
    known: bytes | None


class VectorRow(NamedTuple):
    """The vector of a message: half-precision numbers in a row."""

    seq: int
    text: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Similar:
    """The messages of a scope that are most similar to a vector."""

    scores: Mapping[int, float]
    """Cosine by sequence number, of the most similar messages and of those that were asked for by name."""
    mean: float
    deviation: float
    """How similar messages of this scope are on the whole."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message and its neighbours in the same session, as far as the scope reaches."""

    message: Message
    before: int | None
    after: int | None
