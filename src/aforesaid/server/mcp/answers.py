"""Answers that are small: items as far as they fit into a number of tokens, and a cursor for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, Field

from aforesaid.models.tokens import TokenCounter, counter_for
from aforesaid.server.api.params import cursor_of, number_of

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


class Item(BaseModel):
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

    @property
    def halved(self) -> AnswerLimit:
        """The limit of one half of an answer that has two lists."""
        return AnswerLimit(self.tokens // 2)

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
