"""Questions about users, their names, receipts and what they spent, and totals of the store."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import moment
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt
from aforesaid.domain.details import is_regular
from aforesaid.domain.report import ListedUser, SpaceTotals, User
from aforesaid.domain.setting import EVERYBODY
from aforesaid.store import questions, records
from aforesaid.store.sql.statements import Answer, Conditions, rows
from aforesaid.store.sql.tables import ACTIVE, NEWEST, OWNED, listed

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
TOTALS: Final = f"""
SELECT spaces, users, {_COUNTS["thread"]}, {_COUNTS["session"]}, messages, archived,
       {_COUNTS["summary"]}, {_COUNTS["memory"]}, [[pg_database_size(current_database())
       ~ (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)]]
  FROM (SELECT count(DISTINCT space) AS spaces, count(*) FILTER (WHERE name <> $1) AS users,
               coalesce(sum(messages), 0)[[::bigint]] AS messages, coalesce(sum(archived), 0)[[::bigint]] AS archived
          FROM person WHERE [[owner ~ owner = 1]]) owners
       [[{"".join(f", (SELECT count(*) FROM {table}) {table}" for table in _COUNTED)}]]
"""
"""Totals of the store. Messages are counted per user as they arrive, so this does not read the log."""


def users(question: questions.Users) -> Answer[list[User]]:
    """Return the users who own something."""
    limits = Conditions("[[owner ~ owner = 1]]")
    limits.add_if("space = {0}", question.space)
    name = _DISPLAY_NAME.format(space="person.space" if question.space is None else "$1")
    return [records.user(row) for row in (yield from rows(_USERS.format(name=name, limits=limits), *limits.values))]


def users_page(question: questions.UsersPage) -> Answer[list[ListedUser]]:
    """Return a page of the users of a space, last active first."""
    limits = Conditions("space = $1 AND [[owner ~ owner = 1]]", question.space)
    limits.add("name <> {0}", EVERYBODY)
    chosen = listed("name", "{0}", "text")
    if question.id_part is not None:
        within = f"({chosen} OR [[strpos ~ instr]](lower(name), {{1}}) > 0)"
        limits.add(within, list(question.users or ()), question.id_part.lower())
    elif question.users is not None:
        limits.add(chosen, list(question.users))
    text = _PAGE.format(limits=limits, limit=limits.bind(question.limit), skip=limits.bind(question.skip))
    return [
        ListedUser(records.user(row[:7]), None if row[7] is None else moment(row[7]), row[8])
        for row in (yield from rows(text, *limits.values))
    ]


def spaces(_: questions.TotalsOfSpaces) -> Answer[list[SpaceTotals]]:
    """Return the counts of each space that has users."""
    return [
        SpaceTotals(space, users, messages, archived, moment(last))
        for space, users, messages, archived, last in (yield from rows(_SPACES, EVERYBODY))
    ]


def names(question: questions.DisplayNames) -> Answer[dict[str, str]]:
    """Return the display names of a space by user id."""
    limits = Conditions("space = $1", question.space)
    if question.users is not None:
        limits.add(listed("name", "{0}", "text"), list(question.users))
    text = f"SELECT name, {_DISPLAY_NAME.format(space='$1')} FROM person WHERE {limits}"
    return {name: shown for name, shown in (yield from rows(text, *limits.values)) if shown is not None}


def spent(question: questions.TokensSpent) -> Answer[int]:
    """Return the tokens that were spent on a day. What all spent has no user, and a row for each space that spent."""
    limits = Conditions("day = $1", question.day.isoformat())
    limits.add("[[owner ~ user]] = {0}", "" if question.scope is None else question.scope.user)
    limits.add_if("space = {0}", None if question.scope is None else question.scope.space)
    ((tokens,),) = yield from rows(_SPENT.format(limits=limits), *limits.values)
    return int(tokens)


def receipts(question: questions.Receipts) -> Answer[list[ContextReceipt]]:
    """Return receipts of contexts, newest first."""
    whose = question.scope[:2]
    limits = Conditions(OWNED, *whose)
    limits.add_if("at >= {0}", question.since)
    limits.add_if("id < {0}", question.before)
    if question.ids is not None:
        limits.add(listed("id", "{0}", "text"), list(question.ids))
    if question.replies is not None:
        limits.add(f"reply IS NOT NULL AND {listed('reply', '{0}')}", list(question.replies))
    most = limits.bind(question.limit)
    text = f"SELECT id, at, reply, details FROM receipt WHERE {limits} ORDER BY id DESC LIMIT {most}"
    found = yield from rows(text, *limits.values)
    return [read_receipt(name, *whose, moment(at), reply, records.loaded(it)) for name, at, reply, it in found]


def irregular_ids(_: questions.IrregularIds) -> Answer[frozenset[str]]:
    """Return the ids that are not spelled regularly: SQL finds those that may be, by their bytes and spaces."""
    return frozenset(name for (name,) in (yield from rows(_IRREGULAR)) if not is_regular(name))
