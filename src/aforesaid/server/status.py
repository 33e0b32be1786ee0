"""What watches a server asks: does it run, is it ready, what did it count."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from aforesaid.server.auth.authentication import Overseer, StateDep
from aforesaid.server.problems import declared
from aforesaid.server.prometheus import exposition

router = APIRouter(tags=["operation"], responses=declared(400, 413))


class Alive(BaseModel):
    """It runs."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Whether it can store and answer."""

    status: Literal["ready", "failing"]


@router.get("/healthz", summary="Does it run?")
async def alive() -> Alive:
    """Return 200 while the process runs."""
    return Alive()


@router.get(
    "/readyz",
    summary="Can it store and answer?",
    responses={503: {"description": "The store cannot be used.", "model": Ready}},
)
async def ready(here: StateDep, response: Response) -> Ready:
    """Return 503 while the store is failing. A failing model does not matter: everything works without one."""
    if (await here.memory.store.health()).status == "failing":
        response.status_code = 503
        return Ready(status="failing")
    return Ready(status="ready")


@router.get(
    "/metrics",
    summary="Everything that is counted",
    response_class=Response,
    responses={
        200: {"description": "Prometheus' text form.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **declared(401, 403, 429, 503),
    },
)
async def metrics(here: StateDep, who: Overseer) -> Response:
    """Return metrics for Prometheus. Needs a key for all spaces."""
    del who
    return Response(await exposition(here.memory, here.http), media_type=CONTENT_TYPE_LATEST)
