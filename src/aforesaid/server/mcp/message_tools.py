"""The tools for messages and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, Field

from aforesaid.domain.checks import Role
from aforesaid.errors import AforesaidError, InvalidInput, NotFound
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.client import redact
from aforesaid.models.tokens import TokenCounter, counter_for
from aforesaid.server.api.params import MessageBody, cursor_of, number_of, text_of
from aforesaid.server.auth import Credential
from aforesaid.server.schemas import BatchShape, ErasedShape, MessageCount, Shape, ThreadShape

USUAL_TOKENS: Final = 4_000
"""Maximum tokens of an answer unless `server.mcp_tokens` is set."""
_FRAME: Final = 80
"""Tokens kept free for what surrounds the items of an answer: the names of its fields and the cursor."""
_PER_ITEM: Final = 4
"""Tokens of the separators around an item."""
_CUT: Final = " …"

CursorArgument = Annotated[str | None, Field(description="`next` of the page before. Leave it out for the first page.")]
NextCursor = Annotated[
    str | None, Field(description="Pass it as `cursor`, with the same other arguments, for more; null at the end.")
]
ItemT = TypeVar("ItemT", bound="Item")
T = TypeVar("T")


class Item(Shape):
    """One entry of a list."""

    LONG: ClassVar[str] = "text"
    """The field that is cut if the item is too long for an answer."""

    cut: bool | None = Field(default=None, description="True if the text is too long for an answer, and was cut.")

    def shortened(self, counter: TokenCounter, tokens: int) -> Self:
        """Return the item with its text cut, so that it has at most this many tokens."""
        item = self
        while (text := getattr(item, self.LONG).removesuffix(_CUT)) and (
            over := counter.count(item.model_dump_json()) - tokens
        ) > 0:
            # Quotes and line breaks have more tokens in JSON than in the text, so this may take several rounds.
            less = counter.cut(text, max(counter.count(text) - over - 2, 0))
            item = item.model_copy(update={self.LONG: less.rstrip() + _CUT, "cut": True})
        if counter.count(item.model_dump_json()) > tokens:  # Metadata or tags are longer than an answer.
            empty = {name: type(value)() for name, value in item if isinstance(value, dict | list)}
            item = item.model_copy(update=empty | {"cut": True})
        return item


class AnswerLimit:
    """How long an answer may be."""

    def __init__(self, tokens: int = USUAL_TOKENS) -> None:
        self.tokens: Final = tokens
        """Maximum tokens of an answer (`server.mcp_tokens`)."""

    def fit(self, items: Iterable[ItemT]) -> list[ItemT]:
        """Return the first items that fit, at least one."""
        counter = counter_for()
        room = self.tokens - _FRAME
        taken: list[ItemT] = []
        for item in items:
            size = counter.count(item.model_dump_json()) + _PER_ITEM
            if size > room and taken:
                break
            taken.append(item if size <= room else item.shortened(counter, room))
            room -= size
        return taken

    def page(
        self, found: Sequence[T], cursor: str | None, make: Callable[[T], ItemT], *, most: int | None = None
    ) -> tuple[list[ItemT], str | None]:
        """Return the items of a list that a page has room for, and the cursor of the next page.

        The cursor is the place in the list where a page begins. `most` limits the number of items.
        """
        start = number_of(cursor) or 0
        stop = None if most is None else start + most
        items = self.fit(make(each) for each in found[start:stop])
        after = start + len(items)
        return items, cursor_of(after) if items and after < len(found) else None

    def part(self, text: str, cursor: str | None) -> tuple[str, str | None]:
        """Return the part of a text that an answer has room for, and the cursor of the next part.

        The cursor is the number of characters before the part.
        """
        start = number_of(cursor) or 0
        rest = text[start:]
        fitting = counter_for().cut(rest, self.tokens - _FRAME)
        return fitting, cursor_of(start + len(fitting)) if 0 < len(fitting) < len(rest) else None


CALLER: Final[ContextVar[Credential]] = ContextVar("aforesaid_mcp_caller")
"""The credential of the request that is handled."""


def words_of(error: AforesaidError) -> str:
    """Return what an error says, without secrets, and in characters that can be sent."""
    return redact(str(error)).encode(errors="backslashreplace").decode()


class AgentAccess:
    """Finds the memory that a request of an agent may use. The base of tools, resources and prompts.

    That a key may write is checked for all tools in one place, `AgentServer.call_tool`.
    """

    def __init__(self, memory: Memory, limit: AnswerLimit) -> None:
        self._memory = memory
        self._limit = limit

    def _person(self, user: str | None, *, thread: str | None = None, chat: str | None = None) -> UserMemory:
        """Return the memory of the user that a call is about. Raises InvalidInput if it names none."""
        who = CALLER.get()
        named = who.user_of(user)
        if named is None:
            raise InvalidInput("this connection is for several users; pass the argument `user` to say whose memory")
        return who.person(self._memory, named, thread=thread, chat=chat)

    async def _owner(self, number: int) -> UserMemory:
        """Return the memory of the user to whom a memory with this id belongs. Raises NotFound, also for others'."""
        who = CALLER.get()
        found = await self._memory.memory(number, space=who.space_of(None))
        if who.user not in (None, found.user):
            raise NotFound(f"there is no memory {number}")
        return who.person(self._memory, found.user)


MOST: Final = 200
"""Maximum entries that an agent can ask for at once."""

User = Annotated[str | None, Field(description="The user. Not needed if the connection is for one user.")]
Limit = Annotated[int, Field(ge=1, le=MOST, description="Maximum entries. Fewer are returned if they are long.")]
Thread = Annotated[str | None, Field(description="A channel that users share. Default: the user's direct chat.")]
Chat = Annotated[
    str | None, Field(description="One of the user's private chats, by its id. Default: the user's direct chat.")
]
OfRole = Annotated[Role | None, Field(description="Only messages of this role.")]
Author = Annotated[str | None, Field(description="Only messages that this id wrote.")]
Since = Annotated[AwareDatetime | None, Field(description="Only messages said at this time or later.")]
Until = Annotated[AwareDatetime | None, Field(description="Only messages said before this time.")]
Metadata = Annotated[
    dict[str, Any] | None, Field(description="Only messages whose metadata has these keys with equal values.")
]


_PAGE: Final = 20
"""Messages or threads in a list unless the agent asks for more."""

MessageId = Annotated[str, Field(description="The id of the message, as get_messages returned it.")]


class MessageItem(Item):
    """One message in a list."""

    id: str
    role: Role
    author: str
    text: str = Field(description="The resource aforesaid://users/…/messages/… has it whole if it was cut.")
    at: datetime
    thread: str
    metadata: dict[str, Any]


class MessageList(BaseModel):
    """Messages, oldest first. The next page has earlier ones."""

    messages: list[MessageItem]
    next: NextCursor


class ThreadItem(ThreadShape, Item):
    """A conversation of a user."""

    LONG: ClassVar[str] = "last_text"


class ThreadList(BaseModel):
    """Threads, the one with the newest message first."""

    threads: list[ThreadItem]
    next: NextCursor


class MessageTools(AgentAccess):
    async def get_messages(
        self,
        limit: Limit = _PAGE,
        cursor: CursorArgument = None,
        thread: Annotated[str | None, Field(description="Only this thread, with everybody's messages.")] = None,
        chat: Annotated[str | None, Field(description="Only this private chat of the user.")] = None,
        role: OfRole = None,
        author: Author = None,
        since: Since = None,
        until: Until = None,
        metadata: Metadata = None,
        user: User = None,
    ) -> MessageList:
        """Read the history of a conversation as it was: the newest messages, in order of time.

        The next page has earlier ones. Use search_memories to find something in particular.
        """
        person = self._person(user, thread=thread, chat=chat)
        found = await person.history(
            limit,
            before=number_of(cursor),
            within="user" if thread is chat is None else "thread",
            role=role,
            author=author,
            since=since,
            until=until,
            metadata=metadata,
        )
        page = self._limit.fit(map(MessageItem.model_validate, reversed(found)))
        page.reverse()
        more = page and (len(page) < len(found) or len(found) == limit)
        first = found[len(found) - len(page)].seq if more else None
        return MessageList(messages=page, next=None if first is None else cursor_of(first))

    async def count_messages(
        self,
        role: OfRole = None,
        author: Author = None,
        since: Since = None,
        until: Until = None,
        metadata: Metadata = None,
        user: User = None,
    ) -> MessageCount:
        """Count a user's messages, all of them or those of a role, an author, a time or with certain metadata."""
        person = self._person(user)
        count = await person.count(role=role, author=author, since=since, until=until, metadata=metadata)
        return MessageCount(count=count)

    async def list_threads(
        self,
        limit: Limit = _PAGE,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> ThreadList:
        """List the conversations (threads) that a user has messages in, the one with the newest message first."""
        found = await self._person(user).threads(limit, before=text_of(cursor))
        page = self._limit.fit(map(ThreadItem.model_validate, found))
        more = page and (len(page) < len(found) or len(found) == limit)
        return ThreadList(threads=page, next=cursor_of(page[-1].id) if more else None)

    async def add_messages(
        self,
        messages: Annotated[list[MessageBody], Field(max_length=MOST, description="The messages, in their order.")],
        thread: Thread = None,
        chat: Chat = None,
        user: User = None,
    ) -> BatchShape:
        """Store messages of a conversation, all of them or none. They can be found at once."""
        person = self._person(user, thread=thread, chat=chat)
        return BatchShape.of(await person.add_many([message.arguments() for message in messages]))

    async def edit_message(
        self,
        id: MessageId,  # noqa: A002 - the name that agents know
        text: Annotated[str | None, Field(description="The new text.")] = None,
        metadata: Annotated[dict[str, Any] | None, Field(description="The new metadata.")] = None,
        user: User = None,
    ) -> MessageItem:
        """Correct a message that was stored. What is not given stays as it is; what it was before is kept."""
        receipt = await self._person(user).edit(id, text, metadata=metadata)
        return MessageItem.model_validate(receipt.message)

    async def take_back_message(
        self,
        id: MessageId,  # noqa: A002
        user: User = None,
    ) -> MessageItem:
        """Take a message back, because somebody asked for it: it is not found, shown or used any more."""
        receipt = await self._person(user).take_back(id)
        return MessageItem.model_validate(receipt.message)

    async def erase_messages(
        self,
        ids: Annotated[list[str], Field(min_length=1, max_length=MOST, description="The ids of the messages.")],
        user: User = None,
    ) -> ErasedShape:
        """Erase messages for good, with all that was made from them. This cannot be undone; ask the user first."""
        return ErasedShape.model_validate(await self._person(user).erase(ids))

    async def clear_thread(
        self,
        thread: Thread = None,
        chat: Chat = None,
        erase: Annotated[bool, Field(description="Erase the messages for good.")] = False,
        user: User = None,
    ) -> MessageCount:
        """Take back all messages that the user has in a thread or a chat, or erase them for good. Returns how many."""
        return MessageCount(count=await self._person(user, thread=thread, chat=chat).clear(erase=erase))
