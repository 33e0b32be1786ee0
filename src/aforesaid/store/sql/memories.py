"""Questions about memories and about what else is known of users."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from aforesaid.domain.checks import Timely, microseconds, moment
from aforesaid.domain.memory import MemoryRecord, MemoryVersion, Unextracted
from aforesaid.domain.report import MemoryCount
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.sql.statements import Answer, Conditions, rows
from aforesaid.store.sql.tables import ACTIVE, DAY_OF, FIRST_DAY, MEMORY, MEMORY_OF_ANY_SPACE, USER

_ONE_OF_USER: Final = f"{MEMORY} WHERE [[m.space = $1 AND ]]m.owner = {USER} AND m.id = $3"
_ACTIVE: Final = ACTIVE.format("m")
_RESTING_ON: Final = """
m.id IN (SELECT s.memory FROM memory_source s WHERE [[s.space = $1 AND ]]s.seq BETWEEN {0} AND {1})
"""
_TIMELY: Final[Mapping[Timely, str]] = {
    "expiry": f"{_ACTIVE} AND m.expires_at IS NOT NULL AND m.expires_at <= $1 ORDER BY m.expires_at, m.id[[, m.space]]",
    "reminder": f"""
        {_ACTIVE} AND m.remind_at IS NOT NULL AND m.delivered_at IS NULL AND m.remind_at <= $1
        ORDER BY m.remind_at, m.id[[, m.space]]
    """,
    "unseen": f"""
        {_ACTIVE} AND m.seen_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM memory_version v WHERE [[v.space = m.space AND ]]v.memory = m.id AND v.at > $1)
        ORDER BY m.seen_at, m.id[[, m.space]]
    """,
}
_COUNTS: Final = f"""
SELECT {DAY_OF.format("coalesce(m.said_at, m.valid_from)")}, m.category, m.importance, m.state, count(*)
  FROM memory m[[ ~  JOIN person o ON o.id = m.owner]] WHERE {{limits}} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
_VERSIONS: Final = """
SELECT revision, at, actor, action, was,
       [[was ->> 'speaker' ~ (SELECT name FROM person WHERE id = json_extract(was, '$.speaker'))]]
  FROM memory_version WHERE [[space = $1 AND ]]memory = $2 ORDER BY revision
"""
# SQLite's index holds nobody but those whom it is about.
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person[[ ~  INDEXED BY person_to_extract]] WHERE last_seq > extracted
   AND [[(space, name) > ($1, $2) ORDER BY space, name
     ~ id > coalesce((SELECT id FROM person WHERE space = $1 AND name = $2), 0) ORDER BY id]] LIMIT $3
"""


def _memories(text: str, *values: Any) -> Answer[list[MemoryRecord]]:  # noqa: ANN401 - whatever the text binds
    return [records.memory(row) for row in (yield from rows(text, *values))]


def memories(question: questions.Memories) -> Answer[list[MemoryRecord]]:
    """Return the user's memories, most important first."""
    limits = Conditions(f"[[m.space = $1 AND ]]m.owner = {USER}", *question.scope[:2])
    if question.active is not None:
        limits.add(_ACTIVE if question.active else "NOT m.active")
    if question.messages is not None:
        limits.add(_RESTING_ON, *question.messages)
    return _memories(f"{MEMORY} WHERE {limits} ORDER BY m.importance DESC, m.id DESC", *limits.values)


def memory(question: questions.MemoryById) -> Answer[MemoryRecord]:
    """Return one memory of the user."""
    found = yield from _memories(_ONE_OF_USER, *question.scope[:2], question.memory)
    if not found:
        raise NotFound(f"{quoted(question.scope.user)} has no memory {question.memory}")
    return found[0]


def listed(question: questions.MemoriesOfSpace) -> Answer[list[MemoryRecord]]:
    """Return the newest memories by space, user, state, category, kind and the id that they are below."""
    limits = Conditions("[[m.space ~ o.space]] = $1", question.space)
    limits.add_if("[[m.owner ~ o.name]] = {0}", question.user)
    limits.add_if("m.category = {0}", question.category)
    limits.add_if("m.kind = {0}", question.kind)
    limits.add_if("m.state = {0}", question.state)
    limits.add_if("m.id < {0}", question.before)
    if question.active is not None:
        limits.add(_ACTIVE if question.active else "NOT m.active")
    newest = f"ORDER BY m.id DESC LIMIT {limits.bind(question.limit)}"
    return _memories(f"{MEMORY} WHERE {limits} {newest}", *limits.values)


def counts(question: questions.MemoryCounts) -> Answer[list[MemoryCount]]:
    """Return the number of memories by the day on which they were said, category, importance and state."""
    limits = Conditions("[[m.space ~ o.space]] = $1", question.space)
    limits.add_if("[[m.owner ~ o.name]] = {0}", question.user)
    found = yield from rows(_COUNTS.format(limits=limits), *limits.values)
    return [MemoryCount(FIRST_DAY + timedelta(days=day), *rest) for day, *rest in found]


def timely(question: questions.DueMemories) -> Answer[list[MemoryRecord]]:
    """Return active memories, of all spaces, whose time has come."""
    text = f"{MEMORY_OF_ANY_SPACE} WHERE {_TIMELY[question.what]} LIMIT $2"
    return _memories(text, microseconds(question.before, "the moment"), question.limit)


def versions(question: questions.MemoryVersions) -> Answer[list[MemoryVersion]]:
    """Return what a memory was before each of its changes, oldest first."""
    newest = yield from memory(questions.MemoryById(question.scope, question.memory))
    head = newest.id, newest.space, newest.user, newest.sources, records.number_of(newest.created_at)
    found = []
    for revision, at, actor, action, stored, speaker in (
        yield from rows(_VERSIONS, question.scope.space, question.memory)
    ):
        was = {**records.loaded(stored), "speaker": speaker}
        before = records.memory((*head, revision, *(was.get(name) for name in records.MEMORY)))
        found.append(MemoryVersion(before, action, actor, moment(at)))
    return found


def unextracted(question: questions.UnextractedUsers) -> Answer[list[Unextracted]]:
    """Return users of whom something was stored that nobody has looked through."""
    last = ("", "") if question.after is None else question.after[:2]
    return [
        Unextracted(Scope.of(name, space), extracted, last_seq)
        for space, name, extracted, last_seq in (yield from rows(_UNEXTRACTED, *last, question.limit))
    ]
