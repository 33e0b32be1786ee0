"""Overview, health and audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.checks import AlertKind
from aforesaid.domain.report import Alert, AuditEntry, Health
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import NotFound
from aforesaid.extras import re
from aforesaid.memory import Memory
from aforesaid.models.tokens import count_tokens
from aforesaid.server.authentication import Admin, Overseer, StateDep
from aforesaid.server.languages import N_, plural, translate
from aforesaid.server.panel.view import (
    VIEWED,
    Looking,
    Person,
    by_category,
    by_importance,
    growth,
    latencies,
    longest_quiet,
    per_day,
)
from aforesaid.store.memories import DueMemories, MemoryCounts
from aforesaid.upkeep.watch import Acknowledgement, acknowledgements
from aforesaid.upkeep.watch import acknowledge as store_acknowledgement

router = APIRouter()

_COUNTED: Final = re.compile(r"([\d,]+) (message|conversation|user)s?")
_LOOP: Final = re.compile(
    r"([\d,]+) runs?, last success (never|[^;]+)(?:; ([\d,]+) failed, last error (.+? UTC): (.*))?", re.DOTALL
)
"""How `loops_health` describes a background loop."""
_KEPT: Final = re.compile(r"(archived|deleted) after ([\d,]+) days?")
KEPT: Final = (
    N_("messages"), N_("memories"), N_("summaries"), N_("versions"), N_("derived"), N_("audit"), N_("spending"),
    N_("receipts"),
)  # fmt: skip
"""What retention rules are about."""

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
async def health(view: Looking, _: Overseer, here: StateDep) -> Response:
    memory, models = view.memory, view.memory.models
    found = await memory.health()
    alerts = await shown_alerts(memory, found)
    return view.page(
        "part/health.html" if view.partly else "health.html",
        health=found,
        alerts=alerts,
        sentence=sentence(found, [each for each in alerts if each.by is None]),
        breakers={} if models is None else models.states(),
        upstreams=here.upstream.states(),
        operations=latencies(memory.metrics.snapshot()),
        stats=await memory.stats(),
        verification=None,
        shown_fact=shown_fact,
    )


@router.post("/health/acknowledge")
async def acknowledge(
    view: Looking, _: Overseer, admin: Admin, kind: Annotated[str, Form()], about: Annotated[str, Form()]
) -> Response:
    """Record who has seen an alert, and when. It is shown quietly from then on, until it is raised anew."""
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
async def upkeep(view: Looking, _: Overseer, __: Admin) -> Response:
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
async def verify(view: Looking, _: Overseer, __: Admin) -> Response:
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
    if _KEPT.search(value) is not None:
        rules = (rule.partition(": ") for rule in value.split("; "))
        return "; ".join(f"{translate(kind)}: {_KEPT.sub(_shown_rule, rule)}" for kind, _, rule in rules)
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


def _shown_rule(rule: re.Match[str]) -> str:
    days = int(rule[2].replace(",", ""))
    if rule[1] == "archived":
        return plural("archived after {count} day", "archived after {count} days", days)
    return plural("deleted after {count} day", "deleted after {count} days", days)


def sentence(health: Health, alerts: list[ShownAlert]) -> str:
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


_DAYS: Final = (7, 30, 90)
_USUAL_DAYS: Final = 30
_FACES: Final = 12
"""People shown with their faces."""
_MOST_REMINDERS: Final = 1_000
_MEASURED_PEOPLE: Final = 5
_MEASURED_MESSAGES: Final = 2_000


class Saving(NamedTuple):
    """How long a person's context is, beside all that they and the assistant said."""

    user: str
    messages: int
    whole: int
    """The tokens of all that was said; of a long history, of its newest messages."""
    sent: int
    """The tokens of the context that a model would be sent now."""

    @property
    def saved(self) -> float:
        """The part that need not be sent."""
        return max(0.0, 1 - self.sent / self.whole) if self.whole else 0.0


@router.get("/")
async def overview(view: Looking, days: int = _USUAL_DAYS) -> Response:
    """Show the whole at a glance. Without a chosen space: the default one, or if it is empty the last active one."""
    shown = days if days in _DAYS else _USUAL_DAYS
    own = view.who.user_of(None)
    totals = await view.totals()
    spaces = [] if totals else await view.spaces()
    if spaces and not view.chosen:
        return RedirectResponse(view.in_space(spaces[0].space), 303)
    activity = longest_quiet(await view.memory.activity(shown, space=view.space, user=own))
    counts = await view.memory.store.read(MemoryCounts(view.space, user=own))
    active = [each for each in counts if each.state == "active"]
    messages = totals.messages if totals else 0
    due = DueMemories("reminder", datetime.max.replace(tzinfo=UTC), _MOST_REMINDERS)
    reminders = [
        each for each in await view.memory.store.read(due) if each.space == view.space and own in (None, each.user)
    ]
    health = await view.memory.health() if view.who.everywhere else None
    alerts = [] if health is None else await shown_alerts(view.memory, health)
    return view.page(
        "overview.html",
        people=await view.people(_FACES) if totals else [],
        totals=totals,
        spaces=spaces,
        messages=messages,
        memories=sum(each.number for each in active),
        waiting=sum(each.number for each in counts if each.state == "quarantined"),
        reminders=len(reminders),
        days=shown,
        all_days=_DAYS,
        activity=activity,
        per_day=per_day(activity),
        growth=growth(activity, messages, active),
        categories=by_category(active),
        importances=by_importance(active),
        health=health,
        alerts=[each.alert for each in alerts if each.by is None],
        operations=latencies(view.memory.metrics.snapshot())[:6] if view.who.everywhere else [],
        stats=await view.memory.stats() if view.who.everywhere else None,
    )


@router.get("/overview/savings")
async def savings(view: Looking) -> Response:
    """Show what contexts save, measured now on those who were active last."""
    measured = []
    for user in (each.user for each in await view.people(_MEASURED_PEOPLE)):
        person = view.person(user.id)
        if said := await person.history(_MEASURED_MESSAGES):
            # The newest question is as good as any to make a context for.
            question = next((message.text for message in reversed(said) if message.role == "user"), said[-1].text)
            sent = await person.context(question)
            whole = sum(count_tokens(message.text) for message in said)
            measured.append(Saving(user.id, user.messages, whole, sent.tokens))
    return view.page(
        "part/savings.html",
        savings=measured,
        whole=sum(saving.whole for saving in measured),
        sent=sum(saving.sent for saving in measured),
    )


DONE: Final[Mapping[str, str]] = {
    "messages.read": N_("read messages"),
    "messages.read/history": N_("read the conversation"),
    "messages.read/threads": N_("looked at the list of chats"),
    "messages.take_back": N_("took messages back"),
    "messages.bring_back": N_("brought messages back"),
    "messages.erase": N_("erased messages for good"),
    "memory.read": N_("looked at a memory"),
    "memory.read/memories": N_("looked at memories"),
    "memory.read/timeline": N_("looked at the timeline"),
    "memory.read/people": N_("looked at the people around"),
    "memory.read/reminders": N_("looked at the reminders"),
    "memory.read/schedule": N_("looked at what is scheduled"),
    "memory.search": N_("searched"),
    "memory.add": N_("remembered something"),
    "memory.edit": N_("corrected a memory"),
    "memory.edit_message": N_("let a memory go, because its message was edited"),
    "memory.take_back": N_("let a memory go, because its message was taken back"),
    "memory.deactivate": N_("deleted a memory"),
    "memory.end": N_("ended a memory: no longer true"),
    "memory.expire": N_("let a memory expire"),
    "memory.reactivate": N_("brought a memory back"),
    "memory.supersede": N_("replaced a memory by a newer one"),
    "memory.approve": N_("approved a memory"),
    "memory.reject": N_("rejected a memory"),
    "memory.undo": N_("undid the last change of a memory"),
    "memory.delivered": N_("ticked off a reminder"),
    "memory.forget": N_("forgot a memory"),
    "forget": N_("forgot what was asked"),
    "facts.read": N_("looked at the stated facts"),
    "facts.put": N_("changed the stated facts"),
    "portrait.read": N_("read the portrait"),
    "preferences.read": N_("looked at the habits"),
    "summaries.read": N_("looked at summaries"),
    "summaries.read/day": N_("read the summary of a day"),
    "summaries.read/week": N_("read the summary of the week"),
    "summary.add": N_("wrote a summary"),
    "summary.ask": N_("asked for a summary"),
    "summary.update": N_("stored a summary"),
    "summary.revise": N_("corrected a summary"),
    "archive": N_("archived messages under a summary"),
    "roll_back": N_("took a summary back"),
    "sessions.read": N_("looked at sessions"),
    "context.read": N_("looked at a context"),
    "receipts.read": N_("looked at what was sent to models"),
    "settings.read": N_("looked at settings"),
    "setting.put": N_("changed a setting"),
    "sign-in": N_("signed in"),
    "users.read": N_("looked at the list of people"),
    "audit.read": N_("looked at this log"),
    "events.read": N_("followed what happens"),
    "keys.read": N_("looked at keys"),
    "key.add": N_("made a key"),
    "key.remove": N_("revoked a key"),
    "alert.acknowledge": N_("acknowledged an alert"),
    "export": N_("exported data"),
    "import": N_("imported a file"),
    "backup": N_("made a backup"),
    "merge": N_("merged two people into one"),
    "purge": N_("erased a person for good"),
    "retention.purge": N_("deleted what was kept long enough"),
}
"""What the actions of the audit log are called: by the action and what it was done with, or by the action alone."""


def did(action: str, subject: str = "") -> str:
    return translate(DONE.get(f"{action}/{subject}") or DONE.get(action, action))


class AuditLine(NamedTuple):
    """An entry; or several in a row that say only that whoever looks at the log looked at something."""

    entries: list[AuditEntry]
    own_views: bool


def folded(entries: Iterable[AuditEntry], actor: str) -> list[AuditLine]:
    """Fold in a row what somebody viewed themselves: it hides what others did."""
    lines: list[AuditLine] = []
    for entry in entries:
        own = entry.actor == actor and entry.action.endswith(VIEWED)
        if own and lines and lines[-1].own_views:
            lines[-1].entries.append(entry)
        else:
            lines.append(AuditLine([entry], own))
    return lines


_ROWS: Final = 200
_MEMORY: Final = re.compile(r"memory (\d+)")
_UNDOABLE: Final = frozenset(
    f"memory.{action}" for action in ("edit", "deactivate", "end", "reactivate", "approve", "reject", "undo", "add")
)
"""Actions on a memory that `undo` reverses."""
_PEOPLE: Final = 50
"""People whose entries are shown if nobody is selected: those who were active last. The space's own are shown too."""


@router.get("/audit")
async def audit(view: Looking, _: Admin, user: str = "", action: str = "", by: str = "") -> Response:
    """Show the newest entries of the audit log: about one person, or about those who were active last."""
    whose = await view.find(user)
    people = [whose] if whose else [each.user.id for each in await view.people(_PEOPLE)]
    found = [entry for each in people for entry in await view.person(each).audit(_ROWS)]
    if not whose and view.who.user is None:
        found += await view.memory.audit(_ROWS, space=view.space, actor=view.who.viewer)
    found.sort(key=lambda entry: entry.id, reverse=True)
    await view.look_up(name for entry in found for name in (entry.actor, entry.user))
    actions = {each: did(each) for each in sorted({entry.action for entry in found}, key=did)}
    shown = [
        entry
        for entry in found
        if action in ("", entry.action)
        and by.strip().casefold() in f"{entry.actor}\n{view.names.get(entry.actor, '')}".casefold()
    ]
    return view.page(
        "audit.html",
        lines=folded(shown[:_ROWS], view.who.actor),
        undoable=undoable(found),
        actions=actions,
        action=action,
        by=by.strip(),
        user=whose,
        people=await view.offered(),
    )


@router.get("/person/audit")
async def of_person(person: Person, _: Admin) -> Response:
    entries = list(reversed(await person.memory.audit(_ROWS)))
    await person.view.look_up(entry.actor for entry in entries)
    lines = folded(entries, person.view.who.actor)
    return await person.page("person/audit.html", tab="audit", lines=lines, undoable=undoable(entries))


def undoable(entries: Iterable[AuditEntry]) -> dict[int, int]:
    """Return the memories whose newest change is among the entries (the newest first), by the id of its entry."""
    found: dict[int, int] = {}
    seen = set()
    for entry in entries:
        memory = _MEMORY.fullmatch(entry.subject)
        if memory is None or entry.action not in _UNDOABLE or memory[1] in seen:
            continue
        seen.add(memory[1])
        found[entry.id] = int(memory[1])
    return found
