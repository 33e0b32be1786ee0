"""The control panel: pages to look at and to correct what is remembered.

Each module has the routes of one page, or of a few that belong together, on a router of its own. Pages are rendered
here and work without scripts; htmx exchanges parts of them where it is there. An address names a space and a user in
its query, because the ids of users may hold anything, slashes too.
"""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from aforesaid.domain.memory import CATEGORIES, KINDS
from aforesaid.server.languages import translate
from aforesaid.server.panel import conversation, data, graph, health, memories, people, search, view
from aforesaid.server.problems import environment

PARTS: Final = (health, people, memories, conversation, search, graph, data)
"""The modules with routes."""

router = APIRouter(include_in_schema=False)
environment.filters.update(view.FILTERS)
environment.filters["notable"] = search.notable
environment.filters["translated"] = translate
environment.tests["previewed"] = conversation.previewed
environment.globals.update(
    did=health.did, categories=CATEGORIES, kinds=KINDS, called=memories.CALLED, groupings=tuple(memories.GROUPINGS)
)
for part in (*PARTS, view):  # `view` has no page
    router.include_router(part.router)
