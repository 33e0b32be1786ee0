"""Generates mutants: small changes of the code that could be mistakes. `mutants.py` runs the tests against them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

SOURCE = Path(__file__).parent.parent / "src"


@dataclass(frozen=True)
class Mutant:
    """One small change of one file."""

    file: str
    lines: range
    """The lines of the changed statement."""
    imported: bool
    """Whether that statement runs when the file is imported."""
    place: int
    """The index of the changed node in `ast.walk` order."""
    choice: int
    said: str

    @property
    def name(self) -> str:
        """The position and the change."""
        return f"{self.file}:{self.lines.start}: {self.said}"

    def at(self, place: str) -> bool:
        """Return whether it is in a file, or in a line of it: `auth/keys.py:51`."""
        file, _, line = place.partition(":")
        return f"/{self.file}".endswith(f"/{file}") and (not line or int(line) in self.lines)


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
    """Yield the mutations of a node, each with a description."""
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
    elif isinstance(node, ast.Return) and node.value is not None and not _false(node.value):
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


def _false(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def mutants(file: str) -> Iterator[Mutant]:
    """Yield every mutant of a file.

    Code without effect at run time is skipped: annotations, imports for type checkers, slots of classes.
    """
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
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
    left_alone = _left_alone(tree)
    for place, node in enumerate(ast.walk(tree)):
        if node in left_alone:
            continue
        for choice, (said, _) in enumerate(changes(node)):
            lines, imported = around[node]
            yield Mutant(file, lines, imported, place, choice, said)


def _left_alone(tree: ast.AST) -> set[ast.AST]:
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.append(node)
        if isinstance(node, ast.keyword) and node.arg == "slots":
            parts.append(node)
        for each in filter(None, parts):
            found.update(ast.walk(each))
    return found


def broken(mutant: Mutant) -> CodeType:
    """Return the compiled code of the file with the change."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    node = list(ast.walk(tree))[mutant.place]
    changed = list(changes(node))[mutant.choice][1]()
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, changed)
            elif isinstance(value, list) and node in value:
                value[value.index(node)] = changed
    return compile(ast.fix_missing_locations(tree), str(SOURCE / mutant.file), "exec", dont_inherit=True)


def put_in(code: CodeType) -> bool:
    """Replace the code of functions in a loaded module. Return whether that was possible.

    This avoids reloading the module and its users.
    """
    wanted: dict[tuple[str, int], list[CodeType]] = {}
    waiting = [code]
    while waiting:
        inner = [each for each in waiting.pop().co_consts if isinstance(each, CodeType)]
        waiting += inner
        for each in inner:
            wanted.setdefault((each.co_qualname, each.co_firstlineno), []).append(each)
    changed = False
    for function in gc.get_objects():
        if not isinstance(function, FunctionType) or function.__code__.co_filename != code.co_filename:
            continue
        new = wanted.get((function.__code__.co_qualname, function.__code__.co_firstlineno), [])
        if new == [function.__code__]:
            continue
        if len(new) != 1 or new[0].co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = new[0]
        changed = True
    return changed
