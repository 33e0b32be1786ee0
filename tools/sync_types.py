"""Write src/aforesaid/_sync_types.pyi: the types of the sync API, derived from the async classes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = (ROOT / "src/aforesaid/memory.py", *sorted((ROOT / "src/aforesaid/front").glob("*.py")))
TARGET = ROOT / "src/aforesaid/_sync_types.pyi"
NAMES = {"Memory": "SyncMemory", "UserMemory": "SyncUserMemory"}
HEADER = "# Made from memory.py by `make stubs`; a test fails when it is out of date.\n\n"


def sync_types(*sources: str) -> str:
    """Return the stub, given the sources of memory.py and of the modules that its classes inherit from."""
    nodes = [node for source in sources for node in ast.parse(source).body]
    # Include imports for type checkers only, which are below an `if`.
    every = [each for node in nodes for each in (node.body if isinstance(node, ast.If) else [node])]
    imports = [node for node in every if isinstance(node, ast.ImportFrom | ast.Import)]
    bases = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    classes = [_class(node, bases) for node in nodes if isinstance(node, ast.ClassDef) and node.name in NAMES]
    text = "\n\n".join(ast.unparse(node) for node in classes)
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    kept = []
    for node in imports:
        node.names = [name for name in node.names if name.name in used]
        if node.names:
            kept.append(ast.unparse(node))
    return HEADER + "\n".join(kept) + "\n\n" + text + "\n"


def _class(node: ast.ClassDef, bases: dict[str, ast.ClassDef]) -> ast.ClassDef:
    members: list[ast.stmt] = []
    for member in [each for one in _with_bases(node, bases) for each in one.body]:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            name = member.name.replace("__aenter__", "__enter__").replace("__aexit__", "__exit__")
            if name.startswith("_") and name not in {"__enter__", "__exit__"}:
                continue
            if any(name == known.name for known in members if isinstance(known, ast.FunctionDef)):
                continue  # declared by one base, defined by another
            documentation = member.body[0]
            members.append(
                ast.FunctionDef(
                    name=name,
                    args=member.args,
                    body=[documentation, ast.Expr(ast.Constant(...))],
                    # Other decorators, such as `public(…)`, do not change the signature.
                    decorator_list=[
                        each for each in member.decorator_list if isinstance(each, ast.Name) and each.id == "property"
                    ],
                    # In the other modules, these names mean something else.
                    returns=_renamed(member.returns) if member in node.body else member.returns,
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


def _with_bases(node: ast.ClassDef, bases: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """Return a class and all classes that it inherits from, each once."""
    above = [bases[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in bases]
    found = [node, *(each for base in above for each in _with_bases(base, bases))]
    return list({each.name: each for each in found}.values())


def _renamed(annotation: ast.expr | None) -> ast.expr | None:
    if isinstance(annotation, ast.Name) and annotation.id in NAMES:
        return ast.Name(NAMES[annotation.id])
    return annotation


if __name__ == "__main__":
    texts = [source.read_text(encoding="utf-8") for source in SOURCES]
    TARGET.write_text(sync_types(*texts), encoding="utf-8")
    sys.stdout.write(f"wrote {TARGET.relative_to(ROOT)}\n")
