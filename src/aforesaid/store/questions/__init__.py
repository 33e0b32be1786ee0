"""Everything that can be asked of a store.

A question is a value with a result type: `await store.read(questions.Memories(scope))` returns a list of memories. It
also says three things about itself: the space it stays within, whether answering it is short, and whether only the
durable store can answer it.

Isolation. A question that names a scope reaches nothing outside of it: a foreign id is NotFound, like one that does not
exist. Questions without a scope are for those who look after a whole space or the whole store.

Versions. A message can replace an earlier one. `Messages`, `MessageCount`, `Threads`, `SearchText`, `MatchText` and
`SearchVector` know only the newest version. All others return every version, marked by `replaced`: cursors, ledgers and
archives stay right.
"""

from aforesaid.store.questions.base import (
    OfScope,
    OfScopeShort,
    OfSpace,
    Question,
)
from aforesaid.store.questions.messages import (
    ActivityPerDay,
    AttachmentHashes,
    MessageById,
    MessageCount,
    Messages,
    MessagesAfter,
    MessagesBetween,
    MessagesByNumber,
    Sessions,
    Threads,
    UserLedger,
    VersionsOf,
)
from aforesaid.store.questions.notes import (
    CoveredMessages,
    DerivedText,
    DueMemories,
    FactsVersions,
    Memories,
    MemoriesOfSpace,
    MemoryById,
    MemoryCounts,
    MemoryVersions,
    NewestFacts,
    Summaries,
    SummariesAbove,
    SummariesWithoutModel,
    SummaryById,
    Tombstones,
    UnextractedUsers,
)
from aforesaid.store.questions.people import (
    AuditRows,
    ChangeToken,
    DisplayNames,
    IrregularIds,
    Marks,
    Receipts,
    Settings,
    Totals,
    TotalsOfSpaces,
    Users,
    UsersPage,
)
from aforesaid.store.questions.searches import (
    MatchText,
    MessageVectors,
    SearchNotes,
    SearchText,
    SearchVector,
    TokenVectors,
    UnembeddedMessages,
    UnembeddedNotes,
)
from aforesaid.store.questions.upkeep import (
    DiscardableCount,
    DueEntries,
    PlannedEntry,
    PolicyBacklog,
    TokensSpent,
    Unprocessed,
)

__all__ = [
    "ActivityPerDay",
    "AttachmentHashes",
    "AuditRows",
    "ChangeToken",
    "CoveredMessages",
    "DerivedText",
    "DiscardableCount",
    "DisplayNames",
    "DueEntries",
    "DueMemories",
    "FactsVersions",
    "IrregularIds",
    "Marks",
    "MatchText",
    "Memories",
    "MemoriesOfSpace",
    "MemoryById",
    "MemoryCounts",
    "MemoryVersions",
    "MessageById",
    "MessageCount",
    "MessageVectors",
    "Messages",
    "MessagesAfter",
    "MessagesBetween",
    "MessagesByNumber",
    "NewestFacts",
    "OfScope",
    "OfScopeShort",
    "OfSpace",
    "PlannedEntry",
    "PolicyBacklog",
    "Question",
    "Receipts",
    "SearchNotes",
    "SearchText",
    "SearchVector",
    "Sessions",
    "Settings",
    "Summaries",
    "SummariesAbove",
    "SummariesWithoutModel",
    "SummaryById",
    "Threads",
    "TokenVectors",
    "TokensSpent",
    "Tombstones",
    "Totals",
    "TotalsOfSpaces",
    "UnembeddedMessages",
    "UnembeddedNotes",
    "UnextractedUsers",
    "Unprocessed",
    "UserLedger",
    "Users",
    "UsersPage",
    "VersionsOf",
]
