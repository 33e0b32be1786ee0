"""The page of tested clients is made from the tests."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_page_of_tested_clients_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "tools/client_matrix.py"))
    written = (ROOT / "docs/reference/clients.md").read_text(encoding="utf-8")
    assert written == made["page"](), "run `make clients`"
