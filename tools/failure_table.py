"""Write the table of docs/reference/model-failures.md: inject every fault and record the outcome."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from models.failures import BEGIN, CASES, HEAD, PAGE, lines, observe


async def table() -> list[str]:
    """Observe every case."""
    made = list(HEAD)
    for case in CASES:
        made += lines(case, await observe(case))
    return made


def main() -> None:
    """Replace the table on the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, after = page.partition(BEGIN)
    _, _, rest = after.partition("\n\n")
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(asyncio.run(table())) + f"\n\n{rest}", encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
