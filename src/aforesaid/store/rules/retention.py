"""The rule for deleting by age."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from aforesaid.domain.change import Discard, Discardable, Discarded
from aforesaid.domain.checks import moment
from aforesaid.domain.scope import Scope
from aforesaid.store.rules.driving import Rule, ask
from aforesaid.store.rules.lookups import ChunkMessages, OldRow, OldRows, OldTable, TakenBackBefore
from aforesaid.store.rules.writes import (
    EraseFacts,
    EraseMemories,
    EraseMemoryVersions,
    EraseMessages,
    EraseOldRows,
    EraseSummaries,
    RecordAudit,
    Write,
)

OLD_TABLES: Final[Mapping[Discardable, Sequence[OldTable]]] = {
    "messages": ("archives",),
    "summaries": ("summaries",),
    "memories": ("memories",),
    "versions": ("facts", "memory_versions"),
}
"""The tables that a kind of rows is in. The other kinds are deleted without an audit entry."""
_ERASE: Final[Mapping[OldTable, Callable[[str, list[OldRow]], Write[None]]]] = {
    "archives": lambda space, rows: EraseMessages(space, [row.number for row in rows]),
    "summaries": lambda space, rows: EraseSummaries(space, [row.number for row in rows]),
    "memories": lambda space, rows: EraseMemories(space, [row.number for row in rows]),
    "facts": EraseFacts,
    "memory_versions": EraseMemoryVersions,
}


def discard(change: Discard, space: str | None = None) -> Rule[Discarded]:
    """Delete some of the rows that are older than a moment, in one space or in all."""
    if change.what not in OLD_TABLES:
        return Discarded((yield from ask(EraseOldRows(change.what, change.before, change.limit, space))))
    gone: Counter[tuple[str, str]] = Counter()
    for table in OLD_TABLES[change.what]:
        old = yield from ask(OldRows(table, change.before, change.limit, space))
        if table == "archives":
            old = yield from _messages_of(old, change.limit)
        by_space: dict[str, list[OldRow]] = defaultdict(list)
        for row in old:
            by_space[row.space].append(row)
        for where, rows in by_space.items():
            yield _ERASE[table](where, rows)
        gone.update((row.space, row.user) for row in old)
    until = moment(change.before).date().isoformat()
    for (where, user), count in gone.items():
        subject = f"{count} {change.what}, older than {until}"
        yield RecordAudit(Scope.of(user, where), change.actor, "retention.purge", subject)
    return Discarded(gone.total())


def _messages_of(archives: Sequence[OldRow], limit: int) -> Rule[list[OldRow]]:
    """Return the messages of whole archives, until there are `limit` of them or more, and what they took back."""
    found: list[OldRow] = []
    for archive in archives:
        if len(found) < limit:
            messages = yield from ask(ChunkMessages(Scope.of(archive.user, archive.space), archive.number))
            found += [archive._replace(number=seq) for seq, _ in messages]
    for space in {row.space for row in found}:
        seqs = [row.number for row in found if row.space == space]
        earlier = yield from ask(TakenBackBefore(space, seqs))
        found += [OldRow(space, message.user, message.seq) for message in earlier]
    return found
