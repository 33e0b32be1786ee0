"""Copies a store into another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from aforesaid.domain.transfer import Row
from aforesaid.errors import AforesaidError
from aforesaid.store import Store
from aforesaid.store.dumping import RowImporter


async def copy(source: AsyncIterator[Sequence[Row]], target: Store) -> RowImporter:
    """Store all rows of a dump in a store. Raises if a row cannot be stored."""

    def refuse(_: Row, __: str, error: AforesaidError) -> None:
        raise error

    intake = RowImporter(target, refuse)
    async for page in source:
        await intake.take(page)
    await intake.finish()
    return intake
