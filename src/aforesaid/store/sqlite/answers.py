"""Which function answers which question, in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.report import Ledger
from aforesaid.store import questions, selects
from aforesaid.store.questions import Question
from aforesaid.store.sqlite import agenda, known, memories, note_search, reads, retention, search, vectors, views
from aforesaid.store.sqlite.caches import Caches
from aforesaid.store.sqlite.rows import selected


def _ledger(connection: apsw.Connection, question: questions.UserLedger) -> Ledger:
    return (reads.ledger_of_thread if question.here else reads.ledger)(connection, question)


ANSWERS: Final[Mapping[type[Question[Any]], Callable[[apsw.Connection, Any], Any]]] = {
    questions.Messages: reads.messages,
    questions.MessageById: reads.message,
    questions.MessagesByNumber: reads.pick,
    questions.MessageCount: reads.count,
    questions.Threads: reads.threads,
    questions.VersionsOf: reads.versions,
    questions.AttachmentHashes: reads.attachment_hashes,
    questions.MessagesAfter: views.following,
    questions.MessagesBetween: views.said_between,
    questions.ActivityPerDay: views.said_per_day,
    questions.Sessions: reads.sessions,
    questions.UserLedger: _ledger,
    questions.SummaryById: reads.summary,
    questions.Summaries: reads.summaries,
    questions.CoveredMessages: reads.covered,
    questions.SummariesAbove: views.above,
    questions.SummariesWithoutModel: views.without_model,
    questions.Memories: memories.read,
    questions.MemoryById: memories.find,
    questions.MemoryVersions: memories.versions,
    questions.MemoriesOfSpace: memories.listed,
    questions.DueMemories: memories.timely,
    questions.UnextractedUsers: known.unextracted,
    questions.SearchNotes: note_search.search,
    questions.MessageVectors: views.vectors,
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
    **selected(selects.SELECTS),
}

CACHED_ANSWERS: Final[Mapping[type[Question[Any]], Callable[[apsw.Connection, Caches, Any], Any]]] = {
    questions.SearchText: search.search,
    questions.MatchText: search.match,
    questions.SearchVector: lambda connection, caches, question: caches.similar(connection, question),
}
"""Searches, which keep columns and vectors in memory."""
