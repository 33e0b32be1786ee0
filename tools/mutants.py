"""Break the code in small ways, one at a time, and see whether a test notices.

    python tools/mutants.py context            every mutant of a room
    python tools/mutants.py sqlite --sample 300

First the room's tests run once, and it is noted which lines each of them reaches. Then each mutant runs against the
tests that reach it, the quickest first, until one fails. What no test notices is printed: a test is missing, or the
change makes no difference (docs/reference/proofs.md says which those are).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from mutating import SOURCE, Mutant, broken, mutants

ROOT = Path(__file__).parent.parent
SLOWEST = 8.0
"""A mutant is run against so many seconds of tests, the quickest first."""
LONGEST = 90.0
"""A mutant that takes longer hangs, and is noticed by that."""

# Pytest's plugins are loaded before it is, so that each child need not load them.
OPTIONS = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass(frozen=True)
class Room:
    """What is broken, and the tests that should notice."""

    code: tuple[str, ...]
    tests: tuple[str, ...]
    only: str


ROOMS = {
    "sqlite": Room(
        ("recollect/store/sqlite/*.py", "recollect/store/records.py"),
        ("tests/store", "tests/portability/test_export.py", "tests/portability/test_purge.py"),
        "not postgres and not json and not files and not [memory] and not machine",
    ),
    "context": Room(
        ("recollect/context/*.py", "recollect/contexts.py"),
        ("tests/context", "tests/api/test_settings.py", "tests/api/test_user_settings.py"),
        "not postgres",
    ),
    "auth": Room(
        ("recollect/server/auth/*.py", "recollect/server/guard/*.py", "recollect/server/signin.py"),
        ("tests/server/test_auth.py", "tests/server/test_guards.py", "tests/server/test_walls.py"),
        "not postgres",
    ),
}


class Reach:
    """A pytest plugin that notes which lines each test reaches, and how long it takes."""

    def __init__(self, files: set[str]) -> None:
        self.lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._files = {str(SOURCE / file): file for file in files}
        self._now: dict[str, set[int]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace one test, with all threads that it starts."""
        self._now = self.lines[item.nodeid]
        started = time.monotonic()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self.seconds[item.nodeid] = time.monotonic() - started

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what fails without any mutant."""
        if report.failed:
            self.failed.append(report.nodeid)

    def _enter(self, frame: FrameType, _: str, __: object) -> Callable[..., Any] | None:
        file = self._files.get(frame.f_code.co_filename)
        if file is None:
            return None
        reached = self._now[file]
        reached.add(frame.f_lineno)

        def line(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            if event == "line":
                reached.add(frame.f_lineno)
            return line

        return line


class Unhurried:
    """A pytest plugin that takes hypothesis's clock away: what is traced is slow."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Few examples, the same ones every time."""
        from hypothesis import HealthCheck, settings  # noqa: PLC0415

        every = list(HealthCheck)
        settings.register_profile(
            "mutants", max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=every
        )
        settings.load_profile("mutants")


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another text."""

    def __init__(self, file: str, text: str) -> None:
        self._module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self._path = SOURCE / file
        self._text = text

    def find_spec(self, name: str, _: object = None, __: object = None) -> ModuleSpec | None:
        """Take over for the one module."""
        if name != self._module:
            return None
        package = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name,
            self._path,
            loader=self,
            submodule_search_locations=package,
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the other text."""
        exec(compile(self._text, str(self._path), "exec"), module.__dict__)  # noqa: S102


class Child:
    """A process of its own, in which something runs whose result is a number."""

    def __init__(self, run: Callable[[], int], said: Path, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pid = os.fork()
        if not self._pid:
            code = 99
            try:
                os.setsid()
                written = os.open(said, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
                for stream in (1, 2):
                    os.dup2(written, stream)
                code = run()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)

    def ended(self) -> int | None:
        """Return the number once it is there; one that takes too long is stopped."""
        done, status = os.waitpid(self._pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() < self._until:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def tests_reached(room: Room, files: set[str], kept: Path) -> dict[str, Any]:
    """Run the tests once, in a process of its own, and return what each of them reaches."""

    def run() -> int:
        reach = Reach(files)
        code = int(pytest.main([*OPTIONS, "--timeout=300", "-k", room.only, *room.tests], plugins=[reach, Unhurried()]))
        failed = set(reach.failed)
        known = {
            test: {"seconds": reach.seconds[test], "lines": {file: sorted(each) for file, each in lines.items()}}
            for test, lines in reach.lines.items()
            if test not in failed
        }
        kept.write_text(json.dumps({"tests": known, "failed": sorted(failed)}))
        return code

    if kept.exists() and kept.stat().st_mtime > max(_changed(place) for place in (SOURCE, *map(Path, room.tests))):
        return dict(json.loads(kept.read_text()))
    kept.unlink(missing_ok=True)
    said = kept.with_suffix(".log")
    child = Child(run, said, 3600)
    while child.ended() is None:
        time.sleep(0.1)
    if not kept.exists():
        sys.exit(f"the tests could not be run:\n{said.read_text()[-3000:]}")
    return dict(json.loads(kept.read_text()))


def _changed(place: Path) -> float:
    """Return when a file, or the newest one in a folder, was changed."""
    path = ROOT / place
    return max(each.stat().st_mtime for each in ([path] if path.is_file() else path.rglob("*.py")))


def reaching(mutant: Mutant, tests: dict[str, Any]) -> list[str]:
    """Return the tests that reach a mutant, the quickest first, as many as there is time for."""
    lines = set(mutant.lines)
    found = [
        (known["seconds"], test)
        for test, known in tests.items()
        if (there := known["lines"].get(mutant.file)) and (mutant.imported or not lines.isdisjoint(there))
    ]
    chosen: list[str] = []
    spent = 0.0
    for seconds, test in sorted(found):
        if chosen and spent + seconds > SLOWEST:
            break
        spent += seconds
        chosen.append(test)
    return chosen


def attempt(mutant: Mutant, tests: list[str], said: Path) -> Child:
    """Run tests with the change in place; they end with 0 if none of them notices."""
    text = broken(mutant)

    def run() -> int:
        sys.meta_path.insert(0, Instead(mutant.file, text))
        return int(pytest.main([*OPTIONS, "-x", "--timeout=60", *tests], plugins=[Unhurried()]))

    return Child(run, said, LONGEST)


def judged(picked: list[Mutant], tests: dict[str, Any], jobs: int, folder: Path) -> Iterator[tuple[Mutant, str]]:
    """Give out what becomes of each mutant, so many at the same time."""
    waiting, running = picked[::-1], dict[int, tuple[Mutant, Child]]()
    while waiting or running:
        for place in range(jobs):
            if place not in running and waiting:
                mutant = waiting.pop()
                reached = reaching(mutant, tests)
                if reached:
                    running[place] = mutant, attempt(mutant, reached, folder / f"mutant-{place}.log")
                else:
                    yield mutant, "unreached"
        for place, (mutant, child) in list(running.items()):
            if (code := child.ended()) is not None:
                del running[place]
                yield mutant, "killed" if code else "survived"
        time.sleep(0.01)


def main() -> int:
    """Break what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("room", choices=sorted(ROOMS))
    parser.add_argument("--sample", type=int, default=0, help="so many mutants by chance; all of them without it")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--file", default="", help="only files whose path holds this")
    parser.add_argument("--without", default="", help="leave out the tests of this name, to see what they are good for")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time")
    chosen = parser.parse_args()
    room = ROOMS[chosen.room]
    if chosen.without:
        room = replace(room, only=f"{room.only} and not {chosen.without}")
    os.chdir(ROOT)
    files = sorted(str(path.relative_to(SOURCE)) for pattern in room.code for path in SOURCE.glob(pattern))
    every = [mutant for file in files if chosen.file in file for mutant in mutants(file)]
    picked = every if not chosen.sample else random.Random(chosen.seed).sample(every, min(chosen.sample, len(every)))  # noqa: S311
    folder = ROOT / ".cache"
    folder.mkdir(exist_ok=True)
    known = tests_reached(room, set(files), folder / f"mutants-{chosen.room}{chosen.without}.json")
    if known["failed"]:
        print("these tests fail without any change and are left out:", *known["failed"], sep="\n  ")
    print(f"{len(known['tests'])} tests; {len(picked)} of {len(every)} mutants in {len(files)} files", flush=True)

    outcome: Counter[str] = Counter()
    started = time.monotonic()

    picked.sort(key=lambda each: each.name)
    for number, (mutant, what) in enumerate(judged(picked, known["tests"], chosen.jobs, folder), 1):
        outcome[what] += 1
        if what != "killed":
            print(f"{what}: {mutant.name}", flush=True)
        elif number % 50 == 0:
            print(f"… {number} in {time.monotonic() - started:.0f} s", flush=True)
    print(f"{chosen.room}: " + ", ".join(f"{count} {what}" for what, count in sorted(outcome.items())))
    return 0 if set(outcome) <= {"killed"} else 1


if __name__ == "__main__":
    for slow in ("numpy", "apsw", "hypothesis", "pydantic", "anyio", "psycopg", "fastapi", "uvicorn", "httpx2"):
        with contextlib.suppress(ImportError):
            importlib.import_module(slow)
    sys.exit(main())
