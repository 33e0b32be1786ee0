"""What appending a message needs in both databases: what is computed before it, and the versions that it replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

from aforesaid.domain.change import AddMessage, Change
from aforesaid.domain.details import TAKEN_BACK
from aforesaid.domain.message import Draft, Message, Position, new_version, no_such_version
from aforesaid.domain.transfer import Restore, draft_of
from aforesaid.errors import NotFound
from aforesaid.store import records
from aforesaid.store.sql.statements import Answer, first, rows
from aforesaid.text.languages import terms

USER_ID: Final = "(SELECT id FROM person WHERE space = $1 AND name = {0})"
THREAD_ID: Final = "(SELECT id FROM thread WHERE space = $1 AND name = {0})"
"""The number of a user or a thread of the space $1 in SQLite."""
A_USER: Final = f"[[{{0}} ~ {USER_ID}]]"
A_THREAD: Final = f"[[{{0}} ~ {THREAD_ID}]]"
"""What columns hold of a user or a thread whose name is bound as {0}."""
USER: Final = A_USER.format("$2")
OWNED: Final = f"[[space = $1 AND ]]owner = {USER}"
"""The condition for rows of the user $2 in the space $1."""
BY_NAME: Final = "space = $1 AND [[owner ~ user]] = $2"
"""The same, for tables that hold names in both databases."""
NEWEST: Final = "[[NOT log.replaced ~ log.replaced = 0]]"
"""The condition that leaves out messages that do not count any more."""
_LATEST: Final = f"""
log.details IS DISTINCT FROM '{TAKEN_BACK}'
AND NOT EXISTS (SELECT 1 FROM log n WHERE [[n.space = $1 AND ]]n.replaces = log.seq)
"""
SEARCHED: Final = f"({NEWEST} OR ({_LATEST}))"
"""The condition for messages that a search finds: those that count, and those that were set aside with their branch."""
NOT_SEARCHED: Final = f"[[log.replaced ~ log.replaced = 1]] AND NOT ({_LATEST})"
"""The condition for all others, in a form that the index of replaced messages answers."""
ACTIVE: Final = "[[{0}.active ~ {0}.active = 1]]"
"""The condition for active rows. SQLite's partial indexes need it in this form."""

_DAY: Final = 86_400_000_000
FIRST_DAY: Final = date(1970, 1, 1)
DAY_OF: Final = f"({{0}} - (({{0}} % {_DAY}) + {_DAY}) % {_DAY}) / {_DAY}"
"""The number of the day (UTC) since the first one, of a time in microseconds."""


def listed(column: str, place: str, kind: str = "bigint") -> str:
    """Return the condition that a column is in the list bound at a place."""
    return f"[[{column} = ANY({place}::{kind}[]) ~ {column} IN (SELECT value FROM json_each({place}))]]"


MESSAGE: Final = """
SELECT log.seq, log.given_id, [[log.space, log.owner, log.thread ~ o.space, o.name, t.name]], s.name, log.role,
       [[log.author ~ a.name]], log.name, log.text, log.at, log.stored_at, log.active, log.chunk, log.hash,
       log.replaces, log.replaced, log.details
  FROM log[[ ~  JOIN person o ON o.id = log.owner JOIN person a ON a.id = log.author
  JOIN thread t ON t.id = log.thread]]
  JOIN session s ON [[s.space = log.space AND ]]s.id = log.session
"""
"""What `records.message` reads."""

SUMMARY_OF_ANY_SPACE: Final = """
SELECT y.id, [[y.space, y.owner, y.thread ~ o.space, o.name, t.name]], y.kind, y.level, y.text, y.chunks,
       [[ARRAY(SELECT x.source FROM summary_source x WHERE x.space = y.space AND x.summary = y.id ORDER BY x.source)
       ~ (SELECT json_group_array(source ORDER BY source) FROM summary_source WHERE summary = y.id)]],
       y.first_seq, y.last_seq, y.messages, y.model, y.prompt, y.created_at, y.active, y.rolled_back,
       y.began_at, y.ended_at, y.reach, y.fresh_seq, y.day, y.version, y.replaces, y.replaced, y.edited_by, y.details,
       y.quality, y.shown
  FROM summary y[[ ~  JOIN person o ON o.id = y.owner JOIN thread t ON t.id = y.thread]]
"""
SUMMARY: Final = SUMMARY_OF_ANY_SPACE.replace("x.space = y.space", "x.space = $1")
"""What `records.summary` reads, of the space $1. It is named for the sources too, so that Citus asks one shard."""

SESSION: Final = """
SELECT s.name, [[s.space, s.thread, s.opened_by ~ t.space, t.name, p.name]], s.started_at, s.last_at, s.messages,
       s.timeout, s.automatic, s.id
  FROM session s[[ ~  JOIN thread t ON t.id = s.thread JOIN person p ON p.id = s.opened_by]]
"""
"""What `records.session` reads."""

_COLUMNS: Final = ", ".join(f"m.{name}" for name in records.MEMORY).replace(
    "m.speaker", "[[m.speaker ~ (SELECT name FROM person WHERE id = m.speaker)]]"
)
MEMORY_OF_ANY_SPACE: Final = f"""
SELECT m.id, [[m.space, m.owner ~ o.space, o.name]],
       [[ARRAY(SELECT s.seq FROM memory_source s WHERE s.space = m.space AND s.memory = m.id ORDER BY s.seq)
       ~ (SELECT json_group_array(s.seq ORDER BY s.seq) FROM memory_source s WHERE s.memory = m.id)]],
       m.created_at, m.revision, {_COLUMNS}
  FROM memory m[[ ~  JOIN person o ON o.id = m.owner]]
"""
MEMORY: Final = MEMORY_OF_ANY_SPACE.replace("s.space = m.space", "s.space = $1")
"""What `records.memory` reads, of the space $1."""

ENTRY: Final = """
SELECT agenda.policy, agenda.space, agenda.[[owner ~ user]], agenda.thread, agenda.day, messages, characters, waiting,
       last_seq, due_at, done_at, done_seq, failures, error FROM agenda
"""
"""What `records.entry` reads."""


_NAMED: Final = f"""
SELECT at, seq, role FROM log
 WHERE [[space = $1 AND ]]owner = {USER} AND thread = {A_THREAD.format("$3")} AND {{name}} = $4
"""
_NEWEST_VERSION: Final = """
WITH RECURSIVE version (at, seq) AS (
    SELECT at, seq FROM log WHERE [[space = $1 AND ]]seq = $2
    UNION ALL SELECT log.at, log.seq FROM version JOIN log ON [[log.space = $1 AND ]]log.replaces = version.seq
) SELECT at, seq FROM version ORDER BY seq DESC LIMIT 1
"""
_REPLACE: Final = (
    "UPDATE log SET replaced = true WHERE [[space = $1 AND ]]seq = $2",
    "UPDATE person SET revision = revision + 1 WHERE space = $1 AND name = $2",
    "UPDATE thread SET revision = revision + 1 WHERE space = $1 AND name = $2",
)


class Prepared(NamedTuple):
    """A message with all that can be computed about it before anything is locked."""

    draft: Draft
    silence: int
    words: int
    """Number of its index terms."""
    terms: Any
    """Its index terms, as one value: a list would be one more object for the garbage collector. None for a message of
    a batch that is indexed later."""
    hash: bytes

    @property
    def can_be_refused(self) -> bool:
        """Whether what is stored can be a reason to refuse it: it names a session, or a message that it replaces."""
        return self.draft.scope.session is not None or self.draft.replaces is not None


class Returning(NamedTuple):
    """A message of a dump: it has a number and a session of its own."""

    change: Restore
    message: Prepared
    seq: int
    session: str
    hidden: bool
    """Whether it did not count any more where it came from."""


class Version(NamedTuple):
    """A new version on its way: the message that it names, and the newest version of that one."""

    named: Draft
    position: Position
    role: str
    newest: Position

    def checked(self) -> Draft:
        """Return the draft as it is stored. Raises InvalidInput when it cannot replace the message."""
        return new_version(self.named, self.position, self.role, self.newest)


def prepare(change: AddMessage, indexed: Callable[[Sequence[str]], Any]) -> Prepared:
    """Compute what needs no database. `indexed` makes one value of the index terms."""
    draft, silence = change
    found = terms(draft.text)
    return Prepared(draft, silence, len(found), indexed(found), draft.hash)


def prepare_change(change: Change, indexed: Callable[[Sequence[str]], Any]) -> Change | Prepared | Returning:
    """Compute what a change needs that needs no database."""
    if isinstance(change, AddMessage):
        return prepare(change, indexed)
    if isinstance(change, Restore) and isinstance(message := change.row, Message):
        ready = prepare(AddMessage(draft_of(message)), indexed)
        return Returning(change, ready, message.seq, message.session, message.replaced)
    return change


def version_of(draft: Draft) -> Answer[Version | NotFound]:
    """Find the message that a draft replaces, and the newest version of that one."""
    by = "seq" if isinstance(draft.replaces, int) else "given_id"
    found = yield from first(_NAMED.format(name=by), *draft.scope[:3], draft.replaces)
    if found is None:
        return no_such_version(draft)
    at, seq, role = found
    (newest,) = yield from rows(_NEWEST_VERSION, draft.scope.space, seq)
    return Version(draft._replace(replaces=seq), Position(at, seq), role, Position(*newest))


def replace_version(later: Callable[..., None], draft: Draft) -> None:
    """Mark the version before a new one. What searches keep in memory is read again."""
    space, user, thread, _ = draft.scope
    for text, value in zip(_REPLACE, (draft.replaces, user, thread), strict=True):
        later(text, space, value)
