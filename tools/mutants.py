"""Break the code in small ways, one at a time, and see whether a test notices.

    python tools/mutants.py context            every mutant of a room
    python tools/mutants.py sqlite --sample 300

First the room's tests run once, and it is noted which lines each of them reaches. Then each mutant runs against the
tests that reach it, the quickest first, until one fails. What no test notices is printed: a test is missing, or the
change makes no difference (docs/reference/proofs.md says which those are).
"""

from __future__ import annotations

import argparse
import ast
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
from copy import deepcopy
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
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
        ("tests/server/test_auth.py", "tests/server/test_walls.py", "tests/server/test_panel_walls.py"),
        "not postgres",
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One small change of one file."""

    file: str
    lines: range
    """Those of the statement that it changes."""
    imported: bool
    """Whether that statement runs when the file is imported."""
    place: int
    """Which node of the file, counted as `ast.walk` goes."""
    choice: int
    said: str

    @property
    def name(self) -> str:
        """Where it is and what it does."""
        return f"{self.file}:{self.lines.start}: {self.said}"


SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], ast.AST]]]:
    """Return the ways to break a node, each with what becomes of it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield from _with(node, "ops", [SWAPPED[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BoolOp) or (
        isinstance(node, ast.BinOp) and type(node.op) in SWAPPED and not _text(node.left) and not _text(node.right)
    ):
        yield from _with(node, "op", SWAPPED[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{ast.unparse(node)} → {ast.unparse(node.operand)}", lambda: node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} → {not node.value}", lambda: ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value} → {node.value + 1}", lambda: ast.Constant(node.value + 1)  # type: ignore[operator]
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):
        yield from _with(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and node.value is not None and not _nothing(node.value):
        yield f"{_short(node)} → return None", lambda: ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise | ast.AugAssign | ast.Delete) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await) and "_log." not in ast.unparse(node)
    ):
        yield f"{_short(node)} → (nothing)", ast.Pass


def _with(node: ast.AST, field: str, value: object) -> Iterator[tuple[str, Callable[[], ast.AST]]]:
    changed = deepcopy(node)
    setattr(changed, field, value)
    ast.fix_missing_locations(changed)
    yield f"{_short(node)} → {_short(changed)}", lambda: changed


def _short(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0][:90]


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _nothing(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mutants(file: str) -> Iterator[Mutant]:
    """Return every mutant of a file. Annotations, and what only type checkers read, are left alone."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    left_alone: set[ast.AST] = set()
    around: dict[ast.AST, tuple[range, bool]] = {}

    def visit(node: ast.AST, lines: range, imported: bool) -> None:  # noqa: FBT001
        if isinstance(node, ast.stmt):
            body: list[ast.stmt] = getattr(node, "body", [])
            end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            lines = range(node.lineno, end + 1)
        around[node] = lines, imported
        inner = imported and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, lines, inner)

    visit(tree, range(1, 2), True)
    for node in ast.walk(tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            annotations.append(node)
        for each in filter(None, annotations):
            left_alone.update(ast.walk(each))
    for place, node in enumerate(ast.walk(tree)):
        if node in left_alone:
            continue
        for choice, (said, _) in enumerate(changes(node)):
            lines, imported = around[node]
            yield Mutant(file, lines, imported, place, choice, said)


def broken(mutant: Mutant) -> str:
    """Return the text of the file, with the change in it."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    node = list(ast.walk(tree))[mutant.place]
    changed = list(changes(node))[mutant.choice][1]()
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, changed)
            elif isinstance(value, list) and node in value:
                value[value.index(node)] = changed
    return ast.unparse(ast.fix_missing_locations(tree))


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
            threading.settrace(None)  # type: ignore[arg-type]
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
            submodule_search_locations=package,  # type: ignore[arg-type]
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

    if kept.exists() and kept.stat().st_mtime > max(map(_changed, (SOURCE, *room.tests))):
        return dict(json.loads(kept.read_text()))
    kept.unlink(missing_ok=True)
    said = kept.with_suffix(".log")
    child = Child(run, said, 3600)
    while child.ended() is None:
        time.sleep(0.1)
    if not kept.exists():
        sys.exit(f"the tests could not be run:\n{said.read_text()[-3000:]}")
    return dict(json.loads(kept.read_text()))


def _changed(place: str | Path) -> float:
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
    chosen, spent = [], 0.0
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
    parser.add_argument("--jobs", type=int, default=2, help="at the same time")
    chosen = parser.parse_args()
    room = ROOMS[chosen.room]
    os.chdir(ROOT)
    files = sorted(str(path.relative_to(SOURCE)) for pattern in room.code for path in SOURCE.glob(pattern))
    every = [mutant for file in files if chosen.file in file for mutant in mutants(file)]
    picked = every if not chosen.sample else random.Random(chosen.seed).sample(every, min(chosen.sample, len(every)))  # noqa: S311
    folder = ROOT / ".cache"
    folder.mkdir(exist_ok=True)
    known = tests_reached(room, set(files), folder / f"mutants-{chosen.room}.json")
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
    for slow in ("numpy", "apsw", "hypothesis", "pydantic", "anyio", "rich", "typer", "psycopg", "pgvector", "openai"):
        with contextlib.suppress(ImportError):
            importlib.import_module(slow)
    sys.exit(main())
