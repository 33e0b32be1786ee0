"""Write the Python code of the README, the docs and the examples into a folder, one file each: for type checkers.

Run: python tools/python_blocks.py FOLDER
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_ELSEWHERE: Final = {"use-with-agent-frameworks"}
"""Pages about libraries that this environment does not have, so that a type checker knows nothing of them."""
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks() -> Iterator[tuple[str, str]]:
    """Yield a file name and the code of each block and example. A line has the same number as in its page."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = "" if page.stem in _ELSEWHERE else page.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            above = text.count("\n", 0, block.start(1))
            yield f"{_module(page)}_{above + 1}.py", "\n" * above + block[1]
    for example in sorted((ROOT / "examples").glob("*.py")):
        yield f"{_module(example)}.py", example.read_text(encoding="utf-8")


def write_blocks(folder: Path) -> int:
    """Write all blocks into a folder, which is created; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = list(python_blocks())
    for name, code in blocks:
        (folder / name).write_text(code, encoding="utf-8")
    return len(blocks)


def _module(path: Path) -> str:
    return re.sub(r"\W", "_", str(path.relative_to(ROOT).with_suffix("")))


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write_blocks(Path(sys.argv[1]))} files\n")
