"""Reads of facts, requests to forget, derived texts and users to extract from."""

from __future__ import annotations

from typing import Final

import apsw

from aforesaid.domain.memory import Unextracted
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.names import find_person

# The index holds nobody but those whom it is about.
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person INDEXED BY person_to_extract
 WHERE last_seq > extracted AND id > ? ORDER BY id LIMIT ?
"""


def unextracted(connection: apsw.Connection, question: questions.UnextractedUsers) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through."""
    start = 0 if question.after is None else find_person(connection, question.after.space, question.after.user) or 0
    return [
        Unextracted(Scope.of(name, space), extracted, last)
        for space, name, extracted, last in rows.every(connection.execute(_UNEXTRACTED, (start, question.limit)))
    ]
