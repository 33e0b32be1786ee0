"""The tools for messages and threads."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Self

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from aforesaid.domain.checks import Role
from aforesaid.domain.message import Message
from aforesaid.domain.thread import Thread as ThreadRecord
from aforesaid.server.api.message_params import MessageBody
from aforesaid.server.api.params import cursor_of, number_of, text_of
from aforesaid.server.mcp.access import AgentAccess
from aforesaid.server.mcp.answers import CursorArgument, Item, NextCursor
from aforesaid.server.mcp.arguments import MOST, Author, Chat, Limit, Metadata, OfRole, Since, Thread, Until, User
from aforesaid.server.shapes import BatchShape, ErasedShape, MessageCount

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

    @classmethod
    def of(cls, message: Message) -> Self:
        """Show a message in short."""
        return cls(
            id=message.id,
            role=message.role,
            author=message.author,
            text=message.text,
            at=message.at,
            thread=message.thread,
            metadata=dict(message.metadata),
        )


class MessageList(BaseModel):
    """Messages, oldest first. The next page has earlier ones."""

    messages: list[MessageItem]
    next: NextCursor


class ThreadItem(Item):
    """A conversation of a user."""

    LONG: ClassVar[str] = "last_text"

    id: str
    chat: str | None = Field(description="The id of the private chat that this is; null for any other thread.")
    messages: int = Field(description="Number of the user's messages in it.")
    first_at: datetime
    last_at: datetime
    last_text: str = Field(description="The beginning of the newest message.")

    @classmethod
    def of(cls, thread: ThreadRecord) -> Self:
        """Show a thread."""
        return cls(**{name: getattr(thread, name) for name in cls.model_fields if name != "cut"})


class ThreadList(BaseModel):
    """Threads, the one with the newest message first."""

    threads: list[ThreadItem]
    next: NextCursor


class MessageTools(AgentAccess):
    """What an agent can do with messages."""

    async def get_messages(
        self,
        ctx: Context[Any, Any],
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
        person = self._person(ctx, user, thread=thread, chat=chat)
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
        page = self._limit.fit(MessageItem.of(each) for each in reversed(found))
        page.reverse()
        more = page and (len(page) < len(found) or len(found) == limit)
        first = found[len(found) - len(page)].seq if more else None
        return MessageList(messages=page, next=None if first is None else cursor_of(first))

    async def count_messages(
        self,
        ctx: Context[Any, Any],
        role: OfRole = None,
        author: Author = None,
        since: Since = None,
        until: Until = None,
        metadata: Metadata = None,
        user: User = None,
    ) -> MessageCount:
        """Count a user's messages, all of them or those of a role, an author, a time or with certain metadata."""
        person = self._person(ctx, user)
        count = await person.count(role=role, author=author, since=since, until=until, metadata=metadata)
        return MessageCount(count=count)

    async def list_threads(
        self,
        ctx: Context[Any, Any],
        limit: Limit = _PAGE,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> ThreadList:
        """List the conversations (threads) that a user has messages in, the one with the newest message first."""
        found = await self._person(ctx, user).threads(limit, before=text_of(cursor))
        page = self._limit.fit(map(ThreadItem.of, found))
        more = page and (len(page) < len(found) or len(found) == limit)
        return ThreadList(threads=page, next=cursor_of(page[-1].id) if more else None)

    async def add_messages(
        self,
        ctx: Context[Any, Any],
        messages: Annotated[list[MessageBody], Field(max_length=MOST, description="The messages, in their order.")],
        thread: Thread = None,
        chat: Chat = None,
        user: User = None,
    ) -> BatchShape:
        """Store messages of a conversation, all of them or none. They can be found at once."""
        person = self._person(ctx, user, thread=thread, chat=chat)
        return BatchShape.of(await person.add_many([message.arguments() for message in messages]))

    async def edit_message(
        self,
        ctx: Context[Any, Any],
        id: MessageId,  # noqa: A002 - the name that agents know
        text: Annotated[str | None, Field(description="The new text.")] = None,
        metadata: Annotated[dict[str, Any] | None, Field(description="The new metadata.")] = None,
        user: User = None,
    ) -> MessageItem:
        """Correct a message that was stored. What is not given stays as it is; what it was before is kept."""
        receipt = await self._person(ctx, user).edit(id, text, metadata=metadata)
        return MessageItem.of(receipt.message)

    async def take_back_message(
        self,
        ctx: Context[Any, Any],
        id: MessageId,  # noqa: A002
        user: User = None,
    ) -> MessageItem:
        """Take a message back, because somebody asked for it: it is not found, shown or used any more."""
        receipt = await self._person(ctx, user).take_back(id)
        return MessageItem.of(receipt.message)

    async def erase_messages(
        self,
        ctx: Context[Any, Any],
        ids: Annotated[list[str], Field(min_length=1, max_length=MOST, description="The ids of the messages.")],
        user: User = None,
    ) -> ErasedShape:
        """Erase messages for good, with all that was made from them. This cannot be undone; ask the user first."""
        return ErasedShape.model_validate(await self._person(ctx, user).erase(ids))

    async def clear_thread(
        self,
        ctx: Context[Any, Any],
        thread: Thread = None,
        chat: Chat = None,
        erase: Annotated[bool, Field(description="Erase the messages for good.")] = False,
        user: User = None,
    ) -> MessageCount:
        """Take back all messages that the user has in a thread or a chat, or erase them for good. Returns how many."""
        return MessageCount(count=await self._person(ctx, user, thread=thread, chat=chat).clear(erase=erase))
