"""The REST API: modules of related routes."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from aforesaid.server.api import administration, context, memories, messages
from aforesaid.server.api.params import check_request
from aforesaid.server.problems import declared

router = APIRouter(
    prefix="/api",
    dependencies=[Depends(check_request)],
    responses=declared(400, 401, 403, 404, 409, 413, 415, 422, 429, 502, 503, 507),
)
for _part in (
    memories.router,
    administration.users_router,
    messages.router,
    context.router,
    context.receipts_router,
    context.search_router,
    memories.summaries_router,
    messages.threads_router,
    messages.sessions_router,
    memories.facts_router,
    memories.timeline_router,
    administration.stats_router,
    administration.settings_router,
    administration.audit_router,
    messages.events_router,
    administration.moving_router,
    administration.keys_router,
):
    router.include_router(_part)

__all__ = ["router"]
