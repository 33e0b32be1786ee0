"""The API is as it describes itself: schemathesis asks every route everything it can think of."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from schemathesis import GenerationMode

from server.describing import CHECKS, OPERATIONS, SCHEMA, requests, so_many
from server.serving import Live, live


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live() as running:
        yield running


@pytest.mark.defect("P11")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_as_described_and_every_refusal_names_a_field_that_is(operation: str, server: Live) -> None:
    path, method = OPERATIONS[operation]
    described = fields(SCHEMA["paths"][path][method])

    @so_many(5)
    @given(case=requests(operation))
    def ask(case: Any) -> None:  # noqa: ANN401 - it has no name of its own that is public
        answer = case.call(base_url=server.address, headers={"Authorization": f"Bearer {server.link}"})
        case.validate_response(answer, checks=CHECKS)
        if answer.status_code in {413, 422}:
            errors = answer.json()["errors"]
            assert errors, answer.text
            for each in errors:
                if not each["what"].startswith(UNKNOWN):
                    assert ".".join(each["where"].split(".")[:2]) in described, answer.text

    ask()


def test_every_route_says_what_answers_a_request_that_is_no_http(server: Live) -> None:
    for operation, (path, method) in OPERATIONS.items():
        # A client that sends whatever it is told.
        with closing(HTTPConnection(server.address.removeprefix("http://"))) as client:
            client.request(method.upper(), re.sub(r"\{\w+\}", "1", path), headers={"Content-Length": "many"})
            status = client.getresponse().status
        assert status == 400
        assert str(status) in SCHEMA["paths"][path][method]["responses"], operation


@pytest.mark.defect("P11")
def test_a_method_that_is_not_allowed_is_answered_with_all_that_are(server: Live) -> None:
    for path in {path for path, _ in OPERATIONS.values()}:
        place = re.sub(r"\{\w+\}", "1", path)
        # An address can fit several templates: `/memories/1/history` also fits `/memories/{number}/{action}`.
        allowed = {
            method.upper()
            for each, method in OPERATIONS.values()
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), place)
        }
        answer = httpx2.request("TRACE", server.address + place, headers={"Authorization": f"Bearer {server.link}"})
        assert answer.status_code == 405, path
        assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == allowed, path


UNKNOWN = ("Unknown field; ", "Unknown parameter; ")
NOT_DESCRIBABLE = {
    "user",  # needed by keys for everybody alone
    "user_name",
    "expires_at",  # a key's must be in the future
    "cursor",  # one that the server gave out
    "confirm",  # the same as the id in the path
    "when",  # words that name a time
    "session",  # needed with `within=session`
    "thread",  # not the direct chat of somebody else
    "chat",  # not together with a thread
    "id",  # not of the form of our own ids
    "parts",  # a hash needs data or a url, and data is base64
    "metadata",  # in a query: a JSON object as text; numbers in it are limited, at any depth
    "messages.metadata",
    "messages.text",  # needed by messages without parts and tool calls
    "content",  # not together with a text
    "messages.content",
    "messages.parts",
    "messages.id",
    "If-Match",
    "Idempotency-Key",
}
"""Fields whose rules depend on more than their own value."""


@pytest.mark.defect("P11")
@pytest.mark.parametrize("operation", [each for each in OPERATIONS if "/import" not in each])
def test_no_request_that_fits_the_description_is_refused_for_a_rule_that_could_be_in_it(
    operation: str, server: Live
) -> None:
    @so_many(5)
    @given(case=requests(operation, GenerationMode.POSITIVE))
    def ask(case: Any) -> None:  # noqa: ANN401
        answer = case.call(base_url=server.address, headers={"Authorization": f"Bearer {server.link}"})
        if answer.status_code == 422:
            problems = answer.json()
            detail = problems["detail"]
            # No id that fits the description is refused for its characters.
            assert not re.search("the (user id|space|thread id|session id|message id|key's name) has", detail), detail
            named = [each["where"].partition(".")[2] for each in problems["errors"]]
            refused = {re.sub(r"^messages\.\d+\.", "messages.", field) for field in named}
            assert refused, answer.text
            assert refused <= NOT_DESCRIBABLE, answer.text

    ask()


def fields(operation: dict[str, Any]) -> set[str]:
    """Return the fields of an operation, as problems name them."""
    found = {f"{each['in']}.{each['name']}" for each in operation.get("parameters", ())}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        shape = SCHEMA["components"]["schemas"].get(content["schema"].get("$ref", "").rpartition("/")[2], {})
        found |= {"body", *(f"body.{name}" for name in shape.get("properties", ()))}
    return found


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
