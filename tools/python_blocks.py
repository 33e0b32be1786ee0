"""Write the Python code of the README, the docs and the examples into a folder, one file each: for type checkers.

    python tools/python_blocks.py FOLDER [--frameworks]

With `--frameworks` it writes the page about agent frameworks alone, which the other run leaves out: the blocks whose
frameworks are installed in this environment (`make test-integrations`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FRAMEWORKS: Final = ROOT / "docs" / "how-to" / "use-with-agent-frameworks.md"
"""The page about libraries that are not in `.venv`, so that a type checker there knows nothing of them."""
THEIR_TYPES: Final = (
    "# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false\n"
)
"""The last line of a block about a framework: pyright cannot infer all types of LangChain and LlamaIndex."""
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks() -> Iterator[tuple[str, str]]:
    """Yield a file name and the code of each block and example. A line has the same number as in its page."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if page != FRAMEWORKS:
            yield from _blocks_of(page)
    for example in sorted((ROOT / "examples").glob("*.py")):
        yield f"{_module(example)}.py", example.read_text(encoding="utf-8")


def framework_blocks() -> Iterator[tuple[str, str]]:
    """Yield the blocks about agent frameworks that are installed in this environment."""
    return ((name, code + THEIR_TYPES) for name, code in _blocks_of(FRAMEWORKS) if _can_be_imported(code))


def write_blocks(folder: Path, *, frameworks: bool = False) -> int:
    """Write all blocks into a folder, which is created; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = list(framework_blocks() if frameworks else python_blocks())
    for name, code in blocks:
        (folder / name).write_text(code, encoding="utf-8")
    return len(blocks)


def _blocks_of(page: Path) -> Iterator[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        above = text.count("\n", 0, block.start(1))
        yield f"{_module(page)}_{above + 1}.py", "\n" * above + block[1]


def _can_be_imported(code: str) -> bool:
    nodes = list(ast.walk(ast.parse(code)))
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module is not None}
    try:
        for module in modules:
            import_module(module)
    except ModuleNotFoundError:
        return False
    return True


def _module(path: Path) -> str:
    return re.sub(r"\W", "_", str(path.relative_to(ROOT).with_suffix("")))


if __name__ == "__main__":
    count = write_blocks(Path(sys.argv[1]), frameworks="--frameworks" in sys.argv[2:])
    sys.stdout.write(f"wrote {count} files\n")
