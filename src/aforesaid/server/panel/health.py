"""How everything is doing: parts, breakers, alerts, and what operations took."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.server.dependencies import Admin, Overseer
from aforesaid.server.panel.figures import Latency, latencies
from aforesaid.server.panel.view import Looking

router = APIRouter()


@router.get("/health")
async def health(view: Looking, who: Overseer) -> Response:
    """Show how each part is doing."""
    del who
    memory = view.memory
    found = await memory.health()
    models = memory.models
    operations: list[Latency] = latencies(memory.metrics.snapshot())
    template = "part/health.html" if view.partly else "health.html"
    return view.page(
        template,
        health=found,
        breakers={} if models is None else models.states(),
        operations=operations,
        stats=await memory.stats(),
        verification=None,
    )


@router.post("/health/upkeep")
async def upkeep(view: Looking, who: Overseer, admin: Admin) -> Response:
    """Do now all that is due."""
    del who, admin
    report = await view.memory.upkeep()
    said = f"Done: {report.embedded} embedded, {report.summarised} summarised, {report.remembered} remembered."
    return view.done(said if report.error is None else f"{said} It stopped early: {report.error}", "/health")


@router.post("/health/verify")
async def verify(view: Looking, who: Overseer, admin: Admin) -> Response:
    """Check everything that is stored."""
    del who, admin
    return view.page("verified.html", verification=await view.memory.verify())
