"""Which function answers which question, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aforesaid.store import questions
from aforesaid.store.ephemeral import known_reads, people_reads, reads, search
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.questions import Question

ANSWERS: Final[Mapping[type[Question[Any]], Callable[[Reader, Any], Any]]] = {
    questions.Messages: reads.messages,
    questions.MessageById: reads.message,
    questions.MessagesByNumber: reads.pick,
    questions.MessageCount: reads.count,
    questions.Threads: reads.threads,
    questions.VersionsOf: reads.versions,
    questions.AttachmentHashes: reads.attachment_hashes,
    questions.MessagesAfter: reads.following,
    questions.MessagesBetween: reads.said_between,
    questions.ActivityPerDay: reads.said_per_day,
    questions.Sessions: reads.sessions,
    questions.UserLedger: reads.ledger,
    questions.SummaryById: reads.summary,
    questions.Summaries: reads.summaries_of,
    questions.CoveredMessages: reads.covered,
    questions.SummariesAbove: reads.above,
    questions.SummariesWithoutModel: reads.without_model,
    questions.Memories: known_reads.memories,
    questions.MemoryById: known_reads.memory,
    questions.MemoryVersions: known_reads.memory_versions,
    questions.MemoriesOfSpace: known_reads.memories_in,
    questions.MemoryCounts: known_reads.memory_counts,
    questions.DueMemories: known_reads.memories_due,
    questions.NewestFacts: known_reads.facts,
    questions.FactsVersions: known_reads.facts_versions,
    questions.Tombstones: known_reads.forgotten,
    questions.DerivedText: known_reads.derived,
    questions.UnextractedUsers: known_reads.unextracted,
    questions.SearchText: search.search_text,
    questions.MatchText: search.match_text,
    questions.SearchVector: search.search_vector,
    questions.SearchNotes: search.search_notes,
    questions.MessageVectors: reads.vectors,
    questions.TokenVectors: reads.token_vectors,
    questions.UnembeddedMessages: reads.unembedded,
    questions.UnembeddedNotes: reads.unembedded_notes,
    questions.Unprocessed: reads.ahead,
    questions.DueEntries: reads.due_entries,
    questions.PlannedEntry: reads.planned,
    questions.PolicyBacklog: reads.backlog,
    questions.DiscardableCount: reads.discardable,
    questions.TokensSpent: reads.spent,
    questions.Settings: reads.settings,
    questions.Receipts: known_reads.receipts,
    questions.AuditRows: reads.audit,
    questions.DisplayNames: people_reads.names,
    questions.Users: people_reads.users,
    questions.UsersPage: people_reads.users_page,
    questions.TotalsOfSpaces: people_reads.spaces,
    questions.IrregularIds: reads.irregular_ids,
    questions.Totals: reads.stats,
    questions.Marks: reads.marks,
    questions.ChangeToken: reads.change_token,
}
