"""Finding out what a file is."""

from __future__ import annotations

from typing import Final

from recollect.errors import InvalidInput
from recollect.portability.formats import recollect
from recollect.portability.items import Reader
from recollect.portability.sources import Source

READERS: Final[dict[str, Reader]] = {
    "recollect": recollect.read,
}
"""Every format that can be taken in, by its name."""


def choose(source: Source, wanted: str = "auto") -> tuple[str, Reader]:
    """Return the name and the reader of a format: the one that is asked for, or the one that the file has."""
    if wanted != "auto":
        if wanted not in READERS:
            raise InvalidInput(f"unknown format {wanted!r}; use auto or one of {', '.join(READERS)}")
        return wanted, READERS[wanted]
    name = _sniffed(source)
    return name, READERS[name]


def _sniffed(source: Source) -> str:
    head = source.head(source.names[0])
    if b'"recollect"' in head[:200]:
        return "recollect"
    raise InvalidInput(f"{source.path} is in no format that is known here; name one with --format")
