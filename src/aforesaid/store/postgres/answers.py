"""Which function answers which question, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aforesaid.domain.report import Ledger
from aforesaid.store import questions, selects
from aforesaid.store.postgres import agenda, known, memories, note_search, reads, retention, vectors, views
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.rows import selected
from aforesaid.store.questions import Question


async def _ledger(queries: Queries, question: questions.UserLedger) -> Ledger:
    return await (reads.ledger_of_thread if question.here else reads.ledger)(queries, question)


ANSWERS: Final[Mapping[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]] = {
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
    questions.UserLedger: _ledger,
    questions.SummaryById: reads.summary,
    questions.Summaries: reads.summaries,
    questions.CoveredMessages: reads.covered,
    questions.SummariesAbove: views.above,
    questions.SummariesWithoutModel: reads.without_model,
    questions.Memories: memories.read,
    questions.MemoryById: memories.find,
    questions.MemoryVersions: memories.versions,
    questions.MemoriesOfSpace: memories.listed,
    questions.DueMemories: memories.timely,
    questions.UnextractedUsers: known.unextracted,
    questions.SearchVector: vectors.similar,
    questions.SearchNotes: note_search.search,
    questions.MessageVectors: vectors.of_messages,
    questions.TokenVectors: vectors.of_tokens,
    questions.UnembeddedMessages: vectors.unembedded,
    questions.UnembeddedNotes: note_search.unembedded,
    questions.Unprocessed: agenda.ahead,
    questions.DueEntries: agenda.entries,
    questions.PolicyBacklog: agenda.backlog,
    questions.DiscardableCount: retention.discardable,
    questions.TokensSpent: reads.spent,
    questions.DisplayNames: reads.names,
    questions.Users: reads.users,
    questions.IrregularIds: reads.irregular_ids,
    questions.Totals: reads.stats,
    questions.ChangeToken: reads.change_token,
    **selected(selects.SELECTS),
}
"""All but the searches by words, which keep columns in memory (`Search`)."""
