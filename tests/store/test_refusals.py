"""A store that refuses is not a store that is away: the caller gets the error, and nothing fails over."""

from __future__ import annotations

import errno
import os
import runpy
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import psycopg
import pytest
from psycopg import errors as pg_errors

import aforesaid
from aforesaid.errors import StoreError, StoreRefused
from aforesaid.memory import Memory
from aforesaid.store.contract import FILE_RULES, rule_for
from aforesaid.store.postgres.connection import RULES as POSTGRES_RULES
from aforesaid.store.postgres.connection import translate
from aforesaid.store.sqlite.connection import RULES as SQLITE_RULES
from pg import shared_server

ROOT = Path(__file__).parents[2]
OF_POSTGRES = sorted(
    {kind for kind in vars(pg_errors).values() if isinstance(kind, type) and issubclass(kind, psycopg.Error)},
    key=lambda kind: kind.__name__,
)
OF_SQLITE = sorted(
    {kind for kind in vars(apsw).values() if isinstance(kind, type) and issubclass(kind, apsw.Error)},
    key=lambda kind: kind.__name__,
)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    dsn = shared_server().create("refusing")
    settings = {"fallback": f"files:{tmp_path / 'fallback'}", "background": False}
    async with aforesaid.connect(dsn, embedder="none", settings=settings) as opened:
        yield opened


def forbid(statement: str) -> None:
    with shared_server().admin("refusing") as admin:
        admin.execute(statement)


async def test_an_add_that_the_database_refuses_raises_with_its_words_and_does_not_fail_over(
    memory: Memory, tmp_path: Path
) -> None:
    ann = memory.user("ann")
    await ann.add("user", "I moved to Berlin.")
    forbid("ALTER TABLE log OWNER TO postgres; GRANT SELECT ON log TO aforesaid")
    with pytest.raises(StoreRefused, match="permission denied for table log"):
        await ann.add("user", "And I like it.")
    assert not list((tmp_path / "fallback").rglob("whole_history.json"))
    assert [hit.text for hit in await ann.search("berlin")] == ["I moved to Berlin."]
    forbid("ALTER TABLE log OWNER TO aforesaid")
    assert (await ann.add("user", "And I like it.")).durable
    assert [message.text for message in await ann.history()] == ["I moved to Berlin.", "And I like it."]


async def test_a_read_that_the_database_refuses_raises_and_the_store_goes_on(memory: Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "I moved to Berlin.")
    forbid("ALTER TABLE summary RENAME TO summary_elsewhere")
    with pytest.raises(StoreRefused, match="summary"):
        await ann.summaries()
    forbid("ALTER TABLE summary_elsewhere RENAME TO summary")
    assert [message.text for message in await ann.history()] == ["I moved to Berlin."]
    assert next(part for part in (await memory.health()).components if part.name == "store").status == "active"


async def test_a_database_that_refuses_the_role_is_an_error_at_opening(tmp_path: Path) -> None:
    shared_server().create("refusing")
    nobody = shared_server().dsn("refusing", "nobody_of_that_name")
    with pytest.raises(StoreRefused, match="nobody_of_that_name"):
        await aforesaid.connect(nobody, settings={"fallback": f"files:{tmp_path / 'fallback'}"})


@pytest.mark.parametrize("kind", OF_POSTGRES, ids=lambda kind: kind.__name__)
def test_every_error_of_postgresql_has_a_consequence(kind: type[psycopg.Error]) -> None:
    rule = rule_for(kind("what the database says"), POSTGRES_RULES)
    assert rule.consequence in {"fail over", "retry", "refuse"}
    assert "what the database says" in str(translate(kind("what the database says"), "here", "reading"))


@pytest.mark.parametrize("kind", OF_SQLITE, ids=lambda kind: kind.__name__)
def test_every_error_of_sqlite_has_a_consequence(kind: type[apsw.Error]) -> None:
    assert rule_for(kind("what SQLite says"), SQLITE_RULES).consequence in {"fail over", "retry", "refuse"}


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_every_error_of_the_operating_system_has_a_consequence(number: int) -> None:
    rule = rule_for(OSError(number, os.strerror(number)), FILE_RULES)
    assert issubclass(rule.becomes, StoreError)


@pytest.mark.parametrize(
    ("error", "consequence"),
    [
        (psycopg.OperationalError("the connection is lost"), "fail over"),
        (pg_errors.AdminShutdown(), "fail over"),
        (pg_errors.InternalError_("could not commit transaction for shard 7 on at least one active node"), "fail over"),
        (pg_errors.InternalError_("something else"), "refuse"),
        (pg_errors.DiskFull(), "fail over"),
        (pg_errors.SerializationFailure(), "retry"),
        (pg_errors.QueryCanceled(), "retry"),
        (pg_errors.OutOfMemory(), "retry"),
        (pg_errors.InsufficientPrivilege(), "refuse"),
        (pg_errors.FeatureNotSupported(), "refuse"),
        (pg_errors.UndefinedTable(), "refuse"),
        (pg_errors.InvalidPassword(), "refuse"),
        (pg_errors.DataCorrupted(), "refuse"),
    ],
)
def test_only_what_cannot_be_reached_or_written_fails_over(error: psycopg.Error, consequence: str) -> None:
    assert rule_for(error, POSTGRES_RULES).consequence == consequence


def test_the_page_of_store_errors_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "tools/store_errors.py"))["page"]()
    page = (ROOT / "docs/reference/store-errors.md").read_text(encoding="utf-8")
    assert page == made, "run: make store-errors"
