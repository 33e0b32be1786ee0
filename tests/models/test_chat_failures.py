"""Every fault ends as it is documented: tried again, taken over, or a clear error; and never in a hang."""

from __future__ import annotations

import pytest

from models.failures import BEGIN, CASES, HEAD, PAGE, Case, documented, lines, observe


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_fault_ends_as_it_is_documented(case: Case) -> None:
    observed = lines(case, await observe(case))
    assert observed == [line for line in documented() if line.startswith(f"| {case.name} |")], (
        "run `make tables`, and look at what changed"
    )


def test_the_table_has_every_fault_and_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join((BEGIN, *HEAD)) in page
    assert list(dict.fromkeys(line.split(" | ")[0].removeprefix("| ") for line in documented())) == [
        case.name for case in CASES
    ]
