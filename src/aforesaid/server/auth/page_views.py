"""Tells a page that refreshes itself from a page that a person opens: only the latter is audited."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.requests import Request

from aforesaid.server.auth.credential import Credential

REFRESH_HEADER: Final = "x-aforesaid-live"
"""The header that `live.js` sends when it fetches its own page again."""
LASTS_SECONDS: Final = 24 * 60 * 60
"""How long after a view a page may refresh itself without an audit row. A page that stays open has a row a day."""
_MOST: Final = 10_000
_NO_PAGES: Final = ("/api", "/v1", "/mcp", "/live")


class PageViews:
    """The pages that browsers opened lately.

    The header alone proves nothing: everybody can send it. So a refresh counts as one only if the same session has
    opened the same address before, which has left its audit rows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opened: OrderedDict[tuple[str, str], float] = OrderedDict()

    def is_refresh(self, request: Request, who: Credential) -> bool:
        """Return whether a page refreshes itself. Any other request for a page is noted as a view of it."""
        if request.method != "GET" or request.url.path.startswith(_NO_PAGES):
            return False
        page = (who.csrf or who.id, f"{request.url.path}?{request.url.query}")
        opened = self._opened.get(page)
        now = self._clock()
        if REFRESH_HEADER in request.headers and opened is not None and now - opened < LASTS_SECONDS:
            return True
        self._opened[page] = now
        self._opened.move_to_end(page)
        while len(self._opened) > _MOST:
            self._opened.popitem(last=False)
        return False
