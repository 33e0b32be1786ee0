"""Answers of the assistant, independent of the platform."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Button:
    """A button. Platforms without buttons show the word to type."""

    label: str
    word: str


@dataclass(frozen=True, slots=True)
class File:
    """A file to download."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A text with optional buttons and an optional file."""

    text: str
    buttons: tuple[Button, ...] = ()
    file: File | None = None
    private: bool = False
    """Whether only the person who asked may read it, also in a group."""
