"""The REST API, one module per resource."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from aforesaid.server.api import (
    attachments,
    audit,
    context,
    events,
    facts,
    keys,
    memories,
    messages,
    receipts,
    search,
    sessions,
    settings,
    stats,
    summaries,
    threads,
    timeline,
    transfer,
    users,
)
from aforesaid.server.api.request_check import check_request
from aforesaid.server.problems import declared

router = APIRouter(
    prefix="/api",
    dependencies=[Depends(check_request)],
    responses=declared(400, 401, 403, 404, 409, 413, 415, 422, 429, 502, 503, 507),
)
for _resource in (
    memories,
    users,
    messages,
    attachments,
    context,
    receipts,
    search,
    summaries,
    threads,
    sessions,
    facts,
    timeline,
    stats,
    settings,
    audit,
    events,
    transfer,
    keys,
):
    router.include_router(_resource.router)

__all__ = ["router"]
