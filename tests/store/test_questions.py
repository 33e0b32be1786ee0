"""Every question can be asked of every store."""

from __future__ import annotations

from typing import Any

import pytest

from aforesaid.store import questions
from aforesaid.store.postgres.answers import ANSWERS as IN_POSTGRES
from aforesaid.store.questions import Question
from aforesaid.store.sqlite.answers import ANSWERS as IN_SQLITE
from aforesaid.store.sqlite.answers import CACHED_ANSWERS

BASES = {Question, questions.OfScope, questions.OfScopeShort, questions.OfSpace}
EVERY = {each for each in vars(questions).values() if isinstance(each, type) and issubclass(each, Question)} - BASES
ANSWERED: dict[str, set[type[Question[Any]]]] = {
    # The change token is read from the file system, without a connection.
    "sqlite": {*IN_SQLITE, *CACHED_ANSWERS, questions.ChangeToken},
    # Searches belong to each open store, which keeps columns and signs in memory.
    "postgres": {*IN_POSTGRES, questions.SearchText, questions.MatchText, questions.SearchVector},
}


@pytest.mark.parametrize("store", ANSWERED)
def test_every_question_has_an_answer_in_every_store(store: str) -> None:
    assert ANSWERED[store] == EVERY
