"""Routes for totals and health."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from aforesaid.domain.checks import AlertKind, ComponentStatus
from aforesaid.server.api.params import SpaceQuery
from aforesaid.server.dependencies import MemoryDep, Overseer, Reader
from aforesaid.server.shapes import Shape

router = APIRouter(tags=["operation"])


class Totals(Shape):
    """Totals over the whole store."""

    spaces: int
    users: int
    threads: int
    sessions: int
    messages: int
    archived: int
    summaries: int
    memories: int
    bytes: int


class SpaceStats(BaseModel):
    """The totals of a space."""

    space: str
    users: int
    messages: int
    archived: int
    totals: Totals | None = Field(description="Over all spaces; only for keys that are for all of them.")


class ComponentShape(BaseModel):
    """The health of a component."""

    name: str
    status: ComponentStatus
    last_update: datetime | None
    issues: list[str]
    facts: dict[str, str]
    message_count: int | None
    waiting: int | None = Field(description="How much it still has to do.")
    health_check: datetime | None = Field(description="When it was looked at.")


class AlertShape(Shape):
    """An active alert."""

    kind: AlertKind
    about: str
    text: str
    since: datetime


class StorageShape(Shape):
    """The size of the store and its growth."""

    bytes: int
    messages: int
    free: int | None
    since: datetime | None
    bytes_per_day: float | None
    messages_per_day: float | None


class OperationShape(Shape):
    """Latency and errors of an operation in the last minutes."""

    name: str
    model: str
    calls: int
    per_minute: float
    failed: int
    error_rate: float
    mean_seconds: float
    p95_seconds: float | None
    cache_hits: int


class HealthShape(BaseModel):
    """The health of all components."""

    status: ComponentStatus
    components: list[ComponentShape]
    alerts: list[AlertShape]
    storage: StorageShape | None
    operations: list[OperationShape]


@router.get("/stats", summary="How much is remembered")
async def stats(who: Reader, memory: MemoryDep, space: SpaceQuery = None) -> SpaceStats:
    """Return the totals of the space."""
    where = who.space_of(space)
    users = [user for user in await memory.users(where) if who.user in (None, user.id)]
    return SpaceStats(
        space=where,
        users=len(users),
        messages=sum(user.messages for user in users),
        archived=sum(user.archived for user in users),
        totals=Totals.model_validate(await memory.stats()) if who.everywhere else None,
    )


@router.get("/health", summary="How each part is doing")
async def health(who: Overseer, memory: MemoryDep) -> HealthShape:
    """Return the health of each component, with its issues. Needs a key for all spaces."""
    del who
    found = await memory.health()
    return HealthShape(
        status=found.status,
        components=[
            ComponentShape(
                name=part.name,
                status=part.status,
                last_update=part.last_update,
                issues=list(part.issues),
                facts=dict(part.facts),
                message_count=part.message_count,
                waiting=part.waiting,
                health_check=part.health_check,
            )
            for part in found.components
        ],
        alerts=[AlertShape.model_validate(alert) for alert in found.alerts],
        storage=None if found.storage is None else StorageShape.model_validate(found.storage),
        operations=[OperationShape.model_validate(each) for each in found.operations],
    )
