"""Parses word lists that are written as plain text."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text.split())


def word_list(text: str) -> list[str]:
    """Return the words of a list, in its order."""
    return text.split()


def alternatives(text: str) -> str:
    """Return a pattern that matches any word of a list."""
    return "(?:" + "|".join(text.split()) + ")"
