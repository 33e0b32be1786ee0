"""Users and what is kept beside their messages: names, settings, receipts, token counts, audit; totals of the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from types import EllipsisType
from typing import ClassVar, Final

from aforesaid.domain import checks
from aforesaid.domain.checks import SettingValue, microseconds, moment, now
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt, receipt_details
from aforesaid.domain.details import is_regular
from aforesaid.domain.report import AuditEntry, ListedUser, Setting, SpaceTotals, Stats, User
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.transfer import Restored, SettingRow, SpendingRow, UserRow
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.checksums import Checksums, both
from aforesaid.store.messages import count_up_to
from aforesaid.store.operations import Change, OfScope, OfScopeShort, OfSpace, Question, Transaction
from aforesaid.store.sql import (
    ACTIVE,
    BY_NAME,
    NEWEST,
    OWNED,
    Answer,
    Conditions,
    Row,
    done,
    exists,
    listed,
    loaded,
    rows,
)

_DISPLAY_NAME: Final = """
(SELECT log.name FROM log WHERE [[log.space = {space} AND ]]log.author = person.[[name ~ id]] AND log.name IS NOT NULL
  ORDER BY log.at DESC, log.seq DESC LIMIT 1)
"""
_NEWEST_FIRST: Final = "ORDER BY coalesce(last_at, created_at) DESC, name DESC"
_USERS: Final = """
SELECT space, name, messages, archived, created_at, last_at, {name} AS shown FROM person WHERE {limits}
 ORDER BY space, name
"""
_ITS_OWNER: Final = "[[{0}.space = $1 AND ]]{0}.owner = person.[[name ~ id]]"
# The page is picked first: names and first times are looked up for its users alone.
_PAGE: Final = f"""
SELECT space, name, messages, archived, created_at, last_at, {_DISPLAY_NAME.format(space="$1")} AS shown,
       (SELECT min(log.at) FROM log WHERE {_ITS_OWNER.format("log")} AND {NEWEST}) AS first_at,
       (SELECT count(*) FROM memory m WHERE {_ITS_OWNER.format("m")} AND {ACTIVE.format("m")}) AS memories
  FROM (SELECT * FROM person WHERE {{limits}} {_NEWEST_FIRST} LIMIT {{limit}} OFFSET {{skip}}) person {_NEWEST_FIRST}
"""
_SPACES: Final = """
SELECT space, count(*), sum(messages)[[::bigint]], sum(archived)[[::bigint]], max(coalesce(last_at, created_at))
  FROM person WHERE [[owner ~ owner = 1]] AND name <> $1 GROUP BY space ORDER BY 5 DESC, 1
"""
_SPENT: Final = """
SELECT coalesce(sum(tokens), 0)[[::bigint]] FROM spending WHERE {limits}
"""
_IRREGULAR: Final = """
SELECT name FROM person WHERE octet_length(name) <> length(name) OR trim(name) <> name
UNION SELECT space FROM [[space ~ person]] WHERE octet_length(space) <> length(space) OR trim(space) <> space
UNION SELECT name FROM thread WHERE octet_length(name) <> length(name) OR trim(name) <> name
UNION SELECT name FROM session WHERE NOT automatic AND (octet_length(name) <> length(name) OR trim(name) <> name)
"""
_COUNTED: Final = ("thread", "session", "summary", "memory")
_COUNTS: Final = {table: f"[[{table}.count ~ (SELECT count(*) FROM {table})]]" for table in _COUNTED}
"""Citus counts other tables in subqueries of FROM alone; SQLite counts them faster in the list of results."""
_TOTALS: Final = f"""
SELECT spaces, users, {_COUNTS["thread"]}, {_COUNTS["session"]}, messages, archived,
       {_COUNTS["summary"]}, {_COUNTS["memory"]}, [[pg_database_size(current_database())
       ~ (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)]]
  FROM (SELECT count(DISTINCT space) AS spaces, count(*) FILTER (WHERE name <> $1) AS users,
               coalesce(sum(messages), 0)[[::bigint]] AS messages, coalesce(sum(archived), 0)[[::bigint]] AS archived
          FROM person WHERE [[owner ~ owner = 1]]) owners
       [[{"".join(f", (SELECT count(*) FROM {table}) {table}" for table in _COUNTED)}]]
"""
"""Totals of the store. Messages are counted per user as they arrive, so this does not read the log."""


@dataclass(frozen=True, slots=True)
class Users(Question[list[User]]):
    """The users who own something, of one space or of all, by space and id."""

    space: str | None = None

    def answer(self) -> Answer[list[User]]:
        limits = Conditions("[[owner ~ owner = 1]]")
        limits.add_if("space = {0}", self.space)
        name = _DISPLAY_NAME.format(space="person.space" if self.space is None else "$1")
        return [_read_user(row) for row in (yield from rows(_USERS.format(name=name, limits=limits), *limits.values))]


@dataclass(frozen=True, slots=True)
class UsersPage(OfSpace[list[ListedUser]]):
    """The users of a space who own something, last active first: `limit` of them after the first `skip`.

    With `users`, only these; with `id_part`, those too whose id contains it, whatever the case of its ASCII letters.
    The log is read for the names and first times of the returned users alone.
    """

    needs_store = True
    limit: int = 100
    skip: int = 0
    users: Collection[str] | None = None
    id_part: str | None = None

    def answer(self) -> Answer[list[ListedUser]]:
        limits = Conditions("space = $1 AND [[owner ~ owner = 1]]", self.space)
        limits.add("name <> {0}", EVERYBODY)
        chosen = listed("name", "{0}", "text")
        if self.id_part is not None:
            within = f"({chosen} OR [[strpos ~ instr]](lower(name), {{1}}) > 0)"
            limits.add(within, list(self.users or ()), self.id_part.lower())
        elif self.users is not None:
            limits.add(chosen, list(self.users))
        text = _PAGE.format(limits=limits, limit=limits.bind(self.limit), skip=limits.bind(self.skip))
        return [
            ListedUser(_read_user(row[:7]), None if row[7] is None else moment(row[7]), row[8])
            for row in (yield from rows(text, *limits.values))
        ]


def _read_user(row: Row) -> User:
    space, name, messages, archived, created_at, last_at, display_name = row
    last_activity = None if last_at is None else moment(last_at)
    return User(space, name, messages, archived, moment(created_at), last_activity, display_name)


@dataclass(frozen=True, slots=True)
class DisplayNames(OfSpace[dict[str, str]]):
    """The display names of a space by user id: of everybody who wrote under one, or of `users` alone.

    The name of the message that was said last counts, whoever owns that message. Authors who own nothing are included,
    the assistant too (under `assistant`). Does not read the log.
    """

    users: Collection[str] | None = None

    def answer(self) -> Answer[dict[str, str]]:
        limits = Conditions("space = $1", self.space)
        if self.users is not None:
            limits.add(listed("name", "{0}", "text"), list(self.users))
        text = f"SELECT name, {_DISPLAY_NAME.format(space='$1')} FROM person WHERE {limits}"
        return {name: shown for name, shown in (yield from rows(text, *limits.values)) if shown is not None}


@dataclass(frozen=True, slots=True)
class IrregularIds(Question[frozenset[str]]):
    """The ids of users, spaces, threads and named sessions that `domain.known_ids.regular` would change."""

    needs_store = True

    def answer(self) -> Answer[frozenset[str]]:
        return frozenset(name for (name,) in (yield from rows(_IRREGULAR)) if not is_regular(name))


@dataclass(frozen=True, slots=True)
class TotalsOfSpaces(Question[list[SpaceTotals]]):
    """The counts of each space that has users, last active first. Does not read the log."""

    needs_store = True

    def answer(self) -> Answer[list[SpaceTotals]]:
        return [
            SpaceTotals(space, users, messages, archived, moment(last))
            for space, users, messages, archived, last in (yield from rows(_SPACES, EVERYBODY))
        ]


@dataclass(frozen=True, slots=True)
class Totals(Question[Stats]):
    def answer(self) -> Answer[Stats]:
        found = yield from rows(_TOTALS, EVERYBODY)
        return Stats(*found[0])


@dataclass(frozen=True, slots=True)
class Settings(OfScopeShort[list[Setting]]):
    """The user's settings, by name."""

    def answer(self) -> Answer[list[Setting]]:
        text = f"SELECT key, [[value::text ~ value]], updated_at FROM setting WHERE {OWNED} ORDER BY key"
        found = yield from rows(text, *self.scope[:2])
        return [Setting(key, json.loads(value), moment(at)) for key, value, at in found]


@dataclass(frozen=True, slots=True)
class Receipts(OfScopeShort[list[ContextReceipt]]):
    """Receipts of the user's contexts, newest first: since a moment (microseconds), by id, or by what they led to."""

    limit: int = 100
    since: int | None = None
    before: str | None = None
    """Only receipts with a smaller id, which are older."""
    ids: Sequence[str] | None = None
    replies: Sequence[int] | None = None
    """Sequence numbers of replies."""

    def answer(self) -> Answer[list[ContextReceipt]]:
        whose = self.scope[:2]
        limits = Conditions(OWNED, *whose)
        limits.add_if("at >= {0}", self.since)
        limits.add_if("id < {0}", self.before)
        if self.ids is not None:
            limits.add(listed("id", "{0}", "text"), list(self.ids))
        if self.replies is not None:
            limits.add(f"reply IS NOT NULL AND {listed('reply', '{0}')}", list(self.replies))
        most = limits.bind(self.limit)
        text = f"SELECT id, at, reply, details FROM receipt WHERE {limits} ORDER BY id DESC LIMIT {most}"
        found = yield from rows(text, *limits.values)
        return [read_receipt(name, *whose, moment(at), reply, loaded(it)) for name, at, reply, it in found]


@dataclass(frozen=True, slots=True)
class TokensSpent(Question[int]):
    """The tokens that a user spent on a day; with None, what all spent together."""

    short = True
    day: date
    scope: Scope | None

    def answer(self) -> Answer[int]:
        limits = Conditions("day = $1", self.day.isoformat())
        limits.add("[[owner ~ user]] = {0}", "" if self.scope is None else self.scope.user)
        limits.add_if("space = {0}", None if self.scope is None else self.scope.space)
        ((tokens,),) = yield from rows(_SPENT.format(limits=limits), *limits.values)
        return int(tokens)


@dataclass(frozen=True, slots=True)
class AuditRows(OfScope[list[AuditEntry]]):
    """The newest audit rows about the user, oldest first."""

    limit: int = 100

    def answer(self) -> Answer[list[AuditEntry]]:
        text = f"""
        SELECT id, at, space, [[owner ~ user]], actor, action, subject FROM audit WHERE {BY_NAME}
         ORDER BY id DESC LIMIT $3
        """
        found = yield from rows(text, *self.scope[:2], self.limit)
        return [AuditEntry(row[0], moment(row[1]), *row[2:]) for row in reversed(found)]


@dataclass(frozen=True, slots=True)
class Marks(Question[dict[str, str]]):
    """Small texts about the store itself, by name."""

    needs_store = True

    def answer(self) -> Answer[dict[str, str]]:
        return dict((yield from rows("SELECT name, value FROM metadata[[ WHERE space = '']]")))


# --- What changes ask and write ---------------------------------------------------------------------------------------

_MERGE: Final = both(
    lambda checksums: checksums.update(
        "person",
        "space = $1 AND name = $2",
        created_at="[[least ~ min]](created_at, [[$3::bigint ~ $3]])",
        last_chunk="[[greatest ~ max]](last_chunk, [[$4::bigint ~ $4]])",
        extracted="[[greatest ~ max]](extracted, [[$5::bigint ~ $5]])",
    )
)


def _count_tokens(checksums: Checksums) -> str:
    *key, tokens = checksums.columns["spending"]
    counted = checksums.setting("spending", tokens="spending.tokens + excluded.tokens")
    return checksums.insert("spending", (*key, tokens), f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {counted}")


_SPEND: Final = both(_count_tokens)
"""Counts tokens of a user. What all users of a space spent together is counted without a name."""
_SAME_AUDIT: Final = f"SELECT 1 FROM audit WHERE {BY_NAME} AND at = $3 AND actor = $4 AND action = $5 AND subject = $6"


def is_user(scope: Scope) -> Answer[bool]:
    return exists("SELECT 1 FROM person WHERE space = $1 AND name = $2 AND owner", *scope[:2])


def expect_user(scope: Scope) -> Answer[None]:
    if not (yield from is_user(scope)):
        raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")


def was_purged(scope: Scope) -> Answer[bool]:
    return exists(f"SELECT 1 FROM audit WHERE {BY_NAME} AND action = 'purge' LIMIT 1", *scope[:2])


def _put_setting(within: Transaction, scope: Scope, setting: Setting) -> None:
    whose = within.whose(*scope[:2])
    row = {
        "key": setting.key,
        "value": json.dumps(setting.value, ensure_ascii=False),
        "updated_at": microseconds(setting.updated_at, "the time"),
    }
    within.insert("setting", {**whose, **row}, replacing=(*whose, "key"))


def _put_receipt(within: Transaction, receipt: ContextReceipt) -> None:
    whose = within.whose(receipt.space, receipt.user)
    row = {
        "id": receipt.id,
        "at": microseconds(receipt.at, "the time"),
        "reply": receipt.reply,
        "details": json.dumps(receipt_details(receipt), ensure_ascii=False, separators=(",", ":")),
    }
    within.insert("receipt", {**whose, **row}, replacing=(*whose, "id"))


# --- Changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutSetting(Change):
    """Store a setting of a user. None removes it."""

    scope: Scope
    key: str
    value: SettingValue
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        checks.identifier(self.key, "the setting's name")
        checks.setting_value(self.value, "the setting's value")

    def carry_out(self, within: Transaction) -> Answer[None]:
        scope, changed = self.scope, now()
        within.own(scope, changed)
        if self.value is None:
            within.later(f"DELETE FROM setting WHERE {OWNED} AND key = $3", *scope[:2], self.key)
        else:
            _put_setting(within, scope, Setting(self.key, self.value, moment(changed)))
        within.audit(scope, self.actor, "setting.put", self.key)
        return done(None)


@dataclass(frozen=True, slots=True)
class KeepReceipt(Change):
    """Store the receipt of a context, in the place of one with the same id.

    Nothing is stored for a user of whom nothing else is stored: asking for a context makes nobody a user.
    """

    receipt: ContextReceipt

    @property
    def scope(self) -> Scope:
        return self.receipt.scope

    def carry_out(self, within: Transaction) -> Answer[None]:
        if (yield from is_user(self.scope)):
            _put_receipt(within, self.receipt)


@dataclass(frozen=True, slots=True)
class Spend(Change):
    """Count the tokens of a model call, for all users together and for one user if named."""

    visible: ClassVar[bool] = False
    day: date
    scope: Scope | None
    tokens: int

    def __post_init__(self) -> None:
        checks.at_least(self.tokens, 0, "the tokens")

    def carry_out(self, within: Transaction) -> Answer[None]:
        scope = self.scope
        space = "" if scope is None else scope.space
        within.later(_SPEND, space, self.day.isoformat(), "", self.tokens)
        if scope is not None and ((yield from is_user(scope)) or not (yield from was_purged(scope))):
            within.later(_SPEND, space, self.day.isoformat(), scope.user, self.tokens)


@dataclass(frozen=True, slots=True)
class AuditAccess(Change):
    """Add an audit row: who viewed a user's data."""

    scope: Scope
    actor: str
    action: str
    subject: str

    def __post_init__(self) -> None:
        checks.identifier(self.actor, "the actor")
        checks.identifier(self.action, "the action")
        checks.short_text(self.subject, "the subject")

    def carry_out(self, within: Transaction) -> Answer[None]:
        within.audit(self.scope, self.actor, self.action, self.subject)
        return done(None)


@dataclass(frozen=True, slots=True)
class PutMark(Change):
    """Store a value about the store itself under a name; None deletes it.

    With `only_if`, raises SourcesChanged unless the stored value is that one (None: there is none).
    """

    name: str
    value: str | None
    only_if: str | EllipsisType | None = ...

    def __post_init__(self) -> None:
        checks.identifier(self.name, "the mark's name")
        if self.value is not None:
            checks.storable(self.value, "the mark")

    def carry_out(self, within: Transaction) -> Answer[None]:
        if self.only_if is not ... and (yield from Marks().answer()).get(self.name) != self.only_if:
            raise SourcesChanged(f"the mark {self.name!r} was changed by somebody else")
        if self.value is None:
            within.later("DELETE FROM metadata WHERE [[space = '' AND ]]name = $1", self.name)
        else:
            space = within.space("")
            row = {**space, "name": self.name, "value": self.value}
            within.insert("metadata", row, replacing=(*space, "name"))


def restore_user(within: Transaction, row: UserRow) -> Answer[Restored]:
    """Bring a user together with the one of the same name here."""
    scope, created = Scope.of(row.user, row.space), microseconds(row.created_at, "the time")
    fresh = not (yield from is_user(scope))
    within.own(scope, created)
    # If their numbers differ, there are messages here that nothing was extracted from there.
    same = (yield from count_up_to(scope, row.extracted)) == row.looked_through
    within.later(_MERGE, *scope[:2], created, row.last_chunk, row.extracted if same else 0)
    return Restored(0, fresh)


def restore_setting(within: Transaction, row: SettingRow) -> Answer[Restored]:
    """Store a setting, unless there is a later one."""
    scope, setting = Scope.of(row.user, row.space), row.setting
    within.own(scope, microseconds(setting.updated_at, "the time"))
    known = yield from Settings(scope).answer()
    fresh = not any(each.key == setting.key and each.updated_at >= setting.updated_at for each in known)
    if fresh:
        _put_setting(within, scope, setting)
    return Restored(0, fresh)


def restore_receipt(within: Transaction, row: ContextReceipt) -> Answer[Restored]:
    """Store the receipt of a context, unless it is here."""
    within.own(row.scope, microseconds(row.at, "the time"))
    fresh = not (yield from Receipts(row.scope, limit=1, ids=[row.id]).answer())
    if fresh:
        _put_receipt(within, row)
    return Restored(0, fresh)


def restore_spending(within: Transaction, row: SpendingRow) -> Answer[Restored]:
    """Count the tokens that are missing here."""
    scope = Scope(row.space, row.user, "") if row.user else None
    missing = row.tokens - (yield from TokensSpent(row.day, scope).answer())
    if missing > 0:
        within.later(_SPEND, row.space, row.day.isoformat(), row.user, missing)
    return Restored(0, missing > 0)


def restore_audit(within: Transaction, row: AuditEntry) -> Answer[Restored]:
    """Store a row of the audit log, unless it is here."""
    at = microseconds(row.at, "the time")
    known = yield from exists(_SAME_AUDIT, row.space, row.user, at, row.actor, row.action, row.subject)
    if not known:
        within.audit(Scope(row.space, row.user, ""), row.actor, row.action, row.subject, at)
    return Restored(0, not known)
