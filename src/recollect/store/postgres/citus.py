"""Spreading the tables over machines: every key begins with the space, so they are distributed by it as they are."""

from __future__ import annotations

from typing import Final

TABLES: Final = (
    *("space", "writer", "person", "thread", "session", "log", "summary", "summary_source", "memory", "memory_source"),
    *("memory_version", "facts", "forgotten", "derived", "setting", "audit", "spending", "walk", "agenda", "embedder"),
    *("meaning", "note_meaning", "mark"),
)
"""All tables, those that others refer to before these."""


def statements() -> list[str]:
    """Return what an administrator runs once, in an open database on a coordinator of Citus."""
    first, *others = TABLES
    return [
        "CREATE EXTENSION IF NOT EXISTS citus;",
        f"SELECT create_distributed_table('{first}', 'space');",
        *(f"SELECT create_distributed_table('{table}', 'space', colocate_with => '{first}');" for table in others),
    ]
