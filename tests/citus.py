"""A real Citus cluster for tests: a coordinator and two workers on loopback."""

from __future__ import annotations

import atexit
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

import psycopg
import pytest

from aforesaid.store.postgres import database
from aforesaid.store.postgres.queries import Statement, opening
from pg import EMPTY, PROJECT, processes_of

SHARDS = 4
"""Shards of each table in the conformance tests: two on each worker. Emptying 32 of each takes most of the time."""

_INSTALLED = Path("/usr/lib/postgresql/15/lib/citus.so")
"""Where the script looks for Citus before it unpacks its own build, which is for arm64."""

_SHARD = re.compile(r"_(10\d{4})\b")
"""The number of a shard, at the end of the name of its table."""

_UNLOADABLE = re.compile(r"could not load library .*")
"""What PostgreSQL logs when a library was built for another version of it."""

required = False
"""Whether tests fail where a cluster cannot be started. Otherwise they are left out."""


@cache
def starter() -> Path | None:
    """Return the script that starts a cluster: shared/citus/cluster.sh beside the project or above it."""
    places = (parent / "shared" / "citus" / "cluster.sh" for parent in PROJECT.parents)
    return next((place for place in places if place.exists()), None)


def reason_to_leave_out() -> str | None:
    """Return why no cluster can be had here; None where one can."""
    if platform.machine() != "aarch64" and not _INSTALLED.exists():
        return f"its builds are for arm64, this machine is {platform.machine()}, and it is not installed"
    if os.geteuid() != 0:
        return "only root can install and start it"
    if starter() is None:
        return "there is no folder shared/citus beside the project"
    return None


class Cluster:
    """A cluster that was started for tests and goes away with them."""

    def __init__(self, running: str | None = None) -> None:
        """Start one in a new folder. One that is given as FOLDER:PORT is left running."""
        if running is None:
            self.folder, self.port = Path(tempfile.mkdtemp(prefix="aforesaid-citus-")), _free_ports()
            self.folder.chmod(0o755)
            atexit.register(self.remove)
        else:
            folder, _, port = running.partition(":")
            self.folder, self.port = Path(folder), int(port)
        done = self._run("start")
        if done.returncode != 0:
            logs = "".join(path.read_text()[-500:] for path in sorted(self.folder.glob("*.log")))
            unloadable = _UNLOADABLE.search(logs)
            raise RuntimeError(unloadable[0] if unloadable else f"{done.stderr[-1000:]}\n{logs}")
        self.admin_dsn, self.dsn = done.stdout.split()

    def worker(self, number: int) -> psycopg.Connection:
        """Connect to a worker as an administrator."""
        return psycopg.connect(self.admin_dsn.replace(f":{self.port}/", f":{self.port + number}/"), autocommit=True)

    def admin(self) -> psycopg.Connection:
        """Connect to the coordinator as an administrator."""
        return psycopg.connect(self.admin_dsn, autocommit=True)

    def forget_statements(self) -> None:
        """Start counting statements on the workers."""
        for number in (1, 2):
            with self.worker(number) as worker:
                worker.execute("SELECT pg_stat_statements_reset()")

    def shard_statements(self) -> dict[int, Counter[str]]:
        """Return the statements on shards since then, by the shard of the space, counted."""
        with self.admin() as admin:
            found = admin.execute("SELECT shardid, shardminvalue::bigint FROM pg_dist_shard").fetchall()
        shards: dict[int, int] = dict(found)
        counted: dict[int, Counter[str]] = {}
        for number in (1, 2):
            with self.worker(number) as worker:
                for text, calls in worker.execute("SELECT query, calls FROM pg_stat_statements").fetchall():
                    named = {int(shard) for shard in _SHARD.findall(text)} & shards.keys()
                    for shard in {shards[shard] for shard in named}:
                        counted.setdefault(shard, Counter())[text] += calls
        return counted

    def kill_worker(self, number: int) -> None:
        """End the postmaster of a worker with SIGKILL, and wait until all of its processes have noticed."""
        data = self.folder / f"worker{number}"
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        while processes_of(data):
            time.sleep(0.01)
        # Where nobody waits for the postmaster, its number stays taken, and these would say that it still runs.
        (data / "postmaster.pid").unlink()
        (self.folder / f".s.PGSQL.{self.port + number}.lock").unlink(missing_ok=True)

    def start_again(self) -> None:
        """Start the servers that do not run."""
        done = self._run("start")
        assert done.returncode == 0, done.stderr[-1000:]

    def remove(self) -> None:
        """Stop it, and remove all that it wrote."""
        self._run("stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, what: str) -> subprocess.CompletedProcess[str]:
        command = [str(starter()), what, str(self.folder), str(self.port)]
        return subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def shared_cluster() -> Cluster:
    """Return the one cluster that all tests of a process share."""
    reason = reason_to_leave_out()
    if reason is not None:
        pytest.skip(f"no Citus cluster: {reason}")
    found = _cluster_or_reason()
    if isinstance(found, Cluster):
        return found
    if required:
        raise RuntimeError(f"no Citus cluster could be started: {found}")
    pytest.skip(f"no Citus cluster could be started: {found}")


@cache
def _cluster_or_reason() -> Cluster | str:
    try:
        return Cluster(os.environ.get("AFORESAID_TEST_CITUS"))
    except RuntimeError as error:
        return str(error)


def distribute(dsn: str) -> str:
    """Create the tables and distribute them, as the guide says. Return what was said."""
    command = str(Path(sys.executable).with_name("aforesaid"))
    for arguments in (["status", "--store", dsn], ["migrate", "--citus", dsn]):
        ran = subprocess.run([command, *arguments], check=False, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@cache
def _distributed() -> str:
    cluster = shared_cluster()
    dsn = f"{cluster.dsn}?options=-c%20citus.shard_count%3D{SHARDS}"
    with cluster.admin() as admin:
        there = admin.execute("SELECT 1 FROM pg_dist_partition").fetchone()
    if there is None:
        distribute(dsn)
    return dsn


def clean_distributed_database() -> str:
    """Return where an empty database is whose tables are distributed."""
    dsn = _distributed()
    with psycopg.connect(dsn) as connection:
        connection.execute("SET citus.propagate_set_commands = 'local'")
        connection.execute("SET LOCAL aforesaid.reach = 'all'")
        connection.execute(EMPTY)
    return dsn


def refuse_several_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Citus refuse every statement on several shards in a transaction that names one space."""

    def strict(begin: str, space: str | None, *, distributed: bool) -> list[Statement]:
        opened = opening(begin, space, distributed=distributed)
        if distributed and space is not None:
            opened.append(("SET LOCAL citus.multi_task_query_log_level = 'error'", ()))
        return opened

    monkeypatch.setattr(database, "opening", strict)


def _free_ports() -> int:
    """Return a port that is free together with the two after it."""
    while True:
        with socket.socket() as first, socket.socket() as second, socket.socket() as third:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
                third.bind(("127.0.0.1", port + 2))
            except (OSError, OverflowError):
                continue
            return port
