"""Copy the bytes of attachments between stores, and between a store and the folder beside an export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aforesaid.domain.message import Message
from aforesaid.domain.transfer import Row
from aforesaid.errors import NotFound, StoreDamaged
from aforesaid.store.attachments import Attachments


def attachments_named_by(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the hashes of the attachments that messages among the rows name."""
    for row in rows:
        if isinstance(row, Message) and row.details is not None:
            yield from (part.hash for part in row.parts if part.hash is not None)


class AttachmentCopy:
    """Copies the bytes of attachments from one store to another, one by one."""

    def __init__(self, sources: Sequence[Attachments], target: Attachments) -> None:
        """Copy from the first of the sources that has them."""
        self._sources = sources
        self._target = target

    def check(self, hashes: Iterable[str]) -> None:
        """Raise StoreRefused if there are bytes to copy and the target cannot store any."""
        if any(self._source(name) is not None for name in hashes):
            self._target.refuse()

    async def copy(self, hashes: Iterable[str]) -> tuple[int, tuple[str, ...]]:
        """Copy bytes by their hashes; return how many are new, and the hashes of those that could not be read."""
        new = 0
        lost: list[str] = []
        for name in sorted(hashes):
            source = self._source(name)
            try:
                if source is None:
                    lost.append(name)
                elif source.folder is None or source.folder != self._target.folder:
                    new += await self._target.put(name, await source.read(name))
            except (StoreDamaged, NotFound):
                lost.append(name)
        return new, tuple(lost)

    def missing(self, hashes: Iterable[str]) -> tuple[str, ...]:
        """Return the hashes of those that no source has."""
        return tuple(name for name in sorted(hashes) if self._source(name) is None)

    def _source(self, name: str) -> Attachments | None:
        return next((each for each in self._sources if each.has(name)), None)
