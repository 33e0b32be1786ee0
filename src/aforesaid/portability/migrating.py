"""Copy a store to another one, and verify the copy."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from aforesaid.domain.message import Message
from aforesaid.domain.transfer import Row
from aforesaid.errors import AforesaidError, StoreDamaged, quoted
from aforesaid.portability.attachment_copy import AttachmentCopy, attachments_named_by
from aforesaid.portability.row_importer import NAMES, RowImporter
from aforesaid.store import Progress, Store, questions

if TYPE_CHECKING:
    from hashlib import blake2b as Hash  # noqa: N812 - the type of a running sum


@dataclass(frozen=True, slots=True)
class Migrated:
    """The result of a migration."""

    rows: dict[str, int]
    """Number of rows by kind."""
    new: dict[str, int]
    """Number of rows that were not in the target before, by kind."""
    attachments: int
    """Number of attachments that were copied."""
    lost: tuple[str, ...]
    """Hashes that messages name, but whose bytes the source does not have, or has damaged."""
    compared: bool
    """Whether the hashes of all messages, in order, were compared afterwards: only if the target was empty."""


class _Tally:
    """Counts the rows of a dump, and computes a checksum over the message hashes of each space in order."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.hashes: set[str] = set()
        """Hashes of the attachments that messages name."""
        self._sums: dict[str, Hash] = {}

    def count(self, page: Sequence[Row]) -> None:
        self.hashes.update(attachments_named_by(page))
        for row in page:
            self.rows[NAMES[type(row)]] += 1
            if isinstance(row, Message):
                self._sums.setdefault(row.space, blake2b(digest_size=16)).update(row.hash)

    @property
    def sums(self) -> dict[str, str]:
        return {space: running.hexdigest() for space, running in self._sums.items()}


async def migrate(
    source: Store,
    target: Store,
    attachments: AttachmentCopy,
    *,
    vectors: bool = True,
    progress: Progress | None = None,
) -> Migrated:
    """Copy everything from one store to another, with the bytes of attachments. Raises if the copy differs."""
    await asyncio.to_thread(attachments.check, await source.read(questions.AttachmentHashes()))
    was_empty = (await target.read(questions.Totals())).messages == 0
    total = (await source.read(questions.Totals())).messages
    refused: list[str] = []

    def refuse(row: Row, _: str, error: AforesaidError) -> None:
        refused.append(f"{NAMES[type(row)]}: {error}")

    intake, sent = RowImporter(target, refuse), _Tally()
    async for page in source.dump(vectors=vectors):
        sent.count(page)
        await intake.take(page)
        if progress is not None:
            progress("moving", sent.rows["message"], max(total, sent.rows["message"]))
    await intake.finish()
    if refused:
        raise StoreDamaged(f"{len(refused)} rows could not be copied; the first: {refused[0]}")
    if intake.seen != sent.rows:
        raise StoreDamaged(f"{dict(sent.rows)} rows were sent, but {dict(intake.seen)} arrived")
    if was_empty:
        await _compare(sent, target.dump(), progress)
    copied, lost = await attachments.copy(sent.hashes)
    return Migrated(dict(sent.rows), dict(+intake.fresh), copied, lost, was_empty)


async def _compare(sent: _Tally, dump: AsyncIterator[Sequence[Row]], progress: Progress | None) -> None:
    arrived = _Tally()
    async for page in dump:
        arrived.count(page)
        if progress is not None:
            progress("comparing", arrived.rows["message"], sent.rows["message"])
    for kind, count in sent.rows.items():
        if kind != "vector" and arrived.rows[kind] != count:
            raise StoreDamaged(f"{count:,} rows of the kind {kind} were sent, but {arrived.rows[kind]:,} arrived")
    if arrived.sums != sent.sums:
        wrong = [space for space, total in sent.sums.items() if arrived.sums.get(space) != total]
        raise StoreDamaged(f"the messages of the space {quoted(wrong[0])} did not arrive as they were sent")
