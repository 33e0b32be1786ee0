"""Whether everything works: components, backlog, failures with what to do, and alerts that can be acknowledged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.checks import AlertKind
from aforesaid.domain.report import Alert, Health
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import NotFound
from aforesaid.memory import Memory
from aforesaid.server.dependencies import Admin, Overseer, StateDep
from aforesaid.server.languages import N_, plural, translate
from aforesaid.server.panel.figures import Latency, latencies
from aforesaid.server.panel.view import Looking
from aforesaid.upkeep.watch import Acknowledgement, acknowledgements
from aforesaid.upkeep.watch import acknowledge as store_acknowledgement

router = APIRouter()

_COUNTED: Final = re.compile(r"([\d,]+) (message|conversation|user)s?")
_LOOP: Final = re.compile(
    r"([\d,]+) runs?, last success (never|[^;]+)(?:; ([\d,]+) failed, last error (.+? UTC): (.*))?", re.DOTALL
)
"""How `loops_health` describes a background loop."""

WHAT_TO_DO: Final[Mapping[AlertKind, str]] = {
    "failure": N_("Look at its error below and at the log of the server. It is tried again by itself."),
    "capacity": N_("Make room on the disk, or delete old messages by retention rules, before writes fail."),
    "slowness": N_(
        "Look at the slow operations below. Usual causes are a busy machine, a slow disk or a slow embedder."
    ),
    "errors": N_(
        "Look at the failed operations below and at the log of the server. Models are tried again by themselves."
    ),
    "backlog": N_("Background work is slower than what comes in. Start a worker, or use a faster model."),
}
"""What an operator can do about each kind of alert."""


class ShownAlert(NamedTuple):
    """An alert, what to do, and who has acknowledged it."""

    alert: Alert
    todo: str
    by: str | None
    at: datetime | None


@router.get("/health")
async def health(view: Looking, who: Overseer, here: StateDep) -> Response:
    """Show how each component is doing."""
    del who
    memory = view.memory
    found = await memory.health()
    models = memory.models
    operations: list[Latency] = latencies(memory.metrics.snapshot())
    alerts = await shown_alerts(memory, found)
    return view.page(
        "part/health.html" if view.partly else "health.html",
        health=found,
        alerts=alerts,
        sentence=sentence(found, [each for each in alerts if each.by is None]),
        breakers={} if models is None else models.states(),
        upstreams=here.upstream.states(),
        operations=operations,
        stats=await memory.stats(),
        verification=None,
        shown_fact=shown_fact,
    )


@router.post("/health/acknowledge")
async def acknowledge(
    view: Looking, who: Overseer, admin: Admin, kind: Annotated[str, Form()], about: Annotated[str, Form()]
) -> Response:
    """Record who has seen an alert, and when. It is shown quietly from then on, until it is raised anew."""
    del who
    found = await view.memory.health()
    alert = next((each for each in found.alerts if (each.kind, each.about) == (kind, about)), None)
    if alert is None:
        raise NotFound(translate("this alert is over already"))
    await store_acknowledgement(view.memory.store, Acknowledgement(alert, admin.name, datetime.now(UTC)))
    await view.memory.record_access(
        "alert.acknowledge", f"alert {kind} {about}", actor=admin.actor, space=admin.space or DEFAULT_SPACE
    )
    return view.done(translate("Acknowledged."), view.address("/health"))


@router.post("/health/upkeep")
async def upkeep(view: Looking, who: Overseer, admin: Admin) -> Response:
    """Do now all that is due."""
    del who, admin
    report = await view.memory.upkeep()
    said = translate(
        "Done: {embedded} embedded, {summarised} summarised, {remembered} remembered.",
        embedded=report.embedded,
        summarised=report.summarised,
        remembered=report.remembered,
    )
    if report.error is not None:
        said += " " + translate("It stopped early: {error}", error=report.error)
    return view.done(said, view.address("/health"))


@router.post("/health/verify")
async def verify(view: Looking, who: Overseer, admin: Admin) -> Response:
    """Check everything that is stored."""
    del who, admin
    return view.page("verified.html", verification=await view.memory.verify())


async def shown_alerts(memory: Memory, health: Health) -> list[ShownAlert]:
    """Return the alerts with who acknowledged them. One that was raised anew since then is not acknowledged."""
    if not health.alerts:
        return []
    known = {
        (each.alert.kind, each.alert.about, each.alert.since): each for each in await acknowledgements(memory.store)
    }
    found = []
    for alert in health.alerts:
        seen = known.get((alert.kind, alert.about, alert.since))
        by, at = (None, None) if seen is None else (seen.by, seen.at)
        found.append(ShownAlert(alert, WHAT_TO_DO[alert.kind], by, at))
    return sorted(found, key=lambda each: (each.by is not None, each.alert.since))


def shown_fact(value: str) -> str:
    """Return a fact about a component in the language of the request.

    Counts, and how often a background loop ran and how well, are put into its words.
    """
    if (counted := _COUNTED.fullmatch(value)) is not None:
        count, what = counted.groups()
        return plural(f"{{count}} {what}", f"{{count}} {what}s", int(count.replace(",", "")))
    if (found := _LOOP.fullmatch(value)) is None:
        return translate(value)
    runs, success, failed, at, error = found.groups()
    line = plural(
        "{count} run, last success {when}",
        "{count} runs, last success {when}",
        int(runs.replace(",", "")),
        when=translate(success),
    )
    if failed is None:
        return line
    failures = translate(
        "{count} failed, last error {when}: {error}", count=int(failed.replace(",", "")), when=at, error=error
    )
    return f"{line}; {failures}"


def sentence(health: Health, alerts: list[ShownAlert]) -> str:
    """Say in one sentence whether everything is well."""
    failing = [part.name for part in health.components if part.status == "failing"]
    if failing:
        return translate("Something fails: {parts}.", parts=", ".join(failing))
    if alerts:
        return plural(
            "Everything runs, and {count} alert is open.", "Everything runs, and {count} alerts are open.", len(alerts)
        )
    waiting = sum(part.waiting or 0 for part in health.components)
    if waiting:
        return plural(
            "Everything works; {count} item waits for background work.",
            "Everything works; {count} items wait for background work.",
            waiting,
        )
    return translate("Everything works, and nothing waits.")
