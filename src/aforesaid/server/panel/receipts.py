"""What did the model know when it answered this? Receipts of contexts, beside replies and on pages of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentKind, SentSection, SentSource
from aforesaid.domain.message import Message
from aforesaid.server.panel.view import Person, PersonView
from aforesaid.store import questions

router = APIRouter()

_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item of a receipt, with what it names as that is now."""

    item: SentItem
    source: SentSource | None

    @property
    def erased(self) -> bool:
        """Whether what it names was erased or taken back since."""
        return self.source is None and self.item.kind != "text"


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of a receipt, with its place on a bar that is the whole context, 0 to 100."""

    section: SentSection
    start: float
    length: float
    items: list[ShownItem]

    @property
    def name(self) -> str:
        """The name of the section."""
        return self.section.name


async def receipts_by_reply(person: PersonView, messages: Sequence[Message]) -> dict[int, ContextReceipt]:
    """Return the receipts that led to the assistant's messages among these, by the number of the message."""
    replies = [message.seq for message in messages if message.role == "assistant" and message.user == person.user]
    if not replies:
        return {}
    question = questions.Receipts(person.memory.scope, limit=len(replies) * 2, replies=replies)
    found = await person.view.memory.store.read(question)
    return {receipt.reply: receipt for receipt in reversed(found) if receipt.reply is not None}


@router.get("/person/receipts")
async def receipts(person: Person, before: str = "") -> Response:
    """Show what was sent to models to answer a person, newest first."""
    found = await person.memory.receipts(_PAGE, before=before or None)
    more = found[-1].id if len(found) == _PAGE else None
    return await person.page("person/receipts.html", tab="receipts", receipts=found, more=more)


@router.get("/person/receipt")
async def receipt(person: Person, id: str) -> Response:  # noqa: A002 - the name in the address
    """Show what was sent to a model for one reply, section by section."""
    found = await person.memory.receipt(id)
    sources = await person.memory.receipt_sources(found)
    wanted = [] if found.reply is None else [found.reply]
    replies = await person.view.memory.store.read(questions.MessagesByNumber(person.memory.scope, wanted))
    return await person.page(
        "person/receipt.html",
        tab="receipts",
        receipt=found,
        sections=shown_sections(found, sources),
        reply=replies[0] if replies and not replies[0].taken_back else None,
    )


def shown_sections(receipt: ContextReceipt, sources: Mapping[tuple[SentKind, int], SentSource]) -> list[ShownSection]:
    """Return the sections of a receipt with what they name, and their places on a bar."""
    found, start = [], 0.0
    for section in receipt.sections:
        length = 100 * section.tokens / max(receipt.tokens, 1)
        items = [ShownItem(each, sources.get((each.kind, each.id or 0))) for each in section.items]
        found.append(ShownSection(section, round(start, 3), round(length, 3), items))
        start += length
    return found
