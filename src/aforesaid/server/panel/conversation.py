"""Conversations of a person as chats: days, bubbles, attachments, tool calls, versions; and the sessions they form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, tzinfo
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Depends, Form, HTTPException
from starlette.responses import Response

from aforesaid.context import Context, Item, LeftOut, SectionReport
from aforesaid.domain.checks import EARLIEST, Within, microseconds, to_zone
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, Position
from aforesaid.domain.scope import Scope, chat_name, is_chat
from aforesaid.domain.summary import Summary
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.memory import UserMemory
from aforesaid.profiles.recipe import SectionName
from aforesaid.server.authentication import Admin, App
from aforesaid.server.languages import N_, plural, translate
from aforesaid.server.panel.search import receipts_by_reply
from aforesaid.server.panel.view import (
    Looking,
    Person,
    PersonView,
    not_a_day,
    shorten,
    typed_text,
    whole_number,
)
from aforesaid.store.memories import Memories
from aforesaid.store.messages import MessageById, Messages, MessagesByNumber, VersionsOf

router = APIRouter()

_PAGE: Final = 50
"""Messages on a page. More are loaded at either end."""
_AROUND: Final = _PAGE // 2
_SESSIONS: Final = 200
_THREADS: Final = 50
_MOST_QUOTED: Final = 20
"""Maximum messages looked up on a page because others reply to them."""
_PREVIEWED: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
"""Images that browsers show and that run nothing."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as a bubble, with what belongs to it."""

    message: Message
    local: datetime
    """When it was said, in the person's time zone."""
    own: bool
    """Whether the person said it: then it is on the right."""
    first: bool
    """Whether somebody else spoke before it, so that the speaker is named."""
    earlier: list[Message] = field(default_factory=list)
    """Its earlier versions, oldest first."""
    reply_to: Message | None = None
    memories: list[MemoryRecord] = field(default_factory=list)
    """Active memories that rest on it."""
    calls: Sequence[tuple[ToolCall, str]] = ()
    """The tools it calls, with their arguments as they are shown."""
    answers: str | None = None
    """The tool that it is the result of."""
    files: Sequence[Part] = ()
    receipt: ContextReceipt | None = None
    """What the model was told when it wrote this."""
    taken_back: list[int] = field(default_factory=list)
    """The messages taken back in a row that it stands for, itself included."""

    @property
    def text(self) -> str:
        """What was said, without what is shown apart from it."""
        if self.message.role == "tool":
            return _pretty(self.message.text)
        captions = "\n".join(part.text for part in self.message.parts if part.text)
        return "" if self.files and self.message.text == captions else self.message.text


@dataclass(frozen=True, slots=True)
class Day:
    """The messages of a day in the person's time zone, as far as they are on the page."""

    day: date
    messages: list[Shown]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages in a row that went into the same archive, or into none."""

    chunk: int | None
    summary: Summary | None
    days: list[Day]


@dataclass(frozen=True, slots=True)
class Chat:
    """Which conversation of a person is read: all that is theirs, or one thread with everybody in it."""

    person: PersonView
    memory: UserMemory
    within: Within
    thread: str

    @property
    def scope(self) -> Scope:
        return self.memory.scope

    async def read(
        self, *, before: Position | None = None, after: Position | None = None, limit: int = _PAGE
    ) -> list[Message]:
        """Return messages in order of time, with tombstones of those that were taken back and without old versions."""
        found = await self.person.view.memory.store.read(
            Messages(self.scope, self.within, limit, before=before, after=after, versions=True)
        )
        return [message for message in found if message.taken_back or not message.replaced]

    async def own(self, seq: int) -> Message:
        """Return the newest version of a message that is the person's. Raises NotFound."""
        message = await self.newest_version(seq)
        if message.user != self.person.user:
            raise NotFound(f"message {seq} is not one of {self.person.name}'s")
        return message

    async def newest_version(self, seq: int) -> Message:
        store = self.person.view.memory.store
        found = await store.read(MessagesByNumber(self.scope, [seq], self.within))
        if not found:
            raise NotFound(f"{self.person.name} has no message {seq} here")
        versions = await store.read(VersionsOf(Scope.of(found[0].user, found[0].space), [seq]))
        return (versions or found)[-1]

    def address(self, path: str = "/person/conversation", **parts: str | int | None) -> str:
        return self.person.address(path, thread=self.thread or None, **parts)

    def done(self, said: str, seq: int | None = None) -> Response:
        """Answer to a change of messages: with the conversation, at one of them."""
        back = self.address() if seq is None else f"{self.address(around=seq)}#m-{seq}"
        return self.person.view.done(said, back, leave=True)


def _chat(person: Person, thread: str = "") -> Chat:
    if not thread:
        return Chat(person, person.memory, "user", "")
    view = person.view
    there = view.who.person(view.memory, person.user, space=view.space, thread=thread)
    return Chat(person, there, "thread", thread)


Chosen = Annotated[Chat, Depends(_chat)]


@router.get("/person/conversation")
async def conversation(
    chat: Chosen,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    day: str = "",
    memory: int | None = None,
    edit: int | None = None,
) -> Response:
    """Show messages as a chat: the newest ones, those beside or around a message, or those from a day on.

    `edit` is a message that is shown as a form.
    """
    person = chat.person
    zone = await person.memory.time_zone()
    marked = None
    if around is not None:
        marked = await chat.newest_version(around)
        found = [
            *await chat.read(before=marked.position, limit=_AROUND),
            marked,
            *await chat.read(after=marked.position, limit=_AROUND),
        ]
    elif day.strip():
        try:
            start = start_of(date.fromisoformat(day.strip()), zone)
        except ValueError:
            raise InvalidInput(not_a_day(day), "day") from None
        found = await chat.read(after=start) or await chat.read(before=start)
    elif after is not None:
        found = await chat.read(after=(await chat.newest_version(after)).position)
    else:
        found = await chat.read(before=None if before is None else (await chat.newest_version(before)).position)
    await person.memory.record_access("messages.read", "history")
    values = {
        "chat": chat,
        "stretches": await _stretches(chat, found, zone),
        "earlier": await _edge(chat, found, "before"),
        "later": await _edge(chat, found, "after"),
        "marked": None if marked is None else marked.seq,
        "editing": edit,
        "zone": zone,
    }
    threads = await person.memory.threads(_THREADS)
    await look_up_titles(person, [*(each.id for each in threads), *(message.thread for message in found)])
    if person.view.partly:
        values["earlier" if after is not None else "later"] = None
        return person.part("part/stretches.html", **values)
    source = None if memory is None else await person.view.memory.memory(memory, space=person.view.space)
    return await person.page(
        "person/conversation.html",
        tab="conversation",
        threads=threads,
        clearable=next((each for each in threads if each.id == chat.thread or len(threads) == 1), None),
        source=source if source is not None and source.user == person.user else None,
        day=day.strip(),
        **values,
    )


_TITLE: Final = 48
"""Maximum characters of the title of a chat."""


async def look_up_titles(person: PersonView, threads: Iterable[str]) -> None:
    """Give each of several private chats a title: the first words that the person wrote in it."""
    for thread in {each for each in threads if is_chat(each)} - person.view.titles.keys():
        scope = Scope.of(person.user, person.view.space, thread)
        first = Messages(scope, "thread", 1, after=Position(EARLIEST, 0), where=MessageFilter(role="user"))
        said = await person.view.memory.store.read(first)
        words = " ".join(said[0].shown_text.split()) if said else chat_name(thread)
        person.view.titles[thread] = shorten(words, _TITLE)


@router.post("/person/message/{seq}/edit")
async def edit(chat: Chosen, _: App, seq: int, text: Annotated[str, Form()]) -> Response:
    written = typed_text(text).strip()
    if not written:
        raise InvalidInput(translate("write what the message is to say, or take it back"), "text")
    stored = await chat.memory.edit(await chat.own(seq), written)
    return chat.done(translate("Edited. The earlier words stay in the log."), stored.message.seq)


@router.post("/person/message/{seq}/take-back")
async def take_back(chat: Chosen, _: App, seq: int) -> Response:
    stored = await chat.memory.take_back(await chat.own(seq))
    return chat.done(translate("Taken back. It is not shown, found or sent to a model any more."), stored.message.seq)


@router.post("/person/bring-back")
async def bring_back(chat: Chosen, _: App, message: Annotated[list[int], Form()]) -> Response:
    """Bring back messages that were taken back."""
    count = await chat.memory.bring_back([await chat.own(seq) for seq in message[:_PAGE]])
    return chat.done(plural("{count} message is back.", "{count} messages are back.", count), message[0])


@router.post("/person/message/{seq}/erase")
async def erase(chat: Chosen, _: Admin, seq: int) -> Response:
    """Erase a message for good, in all its versions."""
    await chat.memory.erase(await chat.own(seq))
    return chat.done(translate("Erased for good."))


@router.post("/person/clear")
async def clear(
    chat: Chosen, who: App, where: Annotated[str, Form()], for_good: Annotated[str, Form()] = ""
) -> Response:
    """Take back, or erase, all that the person and the assistant said in a chat."""
    if for_good and not who.may("admin"):
        raise HTTPException(403, translate("Only a key with the role admin erases for good."))
    count = await chat.memory.clear(where, erase=bool(for_good))
    if for_good:
        return chat.done(plural("{count} message erased for good.", "{count} messages erased for good.", count))
    return chat.done(plural("{count} message taken back.", "{count} messages taken back.", count))


@router.get("/person/sessions")
async def sessions(person: Person) -> Response:
    found = await person.memory.sessions(_SESSIONS)
    most = max((each.messages for each in found), default=0)
    await look_up_titles(person, (each.thread for each in found))
    return await person.page("person/sessions.html", tab="sessions", sessions=found[::-1], most=most)


@router.get("/person/session")
async def session(person: Person, session: str) -> Response:
    there = person.view.who.person(person.view.memory, person.user, space=person.view.space, session=session)
    messages = await there.history(_PAGE * 10, within="session")
    return person.part("part/messages.html", **await shown_messages(person, messages))


async def shown_messages(person: PersonView, messages: list[Message]) -> dict[str, object]:
    """Return what `part/messages.html` needs to show messages that are no page of a conversation."""
    zone = await person.memory.time_zone()
    chat = Chat(person, person.memory, "user", "")
    await look_up_titles(person, (message.thread for message in messages))
    days = _days(await _bubbles(chat, messages, zone))
    return {"days": days, "chat": chat, "marked": None, "editing": None, "zone": zone}


def start_of(day: date, zone: tzinfo) -> Position:
    return Position(microseconds(datetime.combine(day, time(), zone), "the day", "day"), 0)


async def _edge(chat: Chat, found: Sequence[Message], side: str) -> int | None:
    """Return the message at an end of the page if there are more messages beyond it."""
    if not found:
        return None
    if side == "before":
        return found[0].seq if await chat.read(before=found[0].position, limit=1) else None
    return found[-1].seq if await chat.read(after=found[-1].position, limit=1) else None


async def _stretches(chat: Chat, messages: list[Message], zone: tzinfo) -> list[Stretch]:
    """Take messages apart where an archive begins and where a day does."""
    summaries: dict[int, Summary] = {}
    if any(message.chunk for message in messages):
        # The summary that each archive was made for: the lowest one, in its newest version.
        made = await chat.person.memory.summaries(active=None, kind="tree")
        lowest = [summary for summary in made if summary.level == 1 and not summary.rolled_back]
        for summary in sorted(lowest, key=lambda each: each.version):
            summaries |= dict.fromkeys(summary.chunks, summary)
    found: list[tuple[int | None, list[Shown]]] = []
    for each in await _bubbles(chat, messages, zone):
        chunk = each.message.chunk
        if not found or found[-1][0] != chunk:
            found.append((chunk, []))
        found[-1][1].append(each)
    return [Stretch(chunk, None if chunk is None else summaries.get(chunk), _days(row)) for chunk, row in found]


def _days(messages: Iterable[Shown]) -> list[Day]:
    found: list[Day] = []
    for each in messages:
        if not found or found[-1].day != each.local.date():
            found.append(Day(each.local.date(), []))
        found[-1].messages.append(each)
    return found


async def _bubbles(chat: Chat, messages: Sequence[Message], zone: tzinfo) -> list[Shown]:
    person = chat.person
    await person.view.look_up(name for message in messages for name in (message.author, message.user))
    versions = await _versions(chat, messages)
    quoted_messages = await _quoted(chat, messages)
    here = {message.seq for message in messages}
    remembered: dict[int, list[MemoryRecord]] = {}
    for memory in await person.view.memory.store.read(Memories(person.memory.scope)):
        for seq in here.intersection(memory.sources):
            remembered.setdefault(seq, []).append(memory)
    receipts = await receipts_by_reply(person, messages)
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    found: list[Shown] = []
    last: Message | None = None
    for message in messages:
        first = last is None or (last.author, last.role) != (message.author, message.role) or last.taken_back
        if message.taken_back and last is not None and last.taken_back and last.user == message.user:
            found[-1].taken_back.append(message.seq)
            last = message
            continue
        details = message.all_details
        found.append(
            Shown(
                message,
                to_zone(message.at, zone),
                own=message.role == "user" and message.author == person.user,
                first=first,
                earlier=versions.get(message.seq, []),
                reply_to=quoted_messages.get(details.reply_to or ""),
                memories=remembered.get(message.seq, []),
                calls=[(call, _pretty(call.arguments)) for call in details.tool_calls],
                answers=None if details.tool_call_id is None else tools.get(details.tool_call_id, details.tool_call_id),
                files=[part for part in details.parts if part.type != "text"],
                receipt=receipts.get(message.seq),
                taken_back=[message.seq] if message.taken_back else [],
            )
        )
        last = message
    return found


async def _versions(chat: Chat, messages: Sequence[Message]) -> dict[int, list[Message]]:
    """Return the earlier versions of edited messages by the number of the newest one."""
    edited = [message for message in messages if message.replaces is not None and not message.taken_back]
    by_owner: dict[str, list[Message]] = {}
    for message in edited:
        by_owner.setdefault(message.user, []).append(message)
    earlier: dict[int, list[Message]] = {}
    for owner, theirs in by_owner.items():
        scope = Scope.of(owner, theirs[0].space)
        wanted = VersionsOf(scope, [message.seq for message in theirs])
        every = {message.seq: message for message in await chat.person.view.memory.store.read(wanted)}
        for message in theirs:
            before = every.get(message.replaces or 0)
            while before is not None:
                earlier.setdefault(message.seq, []).insert(0, before)
                before = every.get(before.replaces or 0)
    return earlier


async def _quoted(chat: Chat, messages: Sequence[Message]) -> dict[str, Message]:
    """Return the messages that others reply to, by their ids, as far as they are there."""
    wanted = dict.fromkeys(message.reply_to for message in messages if message.reply_to)
    found = {message.id: message for message in messages if message.id in wanted}
    missing = [each for each in wanted if each not in found][:_MOST_QUOTED]
    for each in missing:
        try:
            question = MessageById(chat.scope, each, chat.within)
            message = await chat.person.view.memory.store.read(question)
            found[each] = await chat.newest_version(message.seq) if message.replaced else message
        except NotFound:
            continue
    await chat.person.view.look_up(message.author for message in found.values())
    return found


def _pretty(text: str) -> str:
    """Return JSON with line breaks; any other text as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


def previewed(part: Part) -> bool:
    return part.type == "image" and part.hash is not None and part.url is None and part.media_type in _PREVIEWED


WHY: Final[Mapping[SectionName, str]] = {
    "system": N_("The application's own instructions; always in, cut before anything is dropped."),
    "rules": N_("The profile's rules for using what is quoted."),
    "persona": N_("The character of the bot."),
    "instructions": N_("Standing requests of the person, for the model to follow."),
    "portrait": N_("What should be known about the person."),
    "habits": N_("What the person seems to like, counted in what they said."),
    "memories": N_("Memories that this message is about; without a portrait also the most important ones."),
    "summaries": N_("Summaries of older messages, highest level first."),
    "snippets": N_("What the search found for this message: best first here, sent in the order of time."),
    "recent": N_("The newest messages, word for word; the last exchange is always in."),
    "date": N_("Date, weekday, time and time zone of the person."),
    "current": N_("The message itself; always in."),
}


class Section(NamedTuple):
    """A section of a context, with what is in it and what is not."""

    report: SectionReport
    why: str
    items: list[Item]
    left_out: list[LeftOut]
    start: float
    """Where its part of the budget's bar begins, and how long it is, up to 100."""
    length: float


@router.get("/context")
async def context(
    view: Looking, text: str = "", user: str = "", budget: str = "", system: str = "", persona: str = ""
) -> Response:
    people = await view.offered()
    whose = await view.find(user) or (people[0].id if people else "")
    made: Context | None = None
    if text.strip() and whose:
        made = await view.person(whose).context(
            typed_text(text),
            whole_number(budget, translate("the budget"), "budget") if budget.strip() else None,
            system=typed_text(system) or None,
            persona=typed_text(persona) or None,
        )
    return view.page(
        "context.html",
        text=text,
        user=whose,
        people=people,
        budget=budget,
        system=system,
        persona=persona,
        context=made,
        sections=[] if made is None else list(sections(made)),
    )


def sections(context: Context) -> Iterator[Section]:
    start = 0.0
    for report in context.sections:
        length = 100 * report.tokens / max(context.budget, 1)
        yield Section(
            report,
            WHY[report.name],
            sorted(
                (item for item in context.items if item.section == report.name),
                key=lambda item: -(item.score or 0.0) if report.name == "snippets" else 0.0,
            ),
            [left for left in context.left_out if left.item.section == report.name],
            round(start, 3),
            round(length, 3),
        )
        start += length
