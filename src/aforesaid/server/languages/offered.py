"""The languages that a server offers, and which of them a request gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from aforesaid.errors import InvalidInput
from aforesaid.server.languages.catalogue import ENGLISH, Language, read_language

_OWN: Final = Path(__file__).parent
_MOST_PREFERENCES: Final = 20


class OfferedLanguages:
    """English, the catalogues of the package, and those of a folder."""

    def __init__(self, default: str | None = None, folder: str | None = None) -> None:
        """Read the catalogues. A file of the folder replaces one of the package with the same name.

        `default` is the language of browsers that have not chosen one; None uses their Accept-Language header.
        Raises `InvalidInput` for an unknown default, a missing folder, or a file that is not a catalogue.
        """
        self.by_code: Mapping[str, Language] = {ENGLISH.code: ENGLISH, **_own(), **_of_folder(folder)}
        self._by_tag = {code.lower(): language for code, language in self.by_code.items()}
        if default is not None and default.lower() not in self._by_tag:
            raise InvalidInput(f"server.language is {default!r}; it must be one of {', '.join(self.by_code)}")
        self._default = default

    def choose(self, chosen: str | None, accepted: str | None) -> Language:
        """Return the language of a request, from its cookie and its Accept-Language header."""
        for code in (chosen, self._default):
            if code and (found := self._by_tag.get(code.lower())):
                return found
        for tag in _preferred(accepted or ""):
            if found := self._by_tag.get(tag) or self._by_tag.get(tag.partition("-")[0]):
                return found
        return ENGLISH


@cache
def _own() -> Mapping[str, Language]:
    return {path.stem: read_language(path) for path in sorted(_OWN.glob("*.toml"))}


def _of_folder(folder: str | None) -> Mapping[str, Language]:
    if folder is None:
        return {}
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise InvalidInput(f"server.languages is {folder}, which is not a folder")
    return {path.stem: read_language(path) for path in sorted(place.glob("*.toml"))}


def _preferred(header: str) -> Iterator[str]:
    """Yield the tags of an Accept-Language header, the preferred first."""
    weighted = []
    for part in header.split(",")[:_MOST_PREFERENCES]:
        tag, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=") or 1)
        except ValueError:
            weight = 0.0
        if tag and weight > 0:
            weighted.append((weight, tag.strip().lower()))
    return (tag for _, tag in sorted(weighted, key=lambda each: -each[0]))
