"""The API is as it describes itself: schemathesis asks every route everything it can think of."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from recollect.memory import Memory
from recollect.server import create_app
from server.serving import Live, live

load_all_checks()
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA = create_app(cast("Memory", None)).openapi()
ENDLESS = "/api/events"
"""They have a test of their own."""
OPERATIONS = {
    f"{method.upper()} {path}": (path, method)
    for path, methods in SCHEMA["paths"].items()
    for method in methods
    if path != ENDLESS
}


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live() as running:
        yield running


@pytest.fixture(scope="module")
def described() -> Any:  # noqa: ANN401 - it has no name of its own that is public
    return schemathesis.openapi.from_dict(SCHEMA)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_as_described(operation: str, server: Live, described: Any) -> None:  # noqa: ANN401
    path, method = OPERATIONS[operation]
    examples = 200 if settings.default and settings.default.max_examples > 100 else 8

    @settings(
        max_examples=examples,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=st.one_of(*(described[path][method].as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def ask(case: Any) -> None:  # noqa: ANN401
        answer = case.call(base_url=server.address, headers={"Authorization": f"Bearer {server.link}"})
        case.validate_response(answer, checks=CHECKS)

    ask()


def test_every_operation_has_a_summary_and_an_answer() -> None:
    for path, methods in SCHEMA["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], f"{method} {path}"
            assert operation["description"], f"{method} {path}"
            good = [status for status in operation["responses"] if status.startswith("2")]
            assert good, f"{method} {path}"


def test_the_reference_is_up_to_date() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "reference" / "rest.md"
    made = runpy.run_path(str(page.parent.parent.parent / "tools" / "rest_reference.py"))["reference"]()
    assert page.read_text(encoding="utf-8") == made, "run: make rest"
