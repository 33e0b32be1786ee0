"""Stores receipts of contexts, in the background: nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from aforesaid.domain.change import KeepReceipt
from aforesaid.domain.checks import moment, now
from aforesaid.domain.context_receipt import ContextReceipt, new_receipt_id
from aforesaid.domain.scope import Scope
from aforesaid.errors import AforesaidError
from aforesaid.settings import Receipts
from aforesaid.store import Store

if TYPE_CHECKING:
    from aforesaid.context import Context

_log: Final = logging.getLogger("aforesaid.receipts")

_TOGETHER: Final = 100
"""Receipts stored in one transaction."""
_MOST_WAITING: Final = 10_000
"""Receipts that wait to be stored, about a kilobyte each. More are dropped, because the store cannot keep up."""


class ReceiptKeeper:
    """Stores the receipts of one open memory."""

    def __init__(self, store: Store, settings: Receipts, profile: str) -> None:
        self._store = store
        self.on: Final = settings.days > 0
        """Whether receipts are stored at all."""
        self.every_context: Final = self.on and settings.contexts
        """Whether each call of `context` stores one."""
        self.profile: Final = profile
        """The name of the memory's profile."""
        self._waiting: deque[ContextReceipt] = deque()
        self._task: asyncio.Task[None] | None = None

    def receipt_of(self, scope: Scope, caller: str, context: Context) -> ContextReceipt:
        """Return the receipt of a context."""
        from aforesaid.context.context import sections_of  # noqa: PLC0415 - loaded when it is needed

        origin, created = context.origin, now()
        return ContextReceipt(
            id=new_receipt_id(created) if origin is None else origin.receipt,
            space=scope.space,
            user=scope.user,
            thread=scope.thread if origin is None else origin.thread,
            at=moment(created) if origin is None else origin.at,
            caller=caller,
            profile="" if origin is None else origin.profile,
            budget=context.budget,
            tokens=context.tokens,
            sections=sections_of(context),
            model=None if origin is None else origin.model,
            milliseconds={} if origin is None else {"context": origin.milliseconds},
            limited=context.limited,
        )

    def keep_later(self, receipt: ContextReceipt) -> None:
        """Store a receipt soon, together with others that wait. A failure is logged."""
        if not self.on:
            return
        if len(self._waiting) >= _MOST_WAITING:
            _log.warning("a receipt is not stored: %d others wait for the store", len(self._waiting))
            return
        self._waiting.append(receipt)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._store_waiting(), name="receipts")

    async def keep(self, receipt: ContextReceipt) -> None:
        """Store a receipt now."""
        if self.on:
            await self._store.apply([KeepReceipt(receipt)])

    async def settled(self) -> None:
        """Return when all receipts that waited until now are stored, or could not be."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        """Store what waits."""
        await self.settled()

    async def _store_waiting(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            try:
                await self._store.apply([KeepReceipt(receipt) for receipt in batch])
            except AforesaidError as error:
                _log.warning("%d receipts of contexts could not be stored: %s", len(batch), error)
