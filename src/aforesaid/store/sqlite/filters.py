"""The conditions of a message filter, in SQL."""

from __future__ import annotations

from typing import Any, Final

import apsw

from aforesaid.domain.message_filter import MessageFilter, Scalar
from aforesaid.store.sqlite.names import find_person

_METADATA: Final = "EXISTS (SELECT 1 FROM json_each(log.details, '$.metadata') WHERE key = ? AND {type} AND atom IS ?)"


def conditions(connection: apsw.Connection, space: str, where: MessageFilter) -> tuple[list[str], list[Any]]:
    """Return the conditions on the log that a filter sets, and what to bind to them."""
    author = None if where.author is None else (find_person(connection, space, where.author) or -1)
    texts: list[str] = []
    values: list[Any] = []
    for condition, value in (
        ("log.role = ?", where.role),
        ("log.author = ?", author),
        ("log.at >= ?", where.since),
        ("log.at < ?", where.until),
    ):
        if value is not None:
            texts.append(condition)
            values.append(value)
    for key, wanted in where.metadata:
        texts.append(_METADATA.format(type=_type(wanted)))
        values += [key, wanted]
    return texts, values


def _type(wanted: Scalar) -> str:
    """Return the condition on the type of a value. True, false and null are types with the atoms 1, 0 and NULL."""
    if wanted is None or isinstance(wanted, bool):
        return "type = " + {None: "'null'", True: "'true'", False: "'false'"}[wanted]
    return "type = 'text'" if isinstance(wanted, str) else "type IN ('integer', 'real')"
