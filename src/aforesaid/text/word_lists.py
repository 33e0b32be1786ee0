"""Parses word lists that are written as plain text."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text.split())


def alternatives(text: str) -> str:
    """Return a pattern that matches any word of a list."""
    return "(?:" + "|".join(text.split()) + ")"
