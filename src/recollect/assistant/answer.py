"""What a command answers, on any platform."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Button:
    """Something to press. Platforms without buttons show the word to type."""

    label: str
    word: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, and what can be pressed below it."""

    text: str
    buttons: tuple[Button, ...] = ()
