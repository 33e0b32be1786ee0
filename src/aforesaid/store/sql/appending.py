"""What appending a message needs in both databases: what is computed before it, and the versions that it replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from aforesaid.domain.change import AddMessage, Change
from aforesaid.domain.message import Draft, Message, Position, new_version, no_such_version
from aforesaid.domain.transfer import Restore, draft_of
from aforesaid.errors import NotFound
from aforesaid.store.sql.statements import Answer, first, rows
from aforesaid.store.sql.tables import A_THREAD, USER
from aforesaid.text.languages import terms

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
