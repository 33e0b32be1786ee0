"""The tools for messages and threads."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Self

from mcp.server.mcpserver import Context
from pydantic import AwareDatetime, BaseModel, Field

from aforesaid.domain.literals import Role
from aforesaid.domain.message import Message
from aforesaid.server.api.message_params import MessageBody
from aforesaid.server.mcp.tools import User, errors_told
from aforesaid.server.mcp.who import AgentAccess
from aforesaid.server.shapes import BatchShape, ErasedShape, MessageCount, ThreadShape

_PAGE: Final = 20
"""Messages or threads in a list unless the agent asks for more."""
_MOST: Final = 200
"""Maximum messages or threads in a list, and messages added at once."""

Thread = Annotated[str | None, Field(description="A channel or conversation. Default: the user's direct chat.")]
OfRole = Annotated[Role | None, Field(description="Only messages of this role.")]
Author = Annotated[str | None, Field(description="Only messages that this id wrote.")]
Since = Annotated[AwareDatetime | None, Field(description="Only messages said at this time or later.")]
Until = Annotated[AwareDatetime | None, Field(description="Only messages said before this time.")]
MessageId = Annotated[str, Field(description="The id of the message, as get_messages returned it.")]
Metadata = Annotated[
    dict[str, Any] | None, Field(description="Only messages whose metadata has these keys with equal values.")
]


class MessageItem(BaseModel):
    """One message in a list."""

    id: str
    role: Role
    author: str
    text: str
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
    """Messages, oldest first."""

    messages: list[MessageItem]


class ThreadPage(BaseModel):
    """Threads, the one with the newest message first."""

    threads: list[ThreadShape]


class MessageTools(AgentAccess):
    """What an agent can do with messages."""

    @errors_told
    async def get_messages(
        self,
        ctx: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=_MOST)] = _PAGE,
        before: Annotated[str | None, Field(description="The id of the first message of the page before.")] = None,
        thread: Annotated[str | None, Field(description="Only this thread, with everybody's messages.")] = None,
        role: OfRole = None,
        author: Author = None,
        since: Since = None,
        until: Until = None,
        metadata: Metadata = None,
        user: User = None,
    ) -> MessageList:
        """Read what was said: the newest messages, in order of time.

        Use search_memories to find something; use this to read a conversation as it was.
        """
        person = self._person(ctx, user, thread=thread)
        found = await person.history(
            limit,
            before=before,
            within="user" if thread is None else "thread",
            role=role,
            author=author,
            since=since,
            until=until,
            metadata=metadata,
        )
        return MessageList(messages=[MessageItem.of(each) for each in found])

    @errors_told
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

    @errors_told
    async def list_threads(
        self,
        ctx: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=_MOST)] = _PAGE,
        before: Annotated[str | None, Field(description="The id of the last thread of the page before.")] = None,
        user: User = None,
    ) -> ThreadPage:
        """List the threads that a user has messages in, the one with the newest message first."""
        found = await self._person(ctx, user).threads(limit, before=before)
        return ThreadPage(threads=[ThreadShape.model_validate(each) for each in found])

    @errors_told
    async def add_messages(
        self,
        ctx: Context[Any, Any],
        messages: Annotated[list[MessageBody], Field(max_length=_MOST, description="The messages, in their order.")],
        thread: Thread = None,
        user: User = None,
    ) -> BatchShape:
        """Store messages of a conversation, all of them or none. They can be found at once."""
        person = self._person(ctx, user, "app", thread=thread)
        return BatchShape.of(await person.add_many([message.arguments() for message in messages]))

    @errors_told
    async def edit_message(
        self,
        ctx: Context[Any, Any],
        id: MessageId,  # noqa: A002 - the name that agents know
        text: Annotated[str | None, Field(description="The new text.")] = None,
        metadata: Annotated[dict[str, Any] | None, Field(description="The new metadata.")] = None,
        user: User = None,
    ) -> MessageItem:
        """Correct a message that was stored. What is not given stays as it is; what it was before is kept."""
        receipt = await self._person(ctx, user, "app").edit(id, text, metadata=metadata)
        return MessageItem.of(receipt.message)

    @errors_told
    async def take_back_message(
        self,
        ctx: Context[Any, Any],
        id: MessageId,  # noqa: A002
        user: User = None,
    ) -> MessageItem:
        """Take a message back, because somebody asked for it: it is not found, shown or used any more."""
        receipt = await self._person(ctx, user, "app").take_back(id)
        return MessageItem.of(receipt.message)

    @errors_told
    async def erase_messages(
        self,
        ctx: Context[Any, Any],
        ids: Annotated[list[str], Field(min_length=1, max_length=_MOST, description="The ids of the messages.")],
        user: User = None,
    ) -> ErasedShape:
        """Erase messages for good, with all that was made from them. This cannot be undone; ask the user first."""
        return ErasedShape.model_validate(await self._person(ctx, user, "app").erase(ids))

    @errors_told
    async def clear_thread(
        self,
        ctx: Context[Any, Any],
        thread: Thread = None,
        erase: Annotated[bool, Field(description="Erase the messages for good.")] = False,
        user: User = None,
    ) -> MessageCount:
        """Take back all messages that the user has in a thread, or erase them for good. Returns how many these were."""
        return MessageCount(count=await self._person(ctx, user, "app", thread=thread).clear(erase=erase))
