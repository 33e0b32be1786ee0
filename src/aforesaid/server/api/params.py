"""Shared request parameters: user, scope and page."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final

from fastapi import Depends, Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from aforesaid.domain.checks import IDENTIFIER_CHARACTERS, LARGEST
from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import MemoryDep, Reader

PAGE: Final = 50
MOST_ON_A_PAGE: Final = 500

_PRINTABLE: Final = r"^[^\u0000-\u001f\u007f-\u009f]+$"
Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=IDENTIFIER_CHARACTERS),
    # For the description only: `checks.identifier` refuses control characters and names them.
    Field(json_schema_extra={"pattern": _PRINTABLE}),
]
NAMES: Final[JsonDict] = {"minLength": 1, "maxLength": IDENTIFIER_CHARACTERS, "pattern": _PRINTABLE}
"""The description of names of settings, which are keys of an object."""
Text = Annotated[
    str,
    # For the description only: `checks.storable` refuses NUL characters and says where they are.
    Field(json_schema_extra={"pattern": r"^[^\u0000]*$"}),
]
Moment = AwareDatetime

SpaceQuery = Annotated[
    Identifier | None,
    Query(description="The space. Only for keys for all spaces; other keys have their own.", examples=["default"]),
]
UserQuery = Annotated[
    Identifier | None, Query(description="The user. Not needed with a key for one user.", examples=["ann"])
]
ThreadQuery = Annotated[
    Identifier | None, Query(description="A channel that users share. Default: the direct chat.", examples=["general"])
]
ChatQuery = Annotated[
    Identifier | None,
    Query(description="One of the user's private chats. Default: the direct chat.", examples=["chat-1"]),
]
SessionQuery = Annotated[Identifier | None, Query(description="A session by name.", examples=["s-1"])]
Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="Maximum number of results.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=2_000,
        description="`next` of the page before; without it, the first page.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
    ),
]
Number = Annotated[int, Path(ge=1, le=LARGEST, description="The id.", examples=[1])]


class Body(BaseModel):
    """A request body. Unknown fields are an error."""

    model_config = ConfigDict(extra="forbid")


class OfUser(Body):
    """A request body about one user. The space is the credential's."""

    user: Identifier | None = Field(
        default=None, description="The user. Not needed with a key for one user.", examples=["ann"]
    )
    thread: Identifier | None = Field(
        default=None, description="A channel that users share. Default: the direct chat.", examples=["general"]
    )
    chat: Identifier | None = Field(
        default=None, description="One of the user's private chats. Default: the direct chat.", examples=["chat-1"]
    )

    def person(self, who: Credential, memory: Memory, space: str | None, session: str | None = None) -> UserMemory:
        """Return the user's memory, if the credential allows it."""
        return who.person(
            memory, named(who, self.user), space=space, thread=self.thread, chat=self.chat, session=session
        )


def named(who: Credential, user: str | None) -> str:
    """Return the user that a request names, or the one that its key is for."""
    found = who.user_of(user)
    if found is None:
        raise InvalidInput("the request does not say whose memory it is about: name the user", "user")
    return found


def _person(
    who: Reader,
    memory: MemoryDep,
    user: UserQuery = None,
    space: SpaceQuery = None,
    thread: ThreadQuery = None,
    chat: ChatQuery = None,
    session: SessionQuery = None,
) -> UserMemory:
    return who.person(memory, named(who, user), space=space, thread=thread, chat=chat, session=session)


Person = Annotated[UserMemory, Depends(_person)]
"""The user named in the query string, for reading."""


def cursor_of(value: str | int) -> str:
    """Encode an opaque cursor."""
    return base64.urlsafe_b64encode(str(value).encode()).decode().rstrip("=")


def text_of(cursor: str | None) -> str | None:
    """Decode a cursor."""
    if cursor is None:
        return None
    try:
        return base64.urlsafe_b64decode(cursor.encode() + b"==").decode()
    except (ValueError, binascii.Error):
        raise unknown_cursor() from None


def number_of(cursor: str | None) -> int | None:
    """Decode a cursor that is a number."""
    text = text_of(cursor)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= LARGEST:
        raise unknown_cursor()
    return int(text)


def unknown_cursor() -> InvalidInput:
    """Return the error for a cursor that no page ended with."""
    return InvalidInput("the cursor is not from this server; use `next` of the page before", "cursor")
