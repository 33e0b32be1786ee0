"""Pages to search, to try a context, and to see what was sent."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlencode

from cachetools import TTLCache
from fastapi import APIRouter, Form, Query
from starlette.responses import Response, StreamingResponse

from aforesaid.assistant import SYSTEM
from aforesaid.domain.checks import HitKind, Role
from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentKind, SentSection, SentSource
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.errors import AforesaidError, InvalidInput, NotFound
from aforesaid.memory import UserMemory
from aforesaid.models.tokens import counter_for
from aforesaid.recall import ARMS, DEFAULT_KINDS, KINDS, Turn
from aforesaid.server.authentication import App
from aforesaid.server.languages import translate
from aforesaid.server.panel.view import Looking, Parts, Person, PersonView, View, not_a_day, typed_text, unknown_value
from aforesaid.store.messages import MessagesByNumber
from aforesaid.store.people import Receipts
from aforesaid.store.searches import PeopleWithWords, PersonWithWords

if TYPE_CHECKING:
    from aforesaid.models.chat import Reply


router = APIRouter()

_LIMITS: Final = (5, 10, 20, 50)
_PEOPLE_AT_ONCE: Final = 48
"""People searched before a page is shown with what was found. It leads on to the next ones."""
SECONDS: Final = 2.0
"""Time in which further people are searched by meaning while nothing was found: the index has words alone."""
_SIDE_BY_SIDE: Final = 16
"""Of them searched at the same time."""
_NOTABLE: Final = 0.25
"""Minimum contribution of a reason that is named in a hit's sentence."""
_SPEAKERS: Final[dict[str, Role]] = {"person": "user", "assistant": "assistant", "tool": "tool"}


class PersonHit(NamedTuple):
    """A hit, and whose memory it is in."""

    user: str
    hit: Hit
    times: int = 1
    """How many hits of the person say the same; this is the best of them."""


class Everybody(NamedTuple):
    """What a search over everybody found."""

    hits: list[PersonHit]
    searched: int
    """How many people were searched for this page."""
    total: int
    """How many people there are to search."""
    with_words: int | None
    """How many messages have one of the words, of all people; None if people were not chosen by their words."""


def condensed(found: Sequence[PersonHit], text: str) -> tuple[list[PersonHit], list[PersonHit]]:
    """Return hits with those that say the same as one, and apart from them those that only ask the same again."""
    said: dict[tuple[str, str], PersonHit] = {}
    again: dict[tuple[str, str], PersonHit] = {}
    for each in found:
        words = _plain(each.hit.text)
        question = each.hit.kind == "message" and words == _plain(text) and _asks(text, each.hit.text)
        kept = again if question else said
        key = (each.user, words) if each.hit.kind == "message" else (each.user, f"{each.hit.kind} {each.hit.id}")
        kept[key] = kept[key]._replace(times=kept[key].times + 1) if key in kept else each
    return list(said.values()), list(again.values())


def _asks(*texts: str) -> bool:
    return any(text.rstrip().endswith(("?", "？", "؟")) for text in texts)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


@dataclass(frozen=True, slots=True)
class Limits:
    """What limits a search beside the words: time, speaker, kinds."""

    since: str
    until: str
    speaker: str
    kinds: tuple[HitKind, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        """The limits as arguments of a search. Raises InvalidInput."""
        if self.speaker and self.speaker not in _SPEAKERS:
            raise InvalidInput(unknown_value(self.speaker, _SPEAKERS), "speaker")
        until = _day(self.until, "until")
        limits: dict[str, Any] = {
            "role": _SPEAKERS.get(self.speaker),
            "since": _day(self.since, "since"),
            "until": None if until is None else until + timedelta(days=1),
        }
        if limits["since"] and limits["until"] and limits["since"] >= limits["until"]:
            raise InvalidInput(translate("this is before the first day"), "until")
        given = {name: value for name, value in limits.items() if value is not None}
        kinds = self.kinds
        if given:
            # Times and speakers are those of messages.
            kinds = tuple(kind for kind in kinds if kind in {"message", "session"}) or ("message",)
        return given | {"kinds": kinds}


@router.get("/search")
async def search(
    view: Looking,
    text: str = "",
    user: str = "",
    kind: Annotated[list[str] | None, Query()] = None,
    arms: str = "all",
    limit: int = 10,
    weak: bool = False,
    since: str = "",
    until: str = "",
    speaker: str = "",
    skip: int = 0,
) -> Response:
    """Search, and say why each thing was found. Without a person, everybody's memory is searched."""
    kinds = tuple(cast("HitKind", each) for each in kind or DEFAULT_KINDS)
    if others := [each for each in kinds if each not in KINDS]:
        raise InvalidInput(unknown_value(others[0], KINDS), "kind")
    if arms not in ARMS:
        raise InvalidInput(unknown_value(arms, ARMS), "arms")
    limits = Limits(since.strip(), until.strip(), speaker, kinds)
    whose = view.who.user_of(await view.find(user) or None) or ""
    asked: dict[str, Any] = {"arms": arms, "min_score": 0 if weak else None, **limits.arguments}
    found: list[PersonHit] | None = None
    everybody: Everybody | None = None
    if text.strip() and whose:
        found = [PersonHit(whose, hit) for hit in await view.person(whose).search(text, limit, **asked)]
    elif text.strip():
        everybody = await _everybody(view, text, limit, max(skip, 0), asked)
        found = everybody.hits
    authors = [each.hit.message.author for each in found or () if each.hit.message is not None]
    await view.look_up([whose, *authors, *(each.user for each in found or ())])
    reached = 0 if everybody is None else max(skip, 0) + everybody.searched
    more = everybody is not None and everybody.searched > 0 and reached < everybody.total
    found, asked_before = (None, []) if found is None else condensed(found, text)
    again: dict[str, Parts] = {"text": text, "arms": arms, "limit": limit, "since": limits.since, "until": limits.until}
    again |= {"speaker": speaker, "weak": "1" if weak else None, "skip": reached}
    chosen = urlencode([("kind", each) for each in kinds])
    return view.page(
        "search.html",
        text=text,
        user=whose,
        people=await view.offered(),
        found=found,
        asked_before=asked_before,
        everybody=everybody,
        reached=reached,
        next_people=f"{view.address('/search', **again)}&{chosen}" if more else None,
        limits=limits,
        left_out=[each for each in kinds if each not in asked["kinds"]],
        all_kinds=KINDS,
        speakers=tuple(_SPEAKERS),
        arms=arms,
        all_arms=ARMS,
        limit=limit,
        all_limits=_LIMITS,
        weak=weak,
        longest=max((abs(value) for each in found or () for _, value in each.hit.reasons()), default=1.0) or 1.0,
    )


async def _everybody(view: View, text: str, limit: int, skip: int, asked: dict[str, Any]) -> Everybody:
    """Search the memories of people: of many, those whose messages have the words, by the index; or all by meaning.

    Hits of all people are ordered by their scores. The audit log names those of whom something is shown.
    """
    totals = await view.totals()
    total = 0 if totals is None else totals.users
    having: list[PersonWithWords] = []
    if total > _PEOPLE_AT_ONCE and asked["arms"] != "dense":
        having = await view.memory.store.read(PeopleWithWords(view.space, text))
    found: list[PersonHit] = []
    searched, until = 0, monotonic() + SECONDS
    while True:
        start = skip + searched
        listed = [each.user for each in having[start : start + _PEOPLE_AT_ONCE]]
        users = listed or [each.user.id for each in await view.page_of_people(_PEOPLE_AT_ONCE, start) if not having]
        found = await _search(view, users, text, limit, asked)
        searched += len(users)
        if found or len(users) < _PEOPLE_AT_ONCE or monotonic() >= until:
            break
    best = sorted(found, key=lambda each: -each.hit.score)[:limit]
    for user in dict.fromkeys(each.user for each in best):
        await view.person(user).record_access("memory.search", "search")
    if having:
        await view.look_up(each.user for each in best)
        return Everybody(best, searched, len(having), sum(each.messages for each in having))
    return Everybody(best, searched, total, None)


async def _search(view: View, users: Sequence[str], text: str, limit: int, asked: dict[str, Any]) -> list[PersonHit]:
    found: list[PersonHit] = []

    async def search(user: str, turn: Turn) -> list[PersonHit]:
        person = view.who.person(view.memory, user, space=view.space, audited=False)
        with turn.shared():
            return [PersonHit(user, hit) for hit in await person.search(text, limit, **asked)]

    # All of them in one turn, so that others wait for one search. What several of them read, the store reads together.
    async with view.memory.recall_queue.turn() as turn:
        for first in range(0, len(users), _SIDE_BY_SIDE):
            some = await asyncio.gather(*(search(user, turn) for user in users[first : first + _SIDE_BY_SIDE]))
            found += chain.from_iterable(some)
    return found


def _day(typed: str, field: str) -> datetime | None:
    """Return the start of a day (UTC). Raises InvalidInput for the field."""
    if not typed:
        return None
    try:
        return datetime.combine(date.fromisoformat(typed), time(), UTC)
    except ValueError:
        raise InvalidInput(not_a_day(typed), field) from None


def notable(reasons: Sequence[tuple[str, float]]) -> list[str]:
    return [reason for reason, value in reasons if value >= _NOTABLE][:3]


_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item of a receipt, with what it names as that is now."""

    item: SentItem
    source: SentSource | None

    @property
    def erased(self) -> bool:
        """Whether what it names was erased or taken back since."""
        return self.source is None and self.item.kind != "text"


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of a receipt, with its place on a bar that is the whole context, 0 to 100."""

    section: SentSection
    start: float
    length: float
    items: list[ShownItem]

    @property
    def name(self) -> str:
        return self.section.name


async def receipts_by_reply(person: PersonView, messages: Sequence[Message]) -> dict[int, ContextReceipt]:
    """Return the receipts that led to the assistant's messages among these, by the number of the message."""
    replies = [message.seq for message in messages if message.role == "assistant" and message.user == person.user]
    if not replies:
        return {}
    question = Receipts(person.memory.scope, limit=len(replies) * 2, replies=replies)
    found = await person.view.memory.store.read(question)
    return {receipt.reply: receipt for receipt in reversed(found) if receipt.reply is not None}


@router.get("/person/receipts")
async def receipts(person: Person, before: str = "") -> Response:
    found = await person.memory.receipts(_PAGE, before=before or None)
    more = found[-1].id if len(found) == _PAGE else None
    return await person.page("person/receipts.html", tab="receipts", receipts=found, more=more)


@router.get("/person/receipt")
async def receipt(person: Person, id: str) -> Response:  # noqa: A002 - the name in the address
    found = await person.memory.receipt(id)
    sources = await person.memory.receipt_sources(found)
    wanted = [] if found.reply is None else [found.reply]
    replies = await person.view.memory.store.read(MessagesByNumber(person.memory.scope, wanted))
    return await person.page(
        "person/receipt.html",
        tab="receipts",
        receipt=found,
        sections=shown_sections(found, sources),
        reply=replies[0] if replies and not replies[0].taken_back else None,
    )


def shown_sections(receipt: ContextReceipt, sources: Mapping[tuple[SentKind, int], SentSource]) -> list[ShownSection]:
    """Return the sections of a receipt with what they name, and their places on a bar."""
    found, start = [], 0.0
    for section in receipt.sections:
        length = 100 * section.tokens / max(receipt.tokens, 1)
        items = [ShownItem(each, sources.get((each.kind, each.id or 0))) for each in section.items]
        found.append(ShownSection(section, round(start, 3), round(length, 3), items))
        start += length
    return found


_MOST_TURNS: Final = 200
_TURN_SECONDS: Final = 3_600
"""How long a turn can be kept after it was tried."""
MODES: Final = ("both", "on", "off")


@dataclass(slots=True)
class PlaygroundTurn:
    """A question that was tried, and what came of it."""

    actor: str
    person: UserMemory
    question: str
    receipt: ContextReceipt | None
    """What was sent; None without memory."""
    tokens: int = 0
    pieces: list[str] = field(default_factory=list)
    ended: Reply | None = None
    milliseconds: dict[str, int] = field(default_factory=dict)
    began: float = field(default_factory=perf_counter)

    def note(self, what: str) -> None:
        """Note how long something took since the question was sent, unless it was noted before."""
        self.milliseconds.setdefault(what, round((perf_counter() - self.began) * 1_000))


_turns: Final[TTLCache[str, PlaygroundTurn]] = TTLCache(_MOST_TURNS, _TURN_SECONDS)
"""Turns that can still be kept, by an id that only their page has."""


@router.get("/playground")
async def playground(
    view: Looking, _: App, user: str = "", thread: str = "", text: str = "", mode: str = "both"
) -> Response:
    people = await view.offered()
    whose = await view.find(user) or (people[0].id if people else "")
    threads = await view.person(whose).threads() if whose else []
    chosen = mode if mode in MODES else MODES[0]
    values: dict[str, Any] = {"user": whose, "thread": thread, "text": text, "mode": chosen, "modes": MODES}
    models = view.memory.models
    values["has_model"] = models is not None and models.has("chat")
    return view.page("playground.html", people=people, threads=threads, **values)


@router.post("/playground/ask")
async def ask(
    view: Looking,
    who: App,
    user: Annotated[str, Form()],
    text: Annotated[str, Form()],
    memory: Annotated[Literal["on", "off"], Form()] = "on",
    thread: Annotated[str, Form()] = "",
) -> Response:
    question = typed_text(text)
    if not question.strip():
        raise InvalidInput(translate("write a question"), "text")
    whose = await view.find(user)
    person = who.person(view.memory, whose, space=view.space, thread=thread or None)
    await view.look_up([person.scope.user])
    answer = _events(view, PersonView(view, person.scope.user, person), question, with_memory=memory == "on")

    async def lines() -> AsyncGenerator[bytes, None]:
        """Yield the events of the answer. The last one holds the error, if any: the HTTP status was sent before."""
        try:
            async with aclosing(answer) as events:
                async for event in events:
                    yield json.dumps(event, ensure_ascii=False).encode() + b"\n"
        except AforesaidError as error:
            yield json.dumps({"failed": str(error)}, ensure_ascii=False).encode() + b"\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


@router.post("/playground/keep")
async def keep(view: Looking, who: App, turn: Annotated[str, Form()]) -> Response:
    """Store a turn that was tried: the question, the reply, and the receipt of what was sent."""
    tried = _turns.get(turn)
    if tried is None or tried.actor != who.actor or tried.person.scope.space != view.space:
        raise NotFound("this turn cannot be kept any more: ask again")
    del _turns[turn]
    await tried.person.add("user", tried.question)
    reply = (await tried.person.add("assistant", "".join(tried.pieces))).message
    if tried.receipt is not None:
        receipt = replace(_measured(tried.receipt, tried), reply=reply.seq)
        await view.memory.receipt_keeper.keep(receipt)
    return view.done(translate("Stored."), view.address("/playground", user=tried.person.scope.user))


async def _events(
    view: View, person: PersonView, question: str, *, with_memory: bool
) -> AsyncGenerator[dict[str, Any], None]:
    from aforesaid.models.chat import Said  # noqa: PLC0415 - brings the libraries of models

    messages = [Said("system", SYSTEM), Said("user", question)]
    turn = PlaygroundTurn(view.who.actor, person.memory, question, None)
    if with_memory:
        context = await person.memory.context(question, system=SYSTEM, tools=False, sent=False)
        turn.receipt = view.memory.receipt_keeper.receipt_of(person.memory.scope, view.who.actor, context)
        messages = [Said(each["role"], each["content"]) for each in context.messages]
        turn.tokens = context.tokens
    else:
        plain = [{"role": each.role, "content": each.content} for each in messages]
        turn.tokens = counter_for(None).count_messages(plain)
    yield {"sent": await _rendered(person, turn, "part/playground_sent.html")}
    if (chat := view.memory.models) is None or not chat.has("chat"):
        return

    def ended(reply: Reply) -> None:
        turn.ended = reply

    turn.began = perf_counter()
    async with aclosing(chat.stream("chat", messages, scope=turn.person.scope, ended=ended)) as stream:
        async for piece in stream:
            turn.note("first_byte")
            turn.pieces.append(piece)
            yield {"piece": piece}
    turn.note("reply")
    number = secrets.token_urlsafe(16)
    _turns[number] = turn
    yield {"done": await _rendered(person, turn, "part/playground_done.html", number=number)}


async def _rendered(person: PersonView, turn: PlaygroundTurn, template: str, **values: Any) -> str:  # noqa: ANN401
    receipt = None if turn.receipt is None else _measured(turn.receipt, turn)
    sections = []
    if receipt is not None and not turn.pieces:
        sections = shown_sections(receipt, await person.memory.receipt_sources(receipt))
    answer = person.part(template, receipt=receipt, sections=sections, turn=turn, **values)
    return bytes(answer.body).decode()


def _measured(receipt: ContextReceipt, turn: PlaygroundTurn) -> ContextReceipt:
    ended = turn.ended
    return replace(
        receipt,
        model=None if ended is None else ended.model,
        input_tokens=None if ended is None else ended.prompt_tokens or None,
        output_tokens=None if ended is None else ended.reply_tokens or None,
        milliseconds={**receipt.milliseconds, **turn.milliseconds},
    )
