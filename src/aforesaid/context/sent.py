"""What a context sends, as a receipt says it: ids and tokens, section by section."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aforesaid.context.context import Context
from aforesaid.context.items import Item
from aforesaid.domain.context_receipt import SentItem, SentKind, SentSection

_NUMBERED: Final[dict[str, SentKind]] = {"memory": "memory", "summary": "summary"}
"""How the keys of items with a number begin."""


def sections_of(context: Context) -> tuple[SentSection, ...]:
    """Return the sections of a whole context."""
    sent: dict[str, list[SentItem]] = {}
    for item in context.items:
        sent.setdefault(item.section, []).append(_sent(item))
    reports = (report for report in context.sections if report.items)
    return tuple(SentSection(each.name, each.tokens, tuple(sent.get(each.name, ()))) for each in reports)


def sections_of_items(items: Iterable[Item]) -> tuple[SentSection, ...]:
    """Return the sections of some items of a context, in the order of their first items, without headings."""
    sections: dict[str, list[SentItem]] = {}
    for item in items:
        sections.setdefault(item.section, []).append(_sent(item))
    return tuple(SentSection(name, sum(each.tokens for each in sent), tuple(sent)) for name, sent in sections.items())


def _sent(item: Item) -> SentItem:
    if item.shows:
        return SentItem("message", min(item.shows), item.tokens)
    kind, _, number = item.key.partition(" ")
    if kind in _NUMBERED and number.isdecimal():
        return SentItem(_NUMBERED[kind], int(number), item.tokens)
    return SentItem("text", None, item.tokens)
