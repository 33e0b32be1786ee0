"""Records which lines of a package each test reaches, so that `mutants.py` runs only those tests.

Each statement is preceded by one that records its line. That is much cheaper than `sys.settrace`, which is called for
every library too. The records are kept in a file; the next run repeats only test files that changed.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
from mutating import SOURCE

ROOT = Path(__file__).parent.parent
NOTED = "__noted__"
"""The name of the set of reached lines inside the instrumented modules."""


class Instead(importlib.abc.MetaPathFinder):
    """Imports some modules from instrumented code, with extra names in them."""

    def __init__(self, code: dict[str, CodeType], names: dict[str, dict[str, object]]) -> None:
        self._files = {file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): file for file in code}
        self._code = code
        self._names = names

    def find_spec(self, name: str, _: object = None, __: object = None) -> ModuleSpec | None:
        """Return a spec for the instrumented modules."""
        if name not in self._files:
            return None
        file = self._files[name]
        loader = _Loader(name, str(SOURCE / file), self._code[file], self._names.get(file, {}))
        return importlib.util.spec_from_file_location(name, SOURCE / file, loader=loader)


class _Loader(SourceFileLoader):
    """Loads a module as usual, including package data, but runs other code."""

    def __init__(self, name: str, path: str, code: CodeType, names: dict[str, object]) -> None:
        super().__init__(name, path)
        self._code = code
        self._names = names

    def get_code(self, _: str) -> CodeType:
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self._names)
        super().exec_module(module)


class _Noting(ast.NodeTransformer):
    """Inserts a recorder before every statement that does not run at import, and into every lambda."""

    def __init__(self) -> None:
        self._inside = False

    def generic_visit(self, node: ast.AST) -> ast.AST:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        before, self._inside = self._inside, self._inside or function
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if self._inside and isinstance(body, list):
                setattr(node, field, [each for child in body for each in _noted(child)])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # Defaults and decorators in its first lines affect every call.
            node.body.insert(1 if ast.get_docstring(node) is not None else 0, _note(node.lineno))
        self._inside = before
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        super().generic_visit(node)
        noted = _note(node.lineno).value
        node.body = ast.BoolOp(ast.Or(), [noted, node.body])  # a set's `add` returns None
        return node


def _noted(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return [statement]  # A docstring has to be the first thing.
    return [_note(statement.lineno), statement]


def _note(line: int) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Attribute(ast.Name(NOTED, ast.Load()), "add", ast.Load()), [ast.Constant(line)], []))


def noting(file: str) -> CodeType:
    """Return the instrumented code of a file."""
    path = SOURCE / file
    tree = _Noting().visit(ast.parse(path.read_text(encoding="utf-8")))
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


class Reach:
    """A pytest plugin that records the lines, the duration and the result of each test."""

    def __init__(self, files: set[str], keep: Callable[[str, dict[str, Any]], None]) -> None:
        self._noted: dict[str, set[int]] = {file: set() for file in files}
        self._keep = keep
        self._failed: set[str] = set()
        self._file = ""
        self._tests: dict[str, Any] = {}

    def finder(self) -> Instead:
        """Return an importer of the instrumented code."""
        return Instead(
            {file: noting(file) for file in self._noted},
            {file: {NOTED: lines} for file, lines in self._noted.items()},
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run one test."""
        file = item.nodeid.split("::")[0]
        if file != self._file:
            self.done()
            self._file = file
        for lines in self._noted.values():
            lines.clear()
        started = time.monotonic()
        try:
            return (yield)
        finally:
            seconds = time.monotonic() - started
            reached = {name: sorted(lines) for name, lines in self._noted.items() if lines}
            self._tests[item.nodeid] = {"seconds": seconds, "lines": reached}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record tests that fail without a mutant."""
        if report.failed:
            self._failed.add(report.nodeid)

    def done(self) -> None:
        """Save the records of a test file, so that an interrupted run can continue."""
        if self._file:
            passing = {test: known for test, known in self._tests.items() if test not in self._failed}
            loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "aforesaid")
            self._keep(self._file, {"tests": passing, "failed": sorted(self._failed), "modules": loaded})
        self._file, self._tests, self._failed = "", {}, set()


class ReachFile:
    """The records of a package's tests, in a file."""

    def __init__(self, path: Path, tests: tuple[str, ...], only: str) -> None:
        self._path = path
        self._states = {
            str(file.relative_to(ROOT)): _state([file]) for place in tests for file in _python(ROOT / place)
        }
        # Any change of the code or of shared test modules invalidates the records.
        shared = [path for path in _python(ROOT / "tests") if not path.name.startswith("test_")]
        everything = f"{only} {_state([*_python(SOURCE), *shared])}"
        known = json.loads(path.read_text()) if path.exists() else {}
        if known.get("everything") != everything:
            known = {"everything": everything, "files": {}}
        self._known: dict[str, Any] = known

    def read_again(self) -> None:
        """Reload what another process added."""
        if self._path.exists():
            self._known = json.loads(self._path.read_text())

    def missing(self) -> list[str]:
        """Return the test files that have to be run."""
        return [file for file, state in self._states.items() if self._of(file).get("state") != state]

    def add(self, file: str, found: dict[str, Any]) -> None:
        """Save the records of a test file."""
        self._known["files"][file] = {"state": self._states[file], **found}
        self._path.write_text(json.dumps(self._known))

    def nothing(self, file: str) -> None:
        """Record that no test of the file belongs to the package."""
        if file in self.missing():
            self.add(file, {"tests": {}, "failed": []})

    def tests(self) -> dict[str, Any]:
        """Return every test with its seconds and reached lines."""
        return {test: known for file in self._states for test, known in self._of(file).get("tests", {}).items()}

    def failed(self) -> list[str]:
        """Return the tests that fail without any mutant."""
        return [test for file in self._states for test in self._of(file).get("failed", [])]

    def modules(self) -> list[str]:
        """Return the modules that the tests load."""
        return sorted({name for file in self._states for name in self._of(file).get("modules", [])})

    def _of(self, file: str) -> dict[str, Any]:
        return dict(self._known["files"].get(file, {}))


def _python(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def _state(files: list[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes() + b"\0")
    return found.hexdigest()
