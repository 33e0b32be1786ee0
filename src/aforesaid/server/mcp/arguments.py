"""Arguments that several tools have. Their descriptions are what an agent fills them in by."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AwareDatetime, Field

from aforesaid.domain.checks import Role

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
