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
from aforesaid.server.pages import environment
from aforesaid.server.panel import (
    audit,
    bulk,
    conversation,
    data,
    graph,
    health,
    inspector,
    keys,
    live,
    memories,
    memory_filters,
    overview,
    people,
    person_data,
    playground,
    receipts,
    reminders,
    search,
    settings,
    shown,
    summaries,
    timeline,
)

PARTS: Final = (
    overview,
    people,
    bulk,
    memories,
    conversation,
    timeline,
    reminders,
    summaries,
    receipts,
    search,
    inspector,
    graph,
    playground,
    settings,
    keys,
    audit,
    health,
    data,
    person_data,
)
"""The modules with routes."""

router = APIRouter(include_in_schema=False)
environment.filters.update(shown.FILTERS)
environment.filters["notable"] = search.notable
environment.filters["translated"] = translate
environment.tests["previewed"] = conversation.previewed
environment.globals.update(
    categories=CATEGORIES, kinds=KINDS, called=memory_filters.CALLED, groupings=tuple(memory_filters.GROUPINGS)
)
for part in (*PARTS, live):  # `live` has no page
    router.include_router(part.router)
