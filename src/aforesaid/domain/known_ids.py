"""One spelling for each id: ids of users, spaces, threads and sessions that look the same are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unicodedata import normalize

from aforesaid.domain.scope import chat_name


def regular(text: str) -> str:
    """Return an id without surrounding white space and in Unicode's composed form (NFC).

    Phones and file systems write "Zo\u00eb" with one character or with two; both are one person.
    """
    return text.strip() if text.isascii() else normalize("NFC", text).strip()


def is_regular(text: str) -> bool:
    """Tell whether an id is spelled as `regular` spells it."""
    return regular(text) == text


class KnownIds:
    """Gives ids their regular spelling, except those that a store already has in another one.

    Stores of older versions have ids in any spelling. They stay reachable exactly as they are.
    """

    def __init__(self, irregular: Iterable[str] = ()) -> None:
        found = frozenset(irregular)
        self._irregular = found.union(map(chat_name, found))

    def spelled(self, value: Any) -> Any:  # noqa: ANN401 - what is not a text is returned as it is
        """Return an id as the store spells it."""
        if not isinstance(value, str) or value in self._irregular:
            return value
        return regular(value)
