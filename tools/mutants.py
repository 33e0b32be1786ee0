"""Mutation tests: change the code in small ways, one at a time, and check whether a test fails.

    python tools/mutants.py context                              every mutant of a package
    python tools/mutants.py sqlite --sample 300                  a random sample
    python tools/mutants.py sqlite --only names.py:51            the mutants of a line

First the package's tests run once and record which lines each of them reaches (`reaching.py`). Then each mutant runs
against the tests that reach it, fastest first, until one fails. Surviving mutants are listed at the end: either a test
is missing, or the change makes no difference (docs/reference/mutation-tests.md lists those).
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import importlib
import os
import random
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from mutating import SOURCE, Mutant, broken, mutants, put_in
from reaching import ROOT, Instead, Reach, ReachFile

SLOWEST = 8.0
"""Maximum seconds of tests per mutant, fastest tests first."""
LONGEST = 80.0
"""Timeout of a mutant in seconds. A mutant that hangs counts as detected."""

# Only the plugins that these tests need: the others take seconds to load in each child.
PLUGINS = ("anyio", "timeout", "hypothesispytest")
OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "--disable-plugin-autoload"),
    *(option for plugin in PLUGINS for option in ("-p", plugin)),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


@dataclass(frozen=True)
class Room:
    """A package to mutate, and the tests that should fail."""

    code: tuple[str, ...]
    tests: tuple[str, ...]
    only: str


_PROXY_TESTS = sorted((ROOT / "tests/server").glob("test_proxy*.py"))
_SUBJECTS = ("messages", "placing", "summaries", "memories", "people", "agenda", "erasing", "retention")
ROOMS = {
    "sqlite": Room(
        ("aforesaid/store/sqlite/*.py", *(f"aforesaid/store/{name}.py" for name in _SUBJECTS)),
        ("tests/store", "tests/portability/test_export.py", "tests/portability/test_purge.py"),
        "not postgres and not json and not files and not [memory] and not machine",
    ),
    "context": Room(
        ("aforesaid/context/*.py", "aforesaid/front/contexts.py"),
        (
            "tests/context",
            "tests/api/test_settings.py",
            "tests/api/test_user_settings.py",
            "tests/facts/test_timeline.py",
        ),
        "not postgres",
    ),
    "recall": Room(
        ("aforesaid/recall/*.py", "aforesaid/recall/*.py"),
        ("tests/recall", "tests/context/test_ordinary_questions.py"),
        "not postgres",
    ),
    "facts": Room(("aforesaid/facts/*.py",), ("tests/facts",), "not postgres"),
    "proxy": Room(
        ("aforesaid/server/proxy/*.py",),
        ("tests/server/test_turns.py", *(f"tests/server/{path.name}" for path in _PROXY_TESTS)),
        "not postgres and not node and not embedder",
    ),
    "auth": Room(
        ("aforesaid/server/auth.py", "aforesaid/server/authentication.py", "aforesaid/server/guard.py"),
        ("tests/server/test_auth.py", "tests/server/test_guards.py", "tests/server/test_walls.py"),
        "not postgres",
    ),
}


class Unhurried:
    """A pytest plugin that disables hypothesis's deadline, because traced code is slow."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Use few examples, the same ones every time."""
        from hypothesis import HealthCheck, settings  # noqa: PLC0415

        every = list(HealthCheck)
        settings.register_profile(
            "mutants", max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=every
        )
        settings.load_profile("mutants")


class Child:
    """A child process whose result is its exit status."""

    def __init__(self, run: Callable[[], int], said: Path, seconds: float) -> None:
        self._patience = seconds
        self._looked = time.monotonic()
        self._pid = os.fork()
        if not self._pid:
            code = 99
            try:
                os.setsid()
                atexit._clear()  # noqa: SLF001 - what the parent has to do at its end is not for its children
                written = os.open(said, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
                for stream in (1, 2):
                    os.dup2(written, stream)
                code = run()
            except BaseException:
                traceback.print_exc()
            finally:
                # Tests start servers, which are stopped at exit.
                atexit._run_exitfuncs()  # noqa: SLF001
                sys.stdout.flush()
                os._exit(code)

    def ended(self) -> int | None:
        """Wait for the exit status; kill the child after the timeout."""
        done, status = os.waitpid(self._pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        # Only time between polls counts: the machine may have been suspended, and the child with it.
        now = time.monotonic()
        self._patience -= min(now - self._looked, 1.0)
        self._looked = now
        if self._patience > 0:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def known_of(name: str, room: Room, files: set[str]) -> ReachFile:
    """Return the lines that each test reaches; tests that are not recorded yet run in a child process."""
    place = ROOT / ".cache" / f"mutants-{name}.json"
    kept = ReachFile(place, room.tests, room.only)
    missing = kept.missing()
    if not missing:
        return kept

    def run() -> int:
        reach = Reach(files, kept.add)
        sys.meta_path.insert(0, reach.finder())
        code = int(pytest.main([*OPTIONS, "--timeout=300", "-k", room.only, *missing], plugins=[reach, Unhurried()]))
        reach.done()
        if code in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}:
            for file in missing:
                kept.nothing(file)
        return code

    print(f"recording the lines that the tests of {len(missing)} files reach …", flush=True)
    said = place.with_suffix(".log")
    child = Child(run, said, 3600)
    while child.ended() is None:
        time.sleep(0.1)
    kept.read_again()
    if kept.missing():
        sys.exit(f"the tests could not be run:\n{said.read_text()[-3000:]}")
    return kept


def reaching(mutant: Mutant, tests: dict[str, Any], most: float) -> list[str]:
    """Return the tests that reach a mutant, fastest first, within `most` seconds.

    Code that runs at import may affect any test, so for such a mutant all other tests follow.
    """
    lines = set(mutant.lines)
    found: list[tuple[bool, float, str]] = []
    for test, known in tests.items():
        there = known["lines"].get(mutant.file, [])
        if mutant.imported or not lines.isdisjoint(there):
            found.append((not there, known["seconds"], test))
    chosen: list[str] = []
    spent = 0.0
    for _, seconds, test in sorted(found):
        if chosen and spent + seconds > most:
            break
        spent += seconds
        chosen.append(test)
    return chosen


def attempt(mutant: Mutant, tests: list[str], said: Path, most: float) -> Child:
    """Run tests with the mutant applied; the exit status is 0 if none of them fails."""
    code = broken(mutant)

    def run() -> int:
        if mutant.imported or not put_in(code):
            for name in [name for name in sys.modules if name.partition(".")[0] == "aforesaid"]:
                del sys.modules[name]
            sys.meta_path.insert(0, Instead({mutant.file: code}, {}))
        gc.freeze()  # pytest collects garbage several times, and this is none
        return int(pytest.main([*OPTIONS, "-x", "--timeout=0", *tests], plugins=[Unhurried()]))

    return Child(run, said, LONGEST + most)


def judged(picked: list[Mutant], tests: dict[str, Any], jobs: int, most: float) -> Iterator[tuple[Mutant, str]]:
    """Yield the outcome of each mutant, running `jobs` at the same time."""
    waiting, running = picked[::-1], dict[int, tuple[Mutant, Child]]()
    while waiting or running:
        for place in range(jobs):
            if place not in running and waiting:
                mutant = waiting.pop()
                reached = reaching(mutant, tests, most)
                if reached:
                    said = ROOT / ".cache" / f"mutant-{os.getpid()}-{place}.log"
                    running[place] = mutant, attempt(mutant, reached, said, most)
                else:
                    yield mutant, "unreached"
        for place, (mutant, child) in list(running.items()):
            if (code := child.ended()) is not None:
                del running[place]
                yield mutant, {0: "survived", -signal.SIGKILL: "hung"}.get(code, "killed")
        time.sleep(0.01)


def asked_for() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("room", choices=sorted(ROOMS))
    parser.add_argument("--sample", type=int, default=0, help="number of random mutants; 0 for all (default)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--only", nargs="+", default=[], metavar="FILE[:LINE]", help="mutants of these files or lines")
    parser.add_argument("--without", default="", help="skip tests of this name, to see what they detect")
    parser.add_argument("--seconds", type=float, default=SLOWEST, help="maximum seconds of tests per mutant")
    parser.add_argument("--jobs", type=int, default=2, help="number of mutants at the same time")
    return parser.parse_args()


def main() -> int:
    """Run the selected mutants."""
    chosen = asked_for()
    room = ROOMS[chosen.room]
    if chosen.without:
        room = replace(room, only=f"{room.only} and not {chosen.without}")
    os.chdir(ROOT)
    (ROOT / ".cache").mkdir(exist_ok=True)
    files = sorted(str(path.relative_to(SOURCE)) for pattern in room.code for path in SOURCE.glob(pattern))
    every = [mutant for file in files for mutant in mutants(file)]
    picked = [mutant for mutant in every if not chosen.only or any(mutant.at(place) for place in chosen.only)]
    if chosen.sample:
        picked = random.Random(chosen.seed).sample(picked, min(chosen.sample, len(picked)))  # noqa: S311
    picked.sort(key=lambda each: each.name)
    known = known_of(chosen.room + chosen.without, room, set(files))
    tests = known.tests()
    if known.failed():
        print("these tests fail without any change and are left out:", *known.failed(), sep="\n  ")
    print(f"{len(tests)} tests; {len(picked)} of {len(every)} mutants in {len(files)} files", flush=True)

    # Loaded once, before each mutant is forked.
    for name in known.modules():
        importlib.import_module(name)
    outcome: dict[str, list[str]] = defaultdict(list)
    started = time.monotonic()
    for number, (mutant, what) in enumerate(judged(picked, tests, chosen.jobs, chosen.seconds), 1):
        outcome[what].append(mutant.name)
        print(f"{number}/{len(picked)} {time.monotonic() - started:.0f} s {what}: {mutant.name}", flush=True)
    for what in ("hung", "unreached", "survived"):
        for name in outcome[what]:
            print(f"{what}: {name}")
    print(f"{chosen.room}: " + ", ".join(f"{len(names)} {what}" for what, names in sorted(outcome.items()) if names))
    return 1 if outcome["survived"] or outcome["unreached"] else 0


if __name__ == "__main__":
    for slow in ("numpy", "apsw", "hypothesis", "pydantic", "anyio", "psycopg", "fastapi", "uvicorn", "httpx2"):
        with contextlib.suppress(ImportError):
            importlib.import_module(slow)
    sys.exit(main())
