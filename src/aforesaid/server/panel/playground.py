"""Try it: ask a question with the memory on, off, or both side by side, and see what was sent. Nothing is stored.

The answer to one question is a stream of lines, each a JSON object: `sent` (what goes to the model, as a part of a
page), `piece` (of the reply), and at the end `done` (figures, as a part of a page) or `failed`. A turn that somebody
asks to keep is stored from what the server itself has of it, never from what a browser sends.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cachetools import TTLCache
from fastapi import APIRouter, Form
from starlette.responses import Response, StreamingResponse

from aforesaid.assistant import SYSTEM
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.errors import AforesaidError, InvalidInput, NotFound
from aforesaid.memory import UserMemory
from aforesaid.models.tokens import counter_for
from aforesaid.server.dependencies import App
from aforesaid.server.languages import translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.receipts import shown_sections
from aforesaid.server.panel.view import Looking, PersonView, View

if TYPE_CHECKING:
    from aforesaid.models.chat import Reply, Said

router = APIRouter()

_MOST_TURNS: Final = 200
_TURN_SECONDS: Final = 3_600
"""How long a turn can be kept after it was tried."""
MODES: Final = ("both", "on", "off")


@dataclass(slots=True)
class Turn:
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


_turns: Final[TTLCache[str, Turn]] = TTLCache(_MOST_TURNS, _TURN_SECONDS)
"""Turns that can still be kept, by an id that only their page has."""


@router.get("/playground")
async def playground(
    view: Looking, who: App, user: str = "", thread: str = "", text: str = "", mode: str = "both"
) -> Response:
    """Show the form."""
    del who
    people = await view.offered()
    whose = await view.find(user) or (people[0].id if people else "")
    threads = await view.person(whose).threads() if whose else []
    chosen = mode if mode in MODES else MODES[0]
    values: dict[str, Any] = {"user": whose, "thread": thread, "text": text, "mode": chosen, "modes": MODES}
    return view.page("playground.html", people=people, threads=threads, has_model=_has_model(view), **values)


@router.post("/playground/ask")
async def ask(
    view: Looking,
    who: App,
    user: Annotated[str, Form()],
    text: Annotated[str, Form()],
    memory: Annotated[Literal["on", "off"], Form()] = "on",
    thread: Annotated[str, Form()] = "",
) -> Response:
    """Answer a question, line by line."""
    question = forms.text(text)
    if not question.strip():
        raise InvalidInput(translate("write a question"), "text")
    whose = await view.find(user)
    person = who.person(view.memory, whose, space=view.space, thread=thread or None)
    await view.look_up([person.scope.user])
    lines = _lines(view, PersonView(view, person.scope.user, person), question, with_memory=memory == "on")
    return StreamingResponse(lines, media_type="application/x-ndjson")


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


async def _lines(view: View, person: PersonView, question: str, *, with_memory: bool) -> AsyncGenerator[bytes, None]:
    """Yield the events of one answer. The last one holds the error, if any: the HTTP status was sent before."""
    try:
        async with aclosing(_events(view, person, question, with_memory=with_memory)) as events:
            async for event in events:
                yield json.dumps(event, ensure_ascii=False).encode() + b"\n"
    except AforesaidError as error:
        yield json.dumps({"failed": str(error)}, ensure_ascii=False).encode() + b"\n"


async def _events(
    view: View, person: PersonView, question: str, *, with_memory: bool
) -> AsyncGenerator[dict[str, Any], None]:
    from aforesaid.models.chat import Said  # noqa: PLC0415 - brings the libraries of models

    messages = [Said("system", SYSTEM), Said("user", question)]
    turn = Turn(view.who.actor, person.memory, question, None)
    if with_memory:
        context = await person.memory.context(question, system=SYSTEM, tools=False, sent=False)
        turn.receipt = view.memory.receipt_keeper.receipt_of(person.memory.scope, view.who.actor, context)
        messages = [Said(each["role"], each["content"]) for each in context.messages]
        turn.tokens = context.tokens
    else:
        plain = [{"role": each.role, "content": each.content} for each in messages]
        turn.tokens = counter_for(None).count_messages(plain)
    yield {"sent": await _rendered(person, turn, "part/playground_sent.html")}
    if not _has_model(view):
        return
    async with aclosing(_replied(view, turn, messages)) as pieces:
        async for piece in pieces:
            yield {"piece": piece}
    number = secrets.token_urlsafe(16)
    _turns[number] = turn
    yield {"done": await _rendered(person, turn, "part/playground_done.html", number=number)}


async def _replied(view: View, turn: Turn, messages: list[Said]) -> AsyncGenerator[str, None]:
    """Yield the reply of the model, and note how long it takes."""
    chat = view.memory.models
    assert chat is not None  # noqa: S101 - checked by the caller

    def ended(reply: Reply) -> None:
        turn.ended = reply

    turn.began = perf_counter()
    async with aclosing(chat.stream("chat", messages, scope=turn.person.scope, ended=ended)) as stream:
        async for piece in stream:
            turn.note("first_byte")
            turn.pieces.append(piece)
            yield piece
    turn.note("reply")


async def _rendered(person: PersonView, turn: Turn, template: str, **values: Any) -> str:  # noqa: ANN401
    """Return a part of the page about a turn."""
    receipt = None if turn.receipt is None else _measured(turn.receipt, turn)
    sections = []
    if receipt is not None and not turn.pieces:
        sections = shown_sections(receipt, await person.memory.receipt_sources(receipt))
    answer = person.part(template, receipt=receipt, sections=sections, turn=turn, **values)
    return bytes(answer.body).decode()


def _measured(receipt: ContextReceipt, turn: Turn) -> ContextReceipt:
    """Return a receipt with what the model reported."""
    ended = turn.ended
    return replace(
        receipt,
        model=None if ended is None else ended.model,
        input_tokens=None if ended is None else ended.prompt_tokens or None,
        output_tokens=None if ended is None else ended.reply_tokens or None,
        milliseconds={**receipt.milliseconds, **turn.milliseconds},
    )


def _has_model(view: View) -> bool:
    return view.memory.models is not None and view.memory.models.has("chat")
