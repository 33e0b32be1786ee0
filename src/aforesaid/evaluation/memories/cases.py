"""Conversations, and what there is to learn from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aforesaid.domain.words import Category
from aforesaid.evaluation.conversation import Question, Turn


@dataclass(frozen=True, slots=True)
class Label:
    """Something that should be learned."""

    turn: str
    """The turn that says it."""
    text: str
    """As people put it; empty where only the turn is known."""
    category: Category | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One user's memory."""

    id: str
    turns: tuple[Turn, ...]
    labels: tuple[Label, ...]
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseSet:
    """Labelled conversations of one format that lie together."""

    format: str
    path: Path
    cases: tuple[Case, ...]
