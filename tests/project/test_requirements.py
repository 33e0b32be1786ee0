"""Every promise has a test, and the page that lists them is up to date."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools/requirements_page.py"))


def test_the_list_is_complete(tool: dict[str, Any]) -> None:
    counts = {"A": 18, "B": 16, "C": 20, "D": 15, "E": 9, "G": 24}
    expected = [f"{letter}{number}" for letter, count in counts.items() for number in range(1, count + 1)]
    assert list(tool["promises"]()) == expected


def test_every_promise_has_a_marked_test_and_every_mark_is_known(tool: dict[str, Any]) -> None:
    assert set(tool["promises"]()) - tool["waiting"]() <= set(tool["marked"]()) <= set(tool["promises"]())


def test_every_defect_has_a_marked_test_or_waits_for_one(tool: dict[str, Any]) -> None:
    assert set(tool["defects"]()) - tool["waiting"]() <= set(tool["marked"]("defect")) <= set(tool["defects"]())


def test_the_page_of_promises_is_up_to_date(tool: dict[str, Any]) -> None:
    assert (ROOT / "docs/reference/requirements.md").read_text(encoding="utf-8") == tool["page"](), (
        "run: make requirements"
    )


def test_every_deliberate_fault_still_fits_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    breaks = runpy.run_path(str(ROOT / "tools/prove_requirements.py"), run_name="tools")["BREAKS"]
    found = {
        each.promise: (ROOT / "src/aforesaid" / each.file).read_text(encoding="utf-8").count(each.instead_of)
        for each in breaks
    }
    assert found == dict.fromkeys(found, 1), "make prove breaks the code where it no longer is"
