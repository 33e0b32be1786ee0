"""Write docs/reference/store-errors.md: how errors of databases and file systems are translated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from aforesaid.store.contract import FILE_RULES
from aforesaid.store.postgres.connection import RULES as POSTGRES_RULES
from aforesaid.store.sqlite.connection import RULES as SQLITE_RULES

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs/reference/store-errors.md"
HEADER = """# Errors of stores

What Aforesaid does when a database or a disk reports an error. `make store-errors` writes this page from the tables
that the stores use; the first row that applies counts.

- **fail over**: the store cannot be reached or written. New messages go to the [fallback](configuration.md), the
  receipt says so, and they are stored in order once the store works again.
- **retry**: the same call may succeed later. The caller gets the error and can repeat the call.
- **refuse**: the error would be the same every time. The caller gets it, with the database's own words; nothing fails
  over.
"""
TABLES = {"PostgreSQL": POSTGRES_RULES, "SQLite": SQLITE_RULES, "Files": FILE_RULES}


def _lines() -> Iterator[str]:
    yield HEADER
    for title, rules in TABLES.items():
        yield f"## {title}\n"
        yield "| error | becomes | consequence | what to do |"
        yield "|---|---|---|---|"
        for rule in rules:
            yield f"| {rule.errors} | `{rule.becomes.__name__}` | {rule.consequence} | {rule.advice.rstrip('.')} |"
        yield ""


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
