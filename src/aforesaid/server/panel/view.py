"""What all pages of the panel share: templates, forms, figures, live updates."""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from hashlib import blake2b
from itertools import accumulate
from typing import Annotated, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from aforesaid.domain.checks import counted, to_zone
from aforesaid.domain.memory import CATEGORIES, MemoryRecord, band
from aforesaid.domain.report import Activity, ListedUser, MemoryCount, SpaceTotals, User
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import REFRESH_HEADER, Credential
from aforesaid.server.authentication import MemoryDep, Reader, StateDep, is_still_valid
from aforesaid.server.form_errors import page_of_form
from aforesaid.server.languages import current, plural, translate
from aforesaid.server.problems import page
from aforesaid.server.state import AppState
from aforesaid.store.memories import MemoriesOfSpace
from aforesaid.store.messages import UserLedger
from aforesaid.store.people import AuditRows, TotalsOfSpaces, UsersPage
from aforesaid.telemetry import OWN, Key, OperationMetrics

_MOST_OFFERED: Final = 200
"""Maximum people offered in the list; others can be typed."""

_NOTICE_COOKIE: Final = "aforesaid_told"
"""The cookie with what the next page tells: a browser without scripts is sent on to it."""
_NOTICE_SECONDS: Final = 30

Parts: TypeAlias = str | int | bool | None


@dataclass(frozen=True, slots=True)
class View:
    """A space, and who looks at it."""

    request: Request
    who: Credential
    memory: Memory
    space: str
    chosen: bool = False
    """Whether the address names the space."""
    listed: dict[int, list[ListedUser]] = field(default_factory=dict)
    """The first people of the space, by how many were asked for: a page asks for them more than once."""
    names: dict[str, str] = field(default_factory=dict)
    """Display names by user id, as far as they were looked up for this page."""
    zones: dict[str, tzinfo] = field(default_factory=dict)
    """Time zones by user id, as far as they were looked up for this page."""
    titles: dict[str, str] = field(default_factory=dict)
    """Titles of private chats by thread, as far as they were looked up for this page."""

    @property
    def parameters(self) -> dict[str, str]:
        """What addresses and forms of this space carry along."""
        return {"space": self.space} if self.chosen else {}

    def address(self, path: str, **parts: Parts) -> str:
        own = self.parameters
        given = {name: value for name, value in parts.items() if value is not None and value != ""}
        query = urlencode(own | given)
        return f"{path}?{query}" if query else path

    @staticmethod
    def in_space(space: str) -> str:
        return f"/?{urlencode({'space': space})}"

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
        """Answer with a page. Its template knows the view as well."""
        # A part of a page, or one that refreshes itself, would take the message away from the page that shows it.
        whole = not self.partly and REFRESH_HEADER not in self.request.headers
        notice = _from_cookie(self.request.cookies.get(_NOTICE_COOKIE, "")) if whole else None
        answer = page(self.request, template, status=status, view=self, at=self.address, notice=notice, **values)
        if notice:
            answer.delete_cookie(_NOTICE_COOKIE)
        return answer

    def done(
        self,
        said: str,
        back: str,
        template: str | None = None,
        *,
        undo: Sequence[MemoryRecord] = (),
        undo_in_part: bool = False,
        leave: bool = False,
        **values: Any,  # noqa: ANN401
    ) -> Response:
        """Answer to a change: with the part of the page that is new, or, to a browser without scripts, with a page.

        `said` is shown to the person. `back` is the redirect target when JavaScript is off or not loaded yet; `undo`
        are the memories, as they are now, whose last change can be undone there; `undo_in_part` if the template has a
        button for that itself. Without a `template`, scripts load the page again. With `leave`, the page of the form
        is left for `back`.
        """
        if not self.partly or template is None:
            place = str((None if leave else page_of_form(self.request)) or back)
            leading: Response = RedirectResponse(place, 303)
            if self.partly:
                leading = Response(status_code=204, headers={"HX-Redirect": place})
            notice = json.dumps((said, [(each.id, each.revision) for each in undo]))
            cookie = base64.urlsafe_b64encode(notice.encode()).decode()
            leading.set_cookie(_NOTICE_COOKIE, cookie, max_age=_NOTICE_SECONDS, httponly=True, samesite="strict")
            return leading
        answer = self.page(template, **values)
        told = {"text": said, "undo": [] if undo_in_part else [f"{each.id}:{each.revision}" for each in undo]}
        answer.headers["HX-Trigger"] = json.dumps({"said": told})
        return answer

    def person(self, user: str) -> UserMemory:
        """Return the memory of a person whom the one who looks may see."""
        return self.who.person(self.memory, user, space=self.space)

    async def people(self, limit: int = _MOST_OFFERED) -> list[ListedUser]:
        """Return people here whom the one who looks may see, last active first."""
        if limit not in self.listed:
            self.listed[limit] = await self.page_of_people(limit)
        return self.listed[limit]

    async def page_of_people(self, limit: int, skip: int = 0, part: str = "") -> list[ListedUser]:
        """Return a page of the people, last active first. With `part`, those whose name or id contains it."""
        own = self.who.user_of(None)
        users = None if own is None else [own]
        if part and own is None:
            names = await self.memory.names(self.space)
            users = [user for user, name in names.items() if part.casefold() in name.casefold()]
        page = UsersPage(
            self.space, limit=limit, skip=skip, users=users, id_part=part if part and own is None else None
        )
        found = await self.memory.store.read(page)
        await self.memory.record_access("users.read", "users", actor=self.who.viewer, space=self.space)
        self.names.update({each.user.id: each.user.name for each in found if each.user.name})
        return found

    async def look_up(self, users: Iterable[str]) -> None:
        """Read the display names of users, for the page to show."""
        unknown = {user for user in users if user} - self.names.keys()
        if unknown:
            self.names.update(await self.memory.names(self.space, users=unknown))

    async def look_up_zones(self, users: Iterable[str]) -> None:
        """Read the time zones of users: a day without a time of day is a day of theirs."""
        for user in set(users) - self.zones.keys():
            self.zones[user] = await self.memory.user(user, space=self.space).time_zone()

    async def find(self, typed: str) -> str:
        """Return the id of the person whom somebody typed in: an id, or the display name of exactly one person.

        A text that is neither is returned as it is. Raises `InvalidInput` for a name that several people have.
        """
        wanted: str = self.memory.known_ids.spelled(typed)
        if not wanted or self.who.user_of(None) is not None:
            return wanted
        if await self.memory.store.read(UsersPage(self.space, users=[wanted])):
            return wanted
        names = await self.memory.names(self.space)
        named = [user for user, name in names.items() if name.casefold() == wanted.casefold()]
        people = await self.memory.store.read(UsersPage(self.space, users=named)) if named else []
        if len(people) > 1:
            ids = ", ".join(each.user.id for each in people)
            words = "{count} people are called {name}; type one of their ids: {ids}"
            raise InvalidInput(translate(words, count=len(people), name=repr(wanted), ids=ids), "user")
        return people[0].user.id if people else wanted

    async def spaces(self) -> list[SpaceTotals]:
        """Return the spaces that have people, last active first; only the own one for a key that is limited to it."""
        found = await self.memory.store.read(TotalsOfSpaces())
        return found if self.who.everywhere else [each for each in found if each.space == self.space]

    async def totals(self) -> SpaceTotals | None:
        """Return the counts of this space for whoever looks; None if it has nobody whom they may see."""
        if self.who.user_of(None) is None:
            return next((each for each in await self.spaces() if each.space == self.space), None)
        people = [each.user for each in await self.people()]
        if not people:
            return None
        own = people[0]
        return SpaceTotals(self.space, 1, own.messages, own.archived, own.last_activity or own.created_at)

    async def offered(self) -> Sequence[User]:
        return [each.user for each in await self.people()]

    @property
    def partly(self) -> bool:
        """Whether a part of a page is asked for, not all of it."""
        return self.request.headers.get("hx-request") == "true"


class ChangeNotice(NamedTuple):
    """What a page says about the change that led to it."""

    text: str
    undo: tuple[tuple[int, int], ...] = ()
    """Ids and revisions of the memories whose last change can be undone. Not an address: others can write cookies."""


def _from_cookie(cookie: str) -> ChangeNotice | None:
    try:
        text, undo = json.loads(base64.urlsafe_b64decode(cookie.encode()))
        return ChangeNotice(str(text), tuple((int(number), int(revision)) for number, revision in undo))
    except (ValueError, TypeError):
        return None


async def _view(request: Request, who: Reader, memory: MemoryDep, space: str | None = None) -> View:
    return View(request, who, memory, who.space_of(space or None), chosen=bool(space))


Looking = Annotated[View, Depends(_view)]


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person, and who looks at them."""

    view: View
    user: str
    memory: UserMemory

    async def page(self, template: str, *, tab: str, **values: Any) -> Response:  # noqa: ANN401
        status = await self.memory.status()
        return self.view.page(template, person=self, tab=tab, status_now=status, **values)

    def part(self, template: str, **values: Any) -> Response:  # noqa: ANN401
        return self.view.page(template, person=self, **values)

    @property
    def name(self) -> str:
        """The display name of the person; without one, their id."""
        return self.view.names.get(self.user, self.user)

    def address(self, path: str, **parts: Parts) -> str:
        return self.view.address(path, user=self.user, **parts)

    def done(self, said: str, back: str, *, undo: Sequence[MemoryRecord] = ()) -> Response:
        """Answer to a change of somebody, as `View.done` does; `back` is a path about the person."""
        return self.view.done(said, self.address(back), undo=undo)


async def _person(view: Looking, user: str) -> PersonView:
    found = view.person(user)
    own = view.who.user_of(None) is not None  # a key for one person: their pages are there before anything is stored
    if not own and not await view.memory.store.read(UsersPage(view.space, limit=1, users=[found.scope.user])):
        raise NotFound(translate("Nobody called {name} is remembered in {space}.", name=quoted(user), space=view.space))
    await view.look_up([found.scope.user])
    return PersonView(view, found.scope.user, found)


Person = Annotated[PersonView, Depends(_person)]


def shorten(text: str, most: int) -> str:
    """Return a text with at most so many characters, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


_MOST_DIGITS: Final = 18


def typed_text(value: str) -> str:
    """Return a text as it was typed: browsers send the ends of lines in another way."""
    return value.replace("\r\n", "\n")


def whole_number(value: str, what: str, field: str) -> int:
    """Return a whole number. Raises InvalidInput for the field."""
    digits = value.strip()
    if not digits.lstrip("-").isdecimal() or len(digits) > _MOST_DIGITS:
        raise InvalidInput(
            translate("{what} must be a whole number, not {value}", what=what, value=quoted(value)), field
        )
    return int(digits)


def decimal_number(value: str, what: str, field: str) -> float:
    try:
        return float(value.strip().replace(",", "."))
    except ValueError:
        raise InvalidInput(
            translate("{what} must be a number, not {value}", what=what, value=quoted(value)), field
        ) from None


def comma_separated(value: str) -> tuple[str, ...]:
    return tuple(word for each in value.split(",") if (word := each.strip()))


def unknown_value(value: str, known: Iterable[str]) -> str:
    """Return what is wrong with a value that is not one of those offered."""
    offered = ", ".join(each for each in known if each)
    return translate("unknown value {value}; use one of {offered}", value=quoted(value), offered=offered)


def not_a_day(value: str) -> str:
    return translate("{value} is not a date; write one like 2027-12-31", value=quoted(value))


_HALF: Final = 0.5
_MOST: Final = 0.95
Chart = dict[str, Any]


class Latency(NamedTuple):
    """What an operation took since the process started."""

    name: str
    model: str
    measured: OperationMetrics
    median: float
    """Half of the calls took at most so long."""
    slow: float
    """95 of 100 did."""
    shape: tuple[float, ...]
    """How many calls fell into each class of latency, up to 1."""


def latencies(snapshot: Mapping[Key, OperationMetrics]) -> list[Latency]:
    """Return what operations took, the memory's own first, most often called first."""
    found = []
    for (operation, model), measured in snapshot.items():
        if measured.calls:
            shape = tuple(count / max(measured.latencies) for count in measured.latencies)
            found.append(Latency(operation, model, measured, measured.within(_HALF), measured.within(_MOST), shape))
    return sorted(found, key=lambda each: (each.model != OWN, -each.measured.calls, each.name))


def per_day(activity: Sequence[Activity]) -> Chart:
    """Return a chart of what was said on each day, by people and by assistants."""
    people = [each.turns for each in activity]
    assistant = [each.messages - each.turns for each in activity]
    series = [
        {"label": translate("people"), "colour": "--chart-1", "values": people},
        {"label": translate("assistant"), "colour": "--chart-2", "values": assistant},
    ]
    return {"kind": "stacked", "x": [_noon(each.day) for each in activity], "series": series}


def growth(activity: Sequence[Activity], messages: int, memories: Iterable[MemoryCount]) -> Chart:
    """Return a chart of how much had been said by the end of each day: messages, and the memories of them.

    Its last values are the totals of what is passed.
    """
    days = [each.day for each in activity]
    before = messages - sum(each.messages for each in activity)
    made: Counter[date] = Counter()
    for memory in memories:
        # What is said to be of tomorrow, because clocks differ, counts today: the end of the chart is the total.
        made[min(memory.day, days[-1]) if days else memory.day] += memory.number
    earlier = sum(number for day, number in made.items() if days and day < days[0])
    said = list(accumulate((each.messages for each in activity), initial=before))[1:]
    remembered = list(accumulate((made[day] for day in days), initial=earlier))[1:]
    series = [
        {"label": translate("messages"), "colour": "--chart-1", "values": said},
        {"label": translate("memories"), "colour": "--chart-3", "scale": "right", "values": remembered},
    ]
    return {"kind": "lines", "x": [_noon(day) for day in days], "series": series}


def by_category(memories: Iterable[MemoryCount]) -> list[tuple[str, int]]:
    counted: Counter[str] = Counter()
    for memory in memories:
        counted[memory.category] += memory.number
    return [(category, counted[category]) for category in CATEGORIES]


def by_importance(memories: Iterable[MemoryCount]) -> list[tuple[int, str, int]]:
    counted: Counter[int] = Counter()
    for memory in memories:
        counted[memory.importance] += memory.number
    return [(value, band(value).name, counted[value]) for value in range(1, 11)]


def longest_quiet(activity: Sequence[Activity]) -> list[Activity]:
    """Leave out the days before anything was said, but not the last week."""
    first = next((place for place, each in enumerate(activity) if each.messages), len(activity))
    return list(activity[min(first, max(len(activity) - 7, 0)) :])


def _noon(day: date) -> int:
    """Return the middle of a day, which is on the same day nearly everywhere."""
    return int((datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=12)).timestamp())


_UNITS: Final = ((60, "second"), (60, "minute"), (24, "hour"), (7, "day"), (5, "week"), (12, "month"))
"""How many of a unit make the next one."""
_HUES: Final = 12
_SHORT: Final = 1.0


def decimal(value: float, decimals: int = 2) -> str:
    return current().number(value, decimals)


def signed(value: float, decimals: int = 2) -> str:
    return f"{'+' if value >= 0 else '-'}{decimal(abs(value), decimals)}"


def size(value: float) -> str:
    if value < 1000:  # noqa: PLR2004
        return plural("{count} byte", "{count} bytes", round(value))
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 1000:  # noqa: PLR2004
            return f"{decimal(value, 1)} {unit}"
    return f"{decimal(value / 1000, 1)} TB"


def duration(seconds: float | None) -> str:
    if seconds is None or math.isinf(seconds):
        return translate("over a minute")
    text = f"{seconds * 1000:.3g} ms" if seconds < _SHORT else f"{seconds:.3g} s"
    return text.replace(".", current().decimal)


def day(value: date) -> str:
    return current().date(value)


def ago(value: datetime | None, now: datetime | None = None) -> str:
    if value is None:
        return translate("never")
    away = ((now or datetime.now(UTC)) - value).total_seconds()
    number, name = abs(away), "year"
    for most, unit in _UNITS:
        if number < most:
            name = unit
            break
        number /= most
    if name == "second":
        return translate("just now") if away >= 0 else translate("in a moment")
    return (_PAST if away >= 0 else _FUTURE)[name](int(number))


_PAST: Final[Mapping[str, Callable[[int], str]]] = {
    "minute": lambda count: plural("{count} minute ago", "{count} minutes ago", count),
    "hour": lambda count: plural("{count} hour ago", "{count} hours ago", count),
    "day": lambda count: plural("{count} day ago", "{count} days ago", count),
    "week": lambda count: plural("{count} week ago", "{count} weeks ago", count),
    "month": lambda count: plural("{count} month ago", "{count} months ago", count),
    "year": lambda count: plural("{count} year ago", "{count} years ago", count),
}
_FUTURE: Final[Mapping[str, Callable[[int], str]]] = {
    "minute": lambda count: plural("in {count} minute", "in {count} minutes", count),
    "hour": lambda count: plural("in {count} hour", "in {count} hours", count),
    "day": lambda count: plural("in {count} day", "in {count} days", count),
    "week": lambda count: plural("in {count} week", "in {count} weeks", count),
    "month": lambda count: plural("in {count} month", "in {count} months", count),
    "year": lambda count: plural("in {count} year", "in {count} years", count),
}
"""Whole sentences: words between a number and its unit differ by language."""


_SUSPICIOUS: Final = "the message that it comes from is suspicious: "


def reason(value: str) -> str:
    if not value.startswith(_SUSPICIOUS):
        return translate(value)
    why = reason(value.removeprefix(_SUSPICIOUS))
    return translate("the message that it comes from is suspicious: {reason}", reason=why)


def hue(user: str) -> int:
    """Return the colour of somebody's picture: always the same for one id."""
    return blake2b(user.encode(errors="replace"), digest_size=1).digest()[0] % _HUES


def initials(name: str) -> str:
    """Return the letters on somebody's picture: of the first word of a name, and of the last one."""
    found = [letter for word in name.split() if (letter := next(filter(str.isalnum, word), ""))]
    shown = found[:1] + found[1:][-1:]
    return "".join(shown).upper()[:2] or "·"


def bars(counts: Mapping[str, int] | Sequence[tuple[str, int]]) -> list[tuple[str, int, float]]:
    """Return names with counts, and how long their bars are, up to 100."""
    pairs = list(counts.items()) if isinstance(counts, Mapping) else list(counts)
    most = max((number for _, number in pairs), default=0)
    return [(name, number, round(100 * number / most, 2) if most else 0.0) for name, number in pairs]


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "counted": counted,
    "decimal": decimal,
    "signed": signed,
    "day": day,
    "thousands": lambda value: current().number(value),
    "share": lambda value: f"{value * 100:.0f} %",
    "size": size,
    "duration": duration,
    "moment": lambda value: current().time(value),  # in UTC; a script replaces it by the reader's local time
    "ago": ago,
    "reason": reason,
    "translated": translate,
    "hue": hue,
    "initials": initials,
    "clock": lambda value: f"{value:%H:%M}",
    "day_in_zone": lambda value, zone: day(to_zone(value, zone).date()),
    "moment_in_zone": lambda value: f"{day(value.date())}, {value:%H:%M}",
    "bars": bars,
    "band": band,
}


router = APIRouter()

_KEEP_ALIVE_SECONDS: Final = 15.0
_RETRY_MILLISECONDS: Final = 2_000
_NEWEST: Final = 50
"""Memories and people that are compared when another process has changed something."""
VIEWED: Final = (".read", ".search")
"""Ends of the actions of the audit log that change nothing."""


@router.get("/live")
async def live(request: Request, view: Looking, here: StateDep, user: str = "") -> StreamingResponse:
    """Stream an event without content for each change in the space, or of one person.

    The browser then asks for its own page again, with its own permissions. Nothing is sent while nothing changes, but
    for a comment every 15 seconds. The stream ends when the browser is signed out.
    """
    stream = _events(request, view, here, view.who.user_of(view.memory.known_ids.spelled(user) or None))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _events(request: Request, view: View, here: AppState, user: str | None) -> AsyncIterator[bytes]:
    with here.feed.follow(view.space, user, lambda: is_still_valid(request, here), accesses=False) as subscription:
        yield f"retry: {_RETRY_MILLISECONDS}\nevent: ready\ndata: now\n\n".encode()
        seen = await _digest(view, user)
        while not subscription.ended and not here.stopping.is_set():
            if not await subscription.wait(_KEEP_ALIVE_SECONDS):
                yield b": still here\n\n"
                continue
            certain, subscription.certain = subscription.certain, False
            before, seen = seen, await _digest(view, user)
            if certain or seen != before:
                yield b"event: change\ndata: now\n\n"


async def _digest(view: View, user: str | None) -> object:
    """Return a value that differs once messages or memories have changed, whoever changed them."""
    store = view.memory.store
    memories = await store.read(MemoriesOfSpace(view.space, user=user, active=None, limit=_NEWEST))
    newest = tuple((memory.id, memory.revision, memory.state) for memory in memories)
    if user is None:
        people = await store.read(UsersPage(view.space, limit=_NEWEST))
        return newest, tuple((each.user.id, each.user.messages) for each in people)
    scope = view.memory.user(user, space=view.space).scope
    rows = await store.read(AuditRows(scope, limit=_NEWEST))
    changes = [row.id for row in rows if not row.action.endswith(VIEWED)]
    return newest, (await store.read(UserLedger(scope))).last_seq, changes[-1:]
