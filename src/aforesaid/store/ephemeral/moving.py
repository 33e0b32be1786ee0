"""Moving out of, and erasing from, the store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final

from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged, Row
from aforesaid.store.ephemeral.changes import Changes
from aforesaid.store.ephemeral.dumping import rows
from aforesaid.store.ephemeral.held import Held, locked
from aforesaid.store.rules.driving import Rule
from aforesaid.store.rules.purging import erase, purge

_PAGE: Final = 1_000


class Moving(Held):
    """Everything at once: to give it out, or to take a user out of it."""

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        """Give out everything as it is at one moment, page by page."""
        with self._lock:
            found = rows(self._open.copy(), vectors=vectors)
        while page := list(islice(found, _PAGE)):
            yield page

    @locked
    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good."""
        return self._erase(purge(scope, actor))

    @locked
    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages for good."""
        return self._erase(erase(scope, actor, seqs))

    def _erase(self, rule: Rule[Purged]) -> Purged:
        changed = self._open.layered()
        done = Changes(changed).run(rule)
        self._state.take_over(changed)
        return done
