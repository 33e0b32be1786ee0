"""Messages in requests: their fields, and the filters that choose among them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

from fastapi import Depends, Query
from pydantic import Field, model_validator

from aforesaid.domain.checks import Role
from aforesaid.domain.details import MOST_PARTS, PartType
from aforesaid.errors import InvalidInput
from aforesaid.server.api.params import Body, Identifier, Moment, Text

HASH: Final = "^[0-9a-f]{64}$"


class PartBody(Body):
    """A part of a message: a text, or an image, a sound or a file, with its bytes or by where it is."""

    type: PartType = Field(examples=["image"])
    text: Text | None = Field(default=None, description="The text; or the caption or transcript.")
    url: Text | None = Field(default=None, description="Where it is.", examples=["https://example.org/cat.png"])
    media_type: Text | None = Field(default=None, examples=["image/png"])
    name: Text | None = Field(default=None, description="The file's name.")
    hash: str | None = Field(
        default=None, pattern=HASH, description="The SHA-256 of its bytes. Needs `data`, or the `url` where they are."
    )
    size: int | None = Field(default=None, ge=0, description="Number of bytes.")
    data: str | None = Field(default=None, description="Its bytes in base64. They are stored; not in a batch.")

    @property
    def is_hash_alone(self) -> bool:
        """Whether it names bytes that must be stored already."""
        return self.hash is not None and self.data is None and self.url is None

    def argument(self, known: Collection[str | None] = ()) -> dict[str, Any]:
        """Return the part as an argument of `add`. Raises InvalidInput.

        A hash alone is accepted only if it is `known`: it would give access to bytes that another user stored.
        """
        found = self.model_dump(exclude_none=True, exclude={"data"})
        if self.data is not None:
            if self.url is not None:
                raise InvalidInput("a part has either data or a url, not both", "parts")
            try:
                found["data"] = base64.b64decode(self.data, validate=True)
            except (binascii.Error, ValueError):
                raise InvalidInput("the data of a part must be base64", "parts") from None
        elif self.is_hash_alone and self.hash not in known:
            raise InvalidInput("a part with a hash needs its data, or the url where the bytes are", "parts")
        return found


class ToolCallBody(Body):
    """A tool that the model asked for."""

    id: Identifier = Field(examples=["call_1"])
    name: Identifier = Field(examples=["get_weather"])
    arguments: Text = Field(description="As the model wrote them.", examples=['{"city": "Berlin"}'])

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:  # noqa: ANN401
        """Accept the form of OpenAI's API: `{"id": …, "type": "function", "function": {"name": …, "arguments": …}}`."""
        if isinstance(given, dict) and isinstance(given.get("function"), dict):
            return {
                **{name: value for name, value in given.items() if name not in ("type", "function")},
                **given["function"],
            }
        return given


class ContentText(Body):
    """A text in the content of a message."""

    type: Literal["text"]
    text: Text = Field(min_length=1, examples=["What is this?"])


class ImageAddress(Body):
    """Where an image is."""

    url: Text = Field(min_length=1, examples=["https://example.org/cat.png"])
    detail: Text | None = Field(default=None, description="Ignored.")


class ContentImage(Body):
    """An image in the content of a message."""

    type: Literal["image_url"]
    image_url: ImageAddress


class DetailsBody(Body):
    """What a message has beside its text."""

    parts: list[PartBody] = Field(default=[], max_length=MOST_PARTS, description="Texts, images, sounds and files.")
    tool_calls: list[ToolCallBody] = Field(default=[], max_length=MOST_PARTS, description="Tools that it asks for.")
    tool_call_id: Identifier | None = Field(default=None, description="The call that this is the result of.")
    metadata: dict[str, Any] | None = Field(default=None, description="Any JSON object.", examples=[{"topic": "home"}])
    reply_to: Identifier | None = Field(default=None, description="The id of the message that it replies to.")
    kind: Identifier | None = Field(default=None, description="The platform's kind of message.", examples=["voice"])
    language: Identifier | None = Field(default=None, description="Its language.", examples=["en"])

    def details(self) -> dict[str, Any]:
        """Return the details that are set, as arguments of `add`."""
        found = {
            "parts": [part.argument() for part in self.parts],
            "tool_calls": [call.model_dump() for call in self.tool_calls],
            "tool_call_id": self.tool_call_id,
            "metadata": self.metadata,
            "reply_to": self.reply_to,
            "kind": self.kind,
            "language": self.language,
        }
        return {name: value for name, value in found.items() if value}


class MessageBody(DetailsBody):
    """A message to store."""

    role: Role = Field(examples=["user"])
    text: Text = Field(
        default="",
        description="May be empty if there are parts or tool calls, or for the result of one.",
        examples=["I moved to Berlin last week."],
    )
    content: Text | list[Annotated[ContentText | ContentImage, Field(discriminator="type")]] | None = Field(
        default=None,
        description="The text, or its parts, as OpenAI-style programs have it. Instead of `text`.",
        examples=["I moved to Berlin last week."],
    )
    at: Moment | None = Field(default=None, description="When it was said. Default: now.")
    id: Identifier | None = Field(
        default=None,
        description="The platform's message id. An id that the thread already has is not stored again.",
    )
    author: Identifier | None = Field(default=None, description="The speaker, if it is not the user or the assistant.")
    name: Text | None = Field(default=None, max_length=255, description="The speaker's display name.")
    replaces: Identifier | None = Field(
        default=None, description="The id of the message in the thread that this is a new version of."
    )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `add`."""
        plain = {name: getattr(self, name) for name in ("role", "text", "at", "id", "author", "name", "replaces")}
        if self.content is not None:
            content = self.content if isinstance(self.content, str) else [part.model_dump() for part in self.content]
            plain["content"] = content
        return {**plain, **self.details()}


class Filter(NamedTuple):
    """Conditions on messages, as the query string has them."""

    role: Role | None
    author: str | None
    since: datetime | None
    until: datetime | None
    metadata: dict[str, Any] | None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `history`, `search` and `count`."""
        return self._asdict()


def _filter(
    role: Annotated[Role | None, Query(description="Only messages of this role.")] = None,
    author: Annotated[Identifier | None, Query(description="Only messages that this id wrote.")] = None,
    since: Annotated[Moment | None, Query(description="Only messages said at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Only messages said before this time.")] = None,
    metadata: Annotated[
        str | None,
        Query(
            max_length=10_000,
            description="Only messages whose metadata has these keys with equal values: a JSON object.",
            examples=['{"topic": "home"}'],
        ),
    ] = None,
) -> Filter:
    return Filter(role, author, since, until, None if metadata is None else metadata_of(metadata))


MessageFilter = Annotated[Filter, Depends(_filter)]


def metadata_of(text: str) -> dict[str, Any]:
    """Read a JSON object. Raises InvalidInput."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput('metadata must be a JSON object, such as {"topic": "home"}', "metadata")
    return found
