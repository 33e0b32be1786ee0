from __future__ import annotations

import asyncio
import faulthandler
import inspect
import os
from collections.abc import AsyncIterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import httpcore2
import pytest
import typer.testing
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from typer.main import get_command

import citus
from aforesaid.front import handle
from aforesaid.models.embed import local
from aforesaid.store import Store, open_store
from citus import clean_distributed_database, reason_to_leave_out, refuse_several_shards
from ordering import place
from pg import clean_database

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own inside
_ENOUGH_BYTES = 4 << 30
"""All files of a whole run take a third of it, and go with each test that passes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the torture scenarios at full size")
    parser.addoption("--citus", action="store_true", help="run every test of a store on a Citus cluster too")
    parser.addoption("--torture-scale", type=float, default=1.0, help="multiplies the rounds of the torture scenarios")


def pytest_configure(config: pytest.Config) -> None:
    # The real embedder takes seconds to load; tests that are about it ask for it by name.
    os.environ.setdefault("AFORESAID_EMBEDDER", "deterministic")
    # No test asks the models of whoever runs it, or reads their configuration.
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "GEMINI_", "OLLAMA_", "AFORESAID_MODEL"))]:
        del os.environ[name]
    os.environ["XDG_CONFIG_HOME"] = str(Path(__file__).parent / "no-configuration-here")
    # A test on a busy machine can take seconds; work that begins by itself meanwhile would change what it sees.
    setattr(handle, "_RESUME_SECONDS", 3_600.0)  # noqa: B010 - a constant
    # Typer builds all commands anew for each one that a test runs, which takes five times as long as most commands.
    setattr(typer.testing, "_get_command", cache(get_command))  # noqa: B010 - the module does not export it
    # Each client of a test would read all certificates of this machine again, though none of them is used.
    setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))  # noqa: B010
    # Hypothesis would read the constants of all modules that happen to be loaded, three seconds in each worker, and
    # with other examples wherever other modules are.
    setattr(providers, "_get_local_constants", Constants)  # noqa: B010 - the module does not export it
    # Whoever asks for the built-in encoder would load it again, in two seconds: no test keeps it for the next one.
    setattr(local, "_loaded", {})  # noqa: B010
    citus.required = config.getoption("--citus")
    # No deadlines: on a busy machine any example may take long. pytest-timeout ends a test that hangs.
    if not config.getoption("--torture"):
        _use_shared_memory()
    most = round(500 * config.getoption("--torture-scale"))
    settings.register_profile("thorough", max_examples=most, deadline=None)
    # The same examples in every run of the same code: `make torture` is what looks for new ones.
    settings.register_profile("quick", max_examples=40, derandomize=True, deadline=None)
    settings.load_profile("thorough" if config.getoption("--torture") else "quick")


def pytest_report_header() -> str | None:
    reason = reason_to_leave_out()
    return None if reason is None else f"left out: tests on a Citus cluster, because {reason}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out combinations of tests and stores that are not worth their time, and begin with the slowest files.

    On Citus, tests with the marker `distributed` run where a cluster can be had; with --citus all tests of a store do.
    Tests of the rooms above the store run on PostgreSQL and JSON files only at full size, because they do not depend on
    the kind of store. Those with the marker `every_store` do, and always run on all of them.
    """
    with_citus, no_cluster = config.getoption("--citus"), reason_to_leave_out() is not None
    left_out = [
        item
        for item in items
        if "[citus" in item.name and (no_cluster or not (with_citus or item.get_closest_marker("distributed")))
    ]
    if not config.getoption("--torture"):
        left_out += [
            item
            for item in items
            if ("[postgres" in item.name or ("[json" in item.name and "location" in getattr(item, "fixturenames", ())))
            and item.path.parent.name != "store"
            and item.get_closest_marker("every_store") is None
        ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        removed = set(left_out)
        items[:] = [item for item in items if item not in removed]
    items.sort(key=place)


def _use_shared_memory() -> None:
    """Keep the files of tests in memory, where there is much of it: a sync takes no time there.

    In a container it often is too small, or no program can be run from it. `make torture` runs on the disk.
    """
    try:
        found = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return
    if found.f_bavail * found.f_frsize >= _ENOUGH_BYTES and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_SHARED_MEMORY))


_ASYNC_LIMIT = 0.8
"""The part of its time limit after which an async test is cancelled: then it cleans up, and shows where it waited."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Cancel an async test that hangs, where pytest-timeout would leave its event loop blocked for the clean-up."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return
    marker, test = pyfuncitem.get_closest_marker("timeout"), pyfuncitem.obj
    given = pyfuncitem.config.getoption("timeout")
    limit = marker.args[0] if marker else given if given is not None else pyfuncitem.config.getini("timeout")

    @wraps(test)
    async def limited(*args: object, **named: object) -> None:
        async with asyncio.timeout(float(limit) * _ASYNC_LIMIT or None):
            await test(*args, **named)

    pyfuncitem.obj = limited


def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Limit the clean-up after a failure too: pytest has just ended its own limit."""
    if isinstance(node, pytest.Item):
        faulthandler.dump_traceback_later(float(node.config.getini("timeout")), exit=True, file=2)


class TidyLoop(asyncio.SelectorEventLoop):
    """An event loop that closes the connections which a test left open.

    On a busy machine a server can accept a connection while the test that asked for it ends. The garbage collector
    would report its socket during a later test, which then fails in the place of the first one.
    """

    def close(self) -> None:
        open_transports = [] if self.is_closed() else list(self._transports.values())  # type: ignore[attr-defined] # known to CPython only
        for transport in open_transports:
            transport.abort()
        if open_transports:
            self.run_until_complete(asyncio.sleep(0))  # an aborted transport closes its socket in the next round
        super().close()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """End the test if its time limit was raised inside a callback. Other exceptions are logged, as usual."""
        error = context.get("exception")
        if isinstance(error, pytest.fail.Exception):
            raise error
        super().call_exception_handler(context)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": TidyLoop}


@pytest.fixture(params=["sqlite", "memory", "json", "files", "postgres", "citus"])
def location(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place for a store, of every kind."""
    places = {"sqlite": "memory.db", "json": "memory.json", "files": "memory"}
    kind: str = request.param
    if kind == "postgres":
        return clean_database()
    if kind == "citus":
        refuse_several_shards(monkeypatch)
        return clean_distributed_database()
    return ":memory:" if kind == "memory" else f"{kind}:{tmp_path / places[kind]}"


@pytest.fixture
async def store(location: str) -> AsyncIterator[Store]:
    """An open store, of every kind."""
    opened = await open_store(location)
    yield opened
    await opened.close()
