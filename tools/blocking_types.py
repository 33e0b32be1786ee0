"""Write src/recollect/_blocking_types.pyi: the async classes, as the blocking face shows them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/recollect/memory.py"
TARGET = ROOT / "src/recollect/_blocking_types.pyi"
NAMES = {"Memory": "BlockingMemory", "UserMemory": "BlockingUserMemory"}
HEADER = "# Made from memory.py by `make stubs`; a test fails when it is out of date.\n\n"


def blocking_types(source: str) -> str:
    """Return the text of the stub for the text of memory.py."""
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    classes = [_class(node) for node in tree.body if isinstance(node, ast.ClassDef) and node.name in NAMES]
    text = "\n\n".join(ast.unparse(node) for node in classes)
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    kept = []
    for node in imports:
        node.names = [name for name in node.names if name.name in used]
        if node.names:
            kept.append(ast.unparse(node))
    return HEADER + "\n".join(kept) + "\n\n" + text + "\n"


def _class(node: ast.ClassDef) -> ast.ClassDef:
    members: list[ast.stmt] = []
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            name = member.name.replace("__aenter__", "__enter__").replace("__aexit__", "__exit__")
            if name.startswith("_") and name not in {"__enter__", "__exit__"}:
                continue
            documentation = member.body[0]
            members.append(
                ast.FunctionDef(
                    name=name,
                    args=member.args,
                    body=[documentation, ast.Expr(ast.Constant(...))],
                    decorator_list=member.decorator_list,
                    returns=_renamed(member.returns),
                )
            )
    if node.name == "UserMemory":
        members.insert(0, ast.AnnAssign(ast.Name("scope"), ast.Name("Scope"), None, 1))
    renamed = ast.ClassDef(
        name=NAMES[node.name],
        bases=[],
        keywords=[],
        body=[node.body[0], *members],
        decorator_list=[],
    )
    return ast.fix_missing_locations(renamed)


def _renamed(annotation: ast.expr | None) -> ast.expr | None:
    if isinstance(annotation, ast.Name) and annotation.id in NAMES:
        return ast.Name(NAMES[annotation.id])
    return annotation


if __name__ == "__main__":
    TARGET.write_text(blocking_types(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
