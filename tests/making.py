"""Helpers that create messages, times and archives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aforesaid.domain.message import Message, draft
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary, SummaryDraft
from aforesaid.store import Store
from aforesaid.store.messages import AddMessage
from aforesaid.store.summaries import Archive

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def minutes(count: float) -> datetime:
    """Return the time `count` minutes after noon."""
    return NOON + timedelta(minutes=count)


def adding(
    scope: Scope,
    text: str,
    role: str = "user",
    *,
    at: datetime | None = None,
    id: str | None = None,  # noqa: A002
    author: str | None = None,
    name: str | None = None,
    replaces: Message | str | None = None,
    **details: Any,  # noqa: ANN401 - what a message has beside its text
) -> AddMessage:
    new = draft(scope, role, text, at=at, id=id, author=author, name=name, replaces=replaces, **details)
    return AddMessage(new)


async def add(store: Store, scope: Scope, *texts: str, role: str = "user") -> list[Message]:
    """Store messages one after the other."""
    return [(await store.apply([adding(scope, text, role)])).message for text in texts]


async def archive(store: Store, scope: Scope, messages: list[Message], text: str = "What was said.") -> Summary:
    """Archive messages under a summary."""
    draft_ = SummaryDraft(scope, text, messages=tuple(message.seq for message in messages))
    return (await store.apply([Archive(draft_)])).summary


def remove_databases(folder: Path) -> None:
    """Leave readable files alone, as somebody does who copies what can be seen."""
    for path in folder.rglob(".*.db*"):
        path.unlink()
