"""Conversations with labels: the facts that should be extracted from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aforesaid.domain.checks import Category
from evaluation.conversation import Question, Turn


@dataclass(frozen=True, slots=True)
class Label:
    """A fact that should be extracted."""

    turn: str
    """The id of the turn that states it."""
    text: str
    """The fact in the words of an annotator; empty if only the turn is labelled."""
    category: Category | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation with its labels, stored as one user's memory."""

    id: str
    turns: tuple[Turn, ...]
    labels: tuple[Label, ...]
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseSet:
    """The labelled conversations of one data set."""

    format: str
    path: Path
    cases: tuple[Case, ...]
