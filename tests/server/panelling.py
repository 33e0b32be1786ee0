"""The pages and the forms of the panel, by their addresses."""

from __future__ import annotations

from typing import Final

from fastapi.routing import APIRoute

from aforesaid.server import panel

_ROUTES: Final = [route for part in panel.PARTS for route in part.router.routes if isinstance(route, APIRoute)]
READS: Final = sorted({route.path for route in _ROUTES if "GET" in (route.methods or ())})
WRITES: Final = sorted({route.path for route in _ROUTES if "POST" in (route.methods or ())})
