"""Resources and prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple, TypeVar
from urllib.parse import quote

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from mcp_types import Resource as Listed
from pydantic import Field

from aforesaid.errors import AforesaidError, NotFound
from aforesaid.front.handle import MOST_AT_ONCE
from aforesaid.memory import UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.mcp.message_tools import CALLER, AgentAccess, words_of

_BELOW: Final = "aforesaid://users/{user}"
_MESSAGES: Final = 100
"""The newest messages of a thread that its resource shows."""
_COMPLETIONS: Final = 100
"""Maximum completions in an answer, by the protocol."""
_LISTED_THREADS: Final = 50
"""Maximum threads in the list of resources."""

T = TypeVar("T")


class ResourceSpec(NamedTuple):
    """A kind of resource that a user has."""

    uri: str
    name: str
    title: str
    description: str


PORTRAIT: Final = ResourceSpec(f"{_BELOW}/portrait", "portrait", "Portrait", "What is known about a user, in one text.")
SUMMARIES: Final = ResourceSpec(
    f"{_BELOW}/summaries", "summaries", "Summaries", "Summaries of what a user said, highest level first."
)
TIMELINE: Final = ResourceSpec(
    f"{_BELOW}/timeline", "timeline", "Timeline", "What happened in a user's life and what is to come, in order."
)
THREAD: Final = ResourceSpec(
    f"{_BELOW}/threads/{{thread}}", "thread", "Conversation", f"The newest {_MESSAGES} messages of a thread."
)
MESSAGE: Final = ResourceSpec(f"{_BELOW}/messages/{{id}}", "message", "Message", "One message, whole.")
OF_EVERY_USER: Final = (PORTRAIT, SUMMARIES, TIMELINE)


class Resources(AgentAccess):
    async def portrait(self, user: str) -> str:
        text = await self._read(user, None, lambda person: person.portrait())
        return text or f"Nothing is known about {user}."

    async def summaries(self, user: str) -> str:
        found = await self._read(user, None, lambda person: person.summaries())
        return "\n\n".join(f"{each.period} (level {each.level})\n{each.text}" for each in found) or "No summaries yet."

    async def timeline(self, user: str) -> str:
        found = await self._read(user, None, lambda person: person.timeline(limit=MOST_AT_ONCE))
        dated = ((each.happened, each.text) for each in found)
        lines = [f"{when.start:%Y-%m-%d %H:%M}  {text}" for when, text in dated if when is not None]
        return "\n".join(lines) or "No dated events yet."

    async def thread(self, user: str, thread: str) -> str:
        found = await self._read(user, thread, lambda person: person.history(_MESSAGES, within="thread"))
        if not found:
            raise ResourceNotFoundError(f"there are no messages in the thread {thread!r}")
        return "\n".join(f"[{each.at:%Y-%m-%d %H:%M}] {each.name or each.author}: {each.text}" for each in found)

    async def message(self, user: str, id: str) -> str:  # noqa: A002 - the template's name
        return (await self._read(user, None, lambda person: person.message(id))).text

    async def of_caller(self, who: Credential) -> list[Listed]:
        """Return the resources of the user whom a credential is for; none if it is for several users."""
        if who.user is None:
            return []
        person = who.person(self._memory, who.user)
        threads = await person.threads(_LISTED_THREADS)
        own = [_listed(spec, spec.title, user=who.user) for spec in OF_EVERY_USER]
        return own + [_listed(THREAD, each.id, user=who.user, thread=each.id) for each in threads]

    async def complete(
        self,
        _: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        """Complete the id of a user, of one of their threads, or the name of a person that they know."""
        who, begun = CALLER.get(), argument.value
        given = {} if context is None else context.arguments or {}
        if argument.name == "user":
            if who.user is not None:
                return _completion([who.user], begun)
            users = await self._memory.users(who.space_of(None), actor=who.actor)
            return _completion(sorted(each.id for each in users), begun)
        user = who.user or given.get("user")
        if user is None or argument.name not in {"thread", "name"}:
            return None
        try:
            person = who.person(self._memory, user)
        except AforesaidError:
            return None  # Nothing of a user whom the caller may not reach.
        if argument.name == "thread":
            return _completion([each.id for each in await person.threads(MOST_AT_ONCE)], begun)
        return _completion([each.name for each in await person.people()], begun)

    async def _read(
        self,
        user: str,
        thread: str | None,
        read: Callable[[UserMemory], Awaitable[T]],
    ) -> T:
        """Read from the memory of a user whom the caller may reach, and say in words what went wrong."""
        try:
            return await read(self._person(user, thread=thread))
        except NotFound as error:
            raise ResourceNotFoundError(words_of(error)) from error
        except AforesaidError as error:
            raise ResourceError(words_of(error)) from error


def _listed(spec: ResourceSpec, title: str, **values: str) -> Listed:
    uri = spec.uri.format(**{name: quote(value, safe="") for name, value in values.items()})
    name = "/".join((spec.name, *values.values()))
    return Listed(uri=uri, name=name, title=title, description=spec.description, mime_type="text/plain")


def _completion(values: Sequence[str], begun: str) -> Completion:
    """Return the values that begin with what was written, whatever their case."""
    fitting = [value for value in values if value.casefold().startswith(begun.casefold())]
    return Completion(values=fitting[:_COMPLETIONS], total=len(fitting), has_more=len(fitting) > _COMPLETIONS)


_EVENTS: Final = 50

PromptUser = Annotated[str | None, Field(description="The user. Not needed if the connection is for one user.")]


class Prompts(AgentAccess):
    async def with_memory(
        self,
        message: Annotated[str, Field(description="The message to answer.")],
        user: PromptUser = None,
    ) -> list[UserMessage]:
        """Answer a message with what is remembered about it."""

        with _errors_in_words():
            return self._prompt((await self._person(user).context(message, self._limit.tokens)).text)

    async def about_person(
        self,
        name: Annotated[str, Field(description="A name or a relation, such as Tom or my sister.")],
        user: PromptUser = None,
    ) -> list[UserMessage]:
        """Tell me what I know about a person."""

        with _errors_in_words():
            people = await self._person(user).people(name)
            known = [f"- {memory.text}" for each in people for memory in each.memories] or ["- nothing yet"]
            return self._prompt(f"Tell me about {name}. This is remembered:\n" + "\n".join(known))

    async def coming_up(self, user: PromptUser = None) -> list[UserMessage]:
        """Tell me what is coming up: appointments and reminders."""

        with _errors_in_words():
            person = self._person(user)
            zone = await person.time_zone()
            ahead = await person.timeline(since=datetime.now(UTC), limit=_EVENTS)
            dated = ((each.happened, each.text) for each in ahead)
            events = [f"- {when.start.astimezone(zone):%A %d %B %Y, %H:%M}: {text}" for when, text in dated if when]
            reminders = [
                f"- {each.remind_at.astimezone(zone):%A %d %B %Y, %H:%M}: reminder: {each.text}"
                for each in await person.reminders()
                if each.remind_at is not None
            ]
            known = list(dict.fromkeys(events + reminders)) or ["- nothing"]
            today = datetime.now(zone)
            when = f"Today is {today:%A %d %B %Y}. What is coming up? This is remembered:\n"
            return self._prompt(when + "\n".join(known))

    def _prompt(self, text: str) -> list[UserMessage]:
        return [UserMessage(self._limit.part(text, None)[0])]


@contextmanager
def _errors_in_words() -> Iterator[None]:
    try:
        yield
    except AforesaidError as error:
        raise MCPError(INVALID_PARAMS, words_of(error)) from error
