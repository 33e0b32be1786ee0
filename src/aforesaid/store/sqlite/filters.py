"""The conditions of a message filter, in SQL."""

from __future__ import annotations

from typing import Any

import apsw

from aforesaid.domain.message_filter import MessageFilter
from aforesaid.store.sqlite.names import find_person


def conditions(connection: apsw.Connection, space: str, where: MessageFilter) -> tuple[list[str], list[Any]]:
    """Return the conditions on the log that a filter sets, and what to bind to them."""
    author = None if where.author is None else (find_person(connection, space, where.author) or -1)
    set_ones = [
        (condition, value)
        for condition, value in (
            ("log.role = ?", where.role),
            ("log.author = ?", author),
            ("log.at >= ?", where.since),
            ("log.at < ?", where.until),
        )
        if value is not None
    ]
    return [condition for condition, _ in set_ones], [value for _, value in set_ones]
