"""Placing messages: what was delivered before, which version replaces which, and which session each belongs to.

Written once for both databases. The abstract methods of `Placing` are what each of them does in its own way, because
that is much faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from aforesaid.domain.message import Draft, Message, Position, new_version, no_such_version
from aforesaid.domain.receipt import Repeated, Result, Stored
from aforesaid.domain.scope import Scope, SessionBounds, automatic_name, opening_message, place
from aforesaid.domain.transfer import Restored, draft_of
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.store.checksums import both
from aforesaid.store.dumping import Restore
from aforesaid.store.erasing import replace_version
from aforesaid.store.messages import AddMessage
from aforesaid.store.operations import Change, Transaction
from aforesaid.store.sql import A_THREAD, USER, Answer, first, rows
from aforesaid.text.languages import terms


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

    @property
    def spaces(self) -> tuple[str, ...]:
        return (self.draft.scope.space,)


class Returning(NamedTuple):
    """A message of a dump: it has a number and a session of its own."""

    change: Restore
    row: Message
    message: Prepared

    @property
    def spaces(self) -> tuple[str, ...]:
        return self.message.spaces


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
    found = terms(change.draft.text)
    return Prepared(change.draft, change.silence, len(found), indexed(found), change.draft.hash)


def prepare_change(change: Change, indexed: Callable[[Sequence[str]], Any]) -> Change | Prepared | Returning:
    if isinstance(change, AddMessage):
        return prepare(change, indexed)
    if isinstance(change, Restore) and isinstance(message := change.row, Message):
        return Returning(change, message, prepare(AddMessage(draft_of(message)), indexed))
    return change


_THREAD: Final = A_THREAD.format("$2")
_WITH_ID: Final = f"""
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
_LATEST: Final = f"""
SELECT id, name, started_at, last_at FROM session
 WHERE [[space = $1 AND ]]thread = {_THREAD} AND [[automatic ~ automatic = 1]]
 ORDER BY started_at DESC, id DESC LIMIT 2
"""
_NEAR: Final = f"""
SELECT id, started_at, last_at, name FROM session
 WHERE [[space = $1 AND ]]thread = {_THREAD} AND [[automatic ~ automatic = 1]] AND started_at < $3
 ORDER BY started_at DESC, id DESC LIMIT 2
"""
_NAMED: Final = f"""
SELECT id, name FROM session
 WHERE [[space = $1 AND md5(thread) = md5($2) AND ]]thread = {_THREAD} AND name = $3
"""
_OF_MESSAGE: Final = f"""
SELECT s.id, s.name FROM log JOIN session s ON [[s.space = log.space AND ]]s.id = log.session
 WHERE [[log.space = $1 AND ]]log.seq = $3 AND log.thread = {_THREAD}
"""
_BY_HAND: Final = both(
    lambda checksums: checksums.update(
        "session", "[[space = $1 AND ]]id = $2 AND [[automatic ~ automatic = 1]]", automatic="[[false ~ 0]]"
    )
)
_ABSORB: Final = (
    """
    UPDATE log SET session = $2 FROM session s
     WHERE [[s.space = $1 AND log.space = $1 AND ]]s.id = $3 AND log.session = $3 AND log.thread = s.thread
       AND log.at BETWEEN s.started_at AND s.last_at
    """,
    """
    UPDATE session SET started_at = [[least ~ min]](session.started_at, o.started_at),
           last_at = [[greatest ~ max]](session.last_at, o.last_at),
           first_seq = [[least ~ min]](session.first_seq, o.first_seq),
           last_seq = [[greatest ~ max]](session.last_seq, o.last_seq), messages = session.messages + o.messages
      FROM session o WHERE [[session.space = $1 AND o.space = $1 AND ]]session.id = $2 AND o.id = $3
    """,
    "DELETE FROM session WHERE [[space = $1 AND ]]id = $3",
)
"""Makes the messages of session $3 part of session $2."""
_REGROUPED: Final = """
UPDATE person SET revision = revision + 1 WHERE [[space = $1 AND name ~ id]] IN (
    SELECT l.owner FROM session s JOIN log l
        ON [[l.space = s.space AND ]]l.thread = s.thread AND l.session = s.id
       AND l.at BETWEEN s.started_at AND s.last_at
     WHERE [[s.space = $1 AND ]]s.id = $2)
"""


Step = Change | Prepared | Returning


@dataclass(slots=True)
class Latest:
    """The newest automatic session of a thread."""

    key: int
    name: str
    started: int
    last: int
    earlier_last: int | None
    """When the session before it ended."""

    def surely_has(self, at: int, silence: int) -> bool:
        """Return whether a message belongs to it, and no other session is near."""
        if not self.started <= at < self.last + silence:
            return False
        return self.earlier_last is None or at >= self.earlier_last + silence


@dataclass(slots=True)
class Growth:
    """What has been added to a session, and is still to be written."""

    started: int
    last: int
    last_seq: int
    messages: int


Place = tuple[str, str]
"""A space, and a person or a thread in it."""


class Placing(ABC):
    """Appends messages within one write transaction.

    Rows are collected and written together; whatever looks at them in the same transaction calls `write` first.
    """

    def __init__(self, within: Transaction, latest: dict[Place, Latest | None]) -> None:
        self._within = within
        self._latest = latest
        self._grown: dict[tuple[str, int], Growth] = {}
        self._entered: dict[tuple[str, str, str], int] = {}
        """Sessions of messages that came back from a dump."""

    @abstractmethod
    def delivered_before(self, draft: Draft) -> Answer[Message | None]:
        """Return the message of the thread that this one repeats: by its id, or by its time if that was given."""

    @abstractmethod
    def next_number(self, space: str) -> int:
        """Return the number of the next message."""

    @abstractmethod
    def collect(self, stored: Stored, step: Prepared, session: int, *, hidden: bool = False) -> None:
        """Have a message written with the next ones, under a number that is at least the next."""

    @abstractmethod
    def open_session(self, draft: Draft, name: str, silence: int, seq: int, *, automatic: bool) -> int:
        """Store a session that begins with a message, and return its number."""

    @abstractmethod
    def write_messages(self) -> None:
        """Write the messages that were collected."""

    @abstractmethod
    def write_growth(self, grown: Mapping[tuple[str, int], Growth]) -> None:
        """Bring stored sessions up to date."""

    def write_sessions(self) -> None:
        if self._grown:
            self.write_growth(self._grown)
            self._grown.clear()

    def write(self) -> None:
        self.write_messages()
        self.write_sessions()
        self._entered.clear()

    def carry_out(self, step: Step) -> Answer[Result]:
        match step:
            case Prepared():
                stored = yield from self.append(step)
                if isinstance(stored, Stored) and stored.draft.replaces is not None:
                    self.write()
                    yield from replace_version(self._within, stored.draft)
                return stored
            case Returning():
                return step.change.as_expected((yield from self._restore(step)))
        # What comes next may be about messages of the same change set.
        self.write()
        result: Result = yield from step.carry_out(self._within)
        return result

    def append(self, step: Prepared) -> Answer[Stored | Repeated]:
        draft = step.draft
        version = None
        if draft.replaces is not None:
            version = yield from self._version(draft)
            draft = version.named if isinstance(version, Version) else draft
        if draft.at_given or draft.id is not None:
            earlier = yield from self.delivered_before(draft)
            if earlier is not None:
                return Repeated(earlier)
        if version is not None:
            if isinstance(version, NotFound):
                raise version
            draft = version.checked()
            step = step._replace(hash=draft.hash)
        seq = self.next_number(draft.scope.space)
        session, name = yield from self._session(draft, step.silence, seq)
        stored = Stored(draft, seq, name, step.hash)
        self.collect(stored, step, session)
        if version is not None:
            self._replace(draft)
        return stored

    def _restore(self, step: Returning) -> Answer[Restored]:
        row, draft = step.row, step.message.draft
        version = None
        if draft.replaces is not None:
            version = yield from self._version(draft)
            draft = version.named if isinstance(version, Version) else draft._replace(replaces=None)
        earlier = yield from self.delivered_before(draft)
        if earlier is not None:
            return Restored(earlier.seq, False)
        if isinstance(version, Version):
            draft = version.checked()
        seq = max(self.next_number(draft.scope.space), row.seq)
        name = automatic_name(seq) if opening_message(row.session) == row.seq else row.session
        session = yield from self._enter(draft, step.message.silence, seq, name)
        self.collect(Stored(draft, seq, name, step.message.hash), step.message, session, hidden=row.replaced)
        if isinstance(version, Version):
            self._replace(draft)
        return Restored(seq, True)

    def _version(self, draft: Draft) -> Answer[Version | NotFound]:
        """Find the message that a draft replaces, and the newest version of that one."""
        self.write()
        by = "seq" if isinstance(draft.replaces, int) else "given_id"
        found = yield from first(_WITH_ID.format(name=by), *draft.scope[:3], draft.replaces)
        if found is None:
            return no_such_version(draft)
        at, seq, role = found
        (newest,) = yield from rows(_NEWEST_VERSION, draft.scope.space, seq)
        return Version(draft._replace(replaces=seq), Position(at, seq), role, Position(*newest))

    def _replace(self, draft: Draft) -> None:
        """Mark the version before a new one. What searches keep in memory is read again."""
        self.write()
        space, user, thread, _ = draft.scope
        for text, value in zip(_REPLACE, (draft.replaces, user, thread), strict=True):
            self._within.later(text, space, value)

    def _session(self, draft: Draft, silence: int, seq: int) -> Answer[tuple[int, str]]:
        scope = draft.scope
        if scope.session is not None:
            return (yield from self._named(draft, scope.session, silence, seq))
        latest = yield from self.newest_session(scope)
        if latest is None or draft.at >= latest.last + silence:
            # Sessions do not overlap, so none is near when the newest is not.
            name = automatic_name(seq)
            key = self.open_session(draft, name, silence, seq, automatic=True)
            earlier_last = None if latest is None else latest.last
            self._latest[scope.space, scope.thread] = Latest(key, name, draft.at, draft.at, earlier_last)
            return key, name
        if latest.surely_has(draft.at, silence):
            latest.last = max(latest.last, draft.at)
            self.grow(scope.space, latest.key, draft.at, seq)
            return latest.key, latest.name
        return (yield from self._between(draft, silence, seq))

    def newest_session(self, scope: Scope) -> Answer[Latest | None]:
        here = scope.space, scope.thread
        if here in self._latest:
            return self._latest[here]
        self.write_sessions()
        found = yield from rows(_LATEST, *here)
        latest = None
        if found:
            key, name, started, last = found[0]
            latest = Latest(key, name, started, last, found[1][3] if found[1:] else None)
        self._latest[here] = latest
        return latest

    def _enter(self, draft: Draft, silence: int, seq: int, name: str) -> Answer[int]:
        """Put a message into the session of its thread that has a name, whatever the silences say."""
        here = draft.scope.space, draft.scope.thread
        self._latest.pop(here, None)
        key = self._entered.get((*here, name))
        if key is None:
            self.write_sessions()
            found = yield from first(_NAMED, *here, name)
            if found is None:
                automatic = opening_message(name) is not None
                key = self.open_session(draft, name, silence, seq, automatic=automatic)
                self._entered[*here, name] = key
                return key
            key = self._entered[*here, name] = int(found[0])
        self.grow(here[0], key, draft.at, seq)
        return key

    def _named(self, draft: Draft, name: str, silence: int, seq: int) -> Answer[tuple[int, str]]:
        here = self._settle(draft.scope)
        found = yield from first(_NAMED, *here, name)
        opened_by = opening_message(name)
        if found is None and opened_by is not None:
            # A name that the log gave out stays good when its session has become part of another.
            found = yield from first(_OF_MESSAGE, *here, opened_by)
            if found is None:
                raise InvalidInput(
                    f"there is no session {quoted(name)} in this thread; names like it are given by Aforesaid"
                )
        if found is None:
            return self.open_session(draft, name, silence, seq, automatic=False), name
        key, current = found
        # Whoever continues a session by name decides how long it lasts; the silences no longer do.
        self._within.later(_BY_HAND, here[0], key)
        self.grow(here[0], key, draft.at, seq)
        return key, current

    def _between(self, draft: Draft, silence: int, seq: int) -> Answer[tuple[int, str]]:
        """Place a message that was said before the end of the newest session."""
        here = self._settle(draft.scope)
        near = yield from rows(_NEAR, *here, draft.at + silence)
        placement = place(draft.at, silence, [SessionBounds(key, started, last) for key, started, last, _ in near])
        if placement.keep is None:
            name = automatic_name(seq)
            return self.open_session(draft, name, silence, seq, automatic=True), name
        key = placement.keep.key
        if placement.absorb is not None:
            for text in _ABSORB:
                self._within.later(text, here[0], key, placement.absorb.key)
            self._within.later(_REGROUPED, here[0], key)
            self._within.later("UPDATE thread SET revision = revision + 1 WHERE space = $1 AND name = $2", *here)
        self.grow(here[0], key, draft.at, seq)
        return key, next(name for number, _, _, name in near if number == key)

    def _settle(self, scope: Scope) -> Place:
        """Write and forget what is remembered of a thread, because its sessions are about to be changed."""
        self.write()
        here = scope.space, scope.thread
        self._latest.pop(here, None)
        return here

    def grow(self, space: str, key: int, at: int, seq: int, messages: int = 1) -> None:
        """Note that messages up to a time and a number were added to a session."""
        grown = self._grown.get((space, key))
        if grown is None:
            self._grown[space, key] = Growth(at, at, seq, messages)
        else:
            grown.started, grown.last = min(grown.started, at), max(grown.last, at)
            grown.last_seq = seq
            grown.messages += messages
