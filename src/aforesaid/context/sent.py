"""What a context sends, as a receipt says it: ids and tokens, section by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from aforesaid.context.context import Context
from aforesaid.context.items import Item
from aforesaid.domain.context_receipt import SentItem, SentKind, SentSection
from aforesaid.profiles.recipe import SectionName

_NUMBERED: Final[dict[str, SentKind]] = {"memory": "memory", "summary": "summary"}
"""How the keys of items with a number begin."""


def sections_of(context: Context) -> tuple[SentSection, ...]:
    """Return the sections of a whole context. Their tokens add up to its tokens."""
    sent: dict[str, list[SentItem]] = {}
    for item in context.items:
        sent.setdefault(item.section, []).append(_sent(item))
    reports = (report for report in context.sections if report.items)
    sections = [SentSection(each.name, each.tokens, tuple(sent.get(each.name, ()))) for each in reports]
    return _adding_up(sections, context.tokens)


def sections_of_items(
    items: Iterable[Item], tokens: int, heading: Callable[[SectionName], int]
) -> tuple[SentSection, ...]:
    """Return the sections of some items of a context, in the order of their first items.

    `tokens` are those of the whole text that they were sent as, which those of the sections add up to; `heading`
    returns those of a section without items.
    """
    sections: dict[SectionName, list[SentItem]] = {}
    for item in items:
        sections.setdefault(item.section, []).append(_sent(item))
    counted = [
        SentSection(name, heading(name) + sum(each.tokens for each in sent), tuple(sent))
        for name, sent in sections.items()
    ]
    return _adding_up(counted, tokens)


def _adding_up(sections: Sequence[SentSection], tokens: int) -> tuple[SentSection, ...]:
    """Return the sections with as many tokens together as were counted in the whole.

    Parts were counted one by one, without what frames messages. The difference belongs to the turns of the
    conversation, if there are any, and else to the largest section.
    """
    changed, rest = list(sections), tokens - sum(each.tokens for each in sections)
    for place in sorted(range(len(changed)), key=lambda at: (changed[at].name != "recent", -changed[at].tokens)):
        more = max(rest, -changed[place].tokens)
        changed[place] = changed[place]._replace(tokens=changed[place].tokens + more)
        rest -= more
    return tuple(changed)


def _sent(item: Item) -> SentItem:
    if item.shows:
        return SentItem("message", min(item.shows), item.tokens)
    kind, _, number = item.key.partition(" ")
    if kind in _NUMBERED and number.isdecimal():
        return SentItem(_NUMBERED[kind], int(number), item.tokens)
    return SentItem("text", None, item.tokens)
