"""The conditions of a message filter, in SQL."""

from __future__ import annotations

import json
from typing import Any

from aforesaid.domain.message_filter import MessageFilter


def conditions(where: MessageFilter, bound: int) -> tuple[list[str], list[Any]]:
    """Return the conditions on the log that a filter sets, after `bound` values, and what to bind to them."""
    texts: list[str] = []
    values: list[Any] = []
    for condition, value in (
        ("log.role = ${}", where.role),
        ("log.author = ${}", where.author),
        ("log.at >= ${}", where.since),
        ("log.at < ${}", where.until),
    ):
        if value is not None:
            values.append(value)
            texts.append(condition.format(bound + len(values)))
    for key, wanted in where.metadata:
        values += [key, json.dumps(wanted)]
        at = bound + len(values)
        texts.append(f"log.details::jsonb -> 'metadata' -> ${at - 1}::text = ${at}::text::jsonb")
    return texts, values
