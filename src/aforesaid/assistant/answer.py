"""What the assistant answers, on any platform."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Button:
    """Something to press. Platforms without buttons show the word to type."""

    label: str
    word: str


@dataclass(frozen=True, slots=True)
class File:
    """Something to download."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, and what can be pressed below it."""

    text: str
    buttons: tuple[Button, ...] = ()
    file: File | None = None
    private: bool = False
    """Whether it is for the person who asked alone, also where others read along."""
