"""What answers look like."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from aforesaid.context import Context
from aforesaid.domain.checks import Category, HitKind, Kind, MemoryState, Role, SessionState, Trust
from aforesaid.domain.details import PartType
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import Matter, MemoryRecord
from aforesaid.domain.receipt import BatchReceipt
from aforesaid.domain.scope import Session
from aforesaid.memory import Memory


class Shape(BaseModel):
    """Made from a value of the domain, field by field."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def taken_from(cls, value: object, **given: object) -> Self:
        """Return the shape with what is given, and for its other fields the attributes of the value."""
        return cls.model_validate(
            {name: getattr(value, name) for name in cls.model_fields if name not in given} | given
        )


class Band(Shape):
    """How an importance is called, and its colour."""

    name: Literal["low", "medium", "high", "critical"]
    colour: Literal["grey", "blue", "orange", "red"]


class Happening(Shape):
    """When something happens."""

    start: datetime
    end: datetime
    timed: bool = Field(description="Whether a time of day is known; otherwise it is about whole days.")


class MemoryShape(Shape):
    """One remembered thing about a user."""

    id: int = Field(examples=[7])
    user_name: str = Field(description="The id of the user whom it is about.", examples=["ann"])
    name: str | None = Field(default=None, description="The display name that the user used last.", examples=["Ann"])
    category: Category
    kind: Kind = Field(description="What it is, finer than the category. Events are dated and do not expire.")
    about: str | None = Field(
        description="Whom it is about, if not the user: the id of another user, or a name.", examples=["Tom"]
    )
    content: str = Field(examples=["Dentist on Monday at 9am"])
    importance: int = Field(ge=1, le=10, examples=[8])
    band: Band
    tags: list[str]
    active: bool
    extracted_at: datetime
    state: MemoryState
    reason: str = Field(description="Why it is not active.")
    priority: int
    speaker: str = Field(description="Who said it.")
    trust: Trust
    event: Happening | None
    remind_at: datetime | None
    expires_at: datetime | None
    said_at: datetime = Field(description="When it was first said.")
    valid_from: datetime = Field(description="Since when it is true.")
    valid_to: datetime | None = Field(description="Until when it was true.")
    language: str | None = Field(description="The language of its text.", examples=["german"])
    confidence: float | None = Field(description="How sure its extractor is that it is worth remembering, 0 to 1.")
    matter: Matter | None = Field(
        description="Which matter of a person it is, such as a home or an allergy.", examples=["allergy"]
    )
    value: str | None = Field(description="The value of the matter, in the person's own words.", examples=["hazelnuts"])
    superseded_by: int | None
    sources: list[int] = Field(description="The messages that it was learned from, by sequence number.")
    extractor: str
    times: int = Field(description="How often it was said.")
    revision: int = Field(description="Grows with every change; the ETag of the memory.")

    @classmethod
    def of(cls, memory: MemoryRecord, name: str | None) -> Self:
        """Show a memory under the names of the documented table, with the display name of its user."""
        return cls.taken_from(
            memory, user_name=memory.user, name=name, content=memory.text, extracted_at=memory.created_at
        )


async def shown(memory: Memory, record: MemoryRecord) -> MemoryShape:
    """Show a memory with the display name of its user."""
    return (await all_shown(memory, [record]))[0]


async def all_shown(memory: Memory, records: Sequence[MemoryRecord]) -> list[MemoryShape]:
    """Show memories of one space with the display names of their users."""
    if not records:
        return []
    names = await memory.names(records[0].space, users={record.user for record in records})
    return [MemoryShape.of(record, names.get(record.user)) for record in records]


class MemoryPage(BaseModel):
    """Memories, and how to read on."""

    memories: list[MemoryShape]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class MemoryVersionShape(BaseModel):
    """What a memory was before a change."""

    before: MemoryShape
    action: str
    actor: str
    at: datetime


class UserShape(Shape):
    """A user who owns something."""

    id: str = Field(examples=["ann"])
    name: str | None = Field(description="The display name that they used last.", examples=["Ann"])
    space: str
    messages: int
    archived: int
    created_at: datetime
    last_activity: datetime | None


class UserPage(BaseModel):
    """Users, and how to read on."""

    users: list[UserShape]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class ContentPartShape(Shape):
    """A part of a message."""

    type: PartType
    text: str | None = Field(description="The text; or the caption or transcript.")
    url: str | None
    media_type: str | None
    name: str | None
    hash: str | None = Field(description="The SHA-256 of its bytes.")
    size: int | None


class ToolCallShape(Shape):
    """A tool that the model asked for."""

    id: str
    name: str
    arguments: str = Field(description="As the model wrote them.")


class MessageShape(Shape):
    """One message of the log."""

    seq: int = Field(description="Grows in the order of storing.")
    id: str = Field(examples=["#1"])
    space: str
    user: str = Field(description="Whose memory it belongs to.")
    thread: str
    session: str
    role: Role
    author: str
    name: str | None
    text: str = Field(examples=["I moved to Berlin last week."])
    at: datetime = Field(description="When it was said.")
    stored_at: datetime
    active: bool = Field(description="False once a summary covers it.")
    replaces: int | None = Field(description="The sequence number of the version before this one.")
    replaced: bool = Field(description="Whether there is a newer version.")
    taken_back: bool = Field(description="Whether it is what is left of a message that was taken back.")
    parts: list[ContentPartShape] = Field(description="Texts, images, sounds and files; empty for a plain text.")
    tool_calls: list[ToolCallShape]
    tool_call_id: str | None = Field(description="The call that this is the result of.")
    metadata: dict[str, Any]
    reply_to: str | None = Field(description="The id of the message that it replies to.")
    kind: str | None = Field(description="The platform's kind of message.")
    language: str | None


class MessagePage(BaseModel):
    """Messages, oldest first, and how to read further back."""

    messages: list[MessageShape]
    next: str | None = Field(description="The cursor of the page before these; null when there is none.")


class ReceiptShape(Shape):
    """The acknowledgement of a message."""

    message: MessageShape
    durable: bool = Field(description="Whether it survives a power cut.")
    duplicate: bool = Field(description="Whether it had been stored before.")
    notices: list[str] = Field(description="Notices for the user.")


class ErasedShape(Shape):
    """How much was erased."""

    messages: int = Field(description="Number of messages, each version counted.")
    summaries: int
    memories: int
    of_others: int = Field(description="Number of these summaries and memories that were other users'.")


class MessageCount(BaseModel):
    """A number of messages."""

    count: int


class BatchShape(Shape):
    """The acknowledgement of a batch of messages."""

    ids: list[str] = Field(description="The ids of the messages, in their order.")
    durable: bool = Field(description="Whether they survive a power cut.")
    stored: int = Field(description="Number of messages that are new.")
    duplicates: int = Field(description="Number of messages that had been stored before.")
    notices: list[str] = Field(description="Notices for the user.")

    @classmethod
    def of(cls, receipt: BatchReceipt) -> Self:
        return cls.taken_from(receipt, ids=[message.id for message in receipt.messages])


class ThreadShape(Shape):
    """A conversation of a user."""

    id: str
    chat: str | None = Field(description="The id of the private chat that this is; null for any other thread.")
    messages: int = Field(description="Number of the user's messages in it.")
    first_at: datetime
    last_at: datetime
    last_text: str = Field(description="The beginning of the newest message.")


class SessionShape(Shape):
    """A stretch of a thread without a long silence."""

    id: str
    space: str
    thread: str
    user: str = Field(description="Who opened it.")
    name: str | None = Field(description="The display name that they used last.")
    started_at: datetime
    last_activity: datetime
    messages: int
    state: SessionState

    @classmethod
    def of(cls, session: Session, name: str | None) -> Self:
        """Show a session as it is now, with the display name of the user who opened it."""
        return cls.taken_from(session, state=session.state(), name=name)


class SummaryShape(Shape):
    """A text that covers messages or other summaries."""

    id: int
    space: str
    user: str
    thread: str
    kind: str = Field(examples=["tree"])
    level: int
    text: str
    chunks: list[int]
    sources: list[int] = Field(description="The summaries that it was made of.")
    first: int
    last: int
    messages: int = Field(description="How many messages lie below it.")
    model: str | None
    created_at: datetime
    active: bool
    rolled_back: bool
    began_at: datetime
    ended_at: datetime
    day: date | None
    version: int
    replaces: int | None
    edited_by: str | None


class PartShape(BaseModel):
    """What one feature added to a score."""

    name: str
    value: float


class HitShape(Shape):
    """Something that was found."""

    kind: HitKind
    id: str
    text: str
    score: float = Field(description="0 to 1; 0.5 is as common among right hits as among wrong ones.")
    at: datetime
    sources: list[str]
    terms: list[str]
    similarity: float | None = Field(description="How near its meaning is, 0 to 1, calibrated for the encoder.")
    parts: list[PartShape] = Field(description="What each feature added to the weighted sum behind the score.")
    explanation: str
    message: MessageShape | None
    around: list[MessageShape]

    @classmethod
    def of(cls, hit: Hit) -> Self:
        parts = [PartShape(name=name, value=value) for name, value in hit.parts]
        return cls.taken_from(hit, parts=parts, explanation=hit.explain())


class SectionShape(Shape):
    """A part of a context, and what it took."""

    name: str
    tokens: int
    budget: int
    items: int
    left_out: int


class ChatMessageShape(BaseModel):
    """A message for a chat API."""

    role: Role
    content: str


class ContextShape(Shape):
    """What goes to a model now."""

    messages: list[ChatMessageShape] = Field(description="For any OpenAI-style chat API.")
    text: str
    tokens: int
    budget: int
    counter: str = Field(description="How tokens were counted.")
    sections: list[SectionShape]
    explanation: str = Field(description="What is in it, what is not, and why.")
    receipt: str | None = Field(description="The id of the receipt, which is stored if the context is sent.")

    @classmethod
    def of(cls, context: Context) -> Self:
        return cls.taken_from(context, explanation=context.explain())
