"""Which function answers which question, in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from aforesaid.store import questions
from aforesaid.store.questions import Question
from aforesaid.store.sql import answers
from aforesaid.store.sqlite import note_search, search, vectors
from aforesaid.store.sqlite.caches import Caches
from aforesaid.store.sqlite.rows import answering

ANSWERS: Final[Mapping[type[Question[Any]], Callable[[apsw.Connection, Any], Any]]] = {
    **answering(answers.ANSWERS),
    questions.SearchNotes: note_search.search,
    questions.MessageVectors: vectors.of_messages,
    questions.TokenVectors: vectors.of_tokens,
    questions.UnembeddedMessages: vectors.unembedded,
    questions.UnembeddedNotes: note_search.unembedded,
}

CACHED_ANSWERS: Final[Mapping[type[Question[Any]], Callable[[apsw.Connection, Caches, Any], Any]]] = {
    questions.SearchText: search.search,
    questions.MatchText: search.match,
    questions.SearchVector: lambda connection, caches, question: caches.similar(connection, question),
}
"""Searches, which keep columns and vectors in memory."""
