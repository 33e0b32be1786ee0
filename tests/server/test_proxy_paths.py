"""Nothing but models and responses of the provider can be reached below /v1/models and /v1/responses."""

from __future__ import annotations

from http.client import HTTPConnection

import httpx2
import pytest

from server.talking import Talk

_DOTS = [".", "..", "%2e", "%2E", "%2e%2e", "%2E%2e", ".%2E", "%252e", "%252e%252E", "%25252e"]
"""Segments that lead elsewhere, also after they were decoded once more."""


def status_of(talk: Talk, method: str, path: str, role: str = "app") -> int:
    """Send a request to a path as it is: client libraries take dots out of it. Return the status."""
    address = httpx2.URL(talk.server.address)
    connection = HTTPConnection(address.host, address.port, timeout=60)
    connection.request(method, path, headers={"Authorization": f"Bearer {talk.server.key(role)}"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.defect("P5", "S9")
@pytest.mark.parametrize(
    "path",
    [
        *_DOTS,
        *(f"{dots}/responses" for dots in _DOTS),
        *(f"gpt/{dots}" for dots in _DOTS),
        "gpt%2F%252e%252e",
        "..;/admin",
        "gpt/..%3B/admin",
        "..%2F..%2Fadmin%2Fusers",
        "../../admin/users",
        "%2e%2e/admin",
        "gpt%2F..%2F..%2Fadmin",
        "gpt%3Fadmin=1",
        "gpt%23x",
        "gpt%00",
        "gpt%0d%0aHost:%20x",
        "gpt%5c..%5cadmin",
        "%252e%252e%252fadmin",
        "a//b",
        "m" * 300,
    ],
)
def test_an_id_that_leads_elsewhere_is_refused_and_not_sent_on(talk: Talk, path: str) -> None:
    assert status_of(talk, "GET", f"/v1/models/{path}", "reader") in {400, 404}
    assert talk.model.requests == []


@pytest.mark.defect("P5")
@pytest.mark.parametrize("path", ["meta-llama/Llama-3.1-8B", "llama3.2:latest", "ft:gpt-4o:org::id", "mod%C3%A8le"])
def test_ids_of_models_arrive_as_they_are(talk: Talk, path: str) -> None:
    headers = {"Authorization": f"Bearer {talk.server.key('reader')}"}
    httpx2.get(f"{talk.server.address}/v1/models/{path}", headers=headers)
    (request,) = talk.model.requests
    assert request.path == f"/v1/models/{path}"


@pytest.mark.defect("S9")
@pytest.mark.parametrize(
    "name",
    [
        *_DOTS,
        *("input_items", "input_tokens", "compact", "cancel"),
        "...",
        "resp.1",
        "a%2Fb",
        "a%5cb",
        "a;b",
        "a%3Fb",
        "a%23b",
        "a%25b",
        "a%00",
        "-a",
    ],
)
@pytest.mark.parametrize(
    ("method", "below"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")]
)
def test_an_id_of_a_response_that_leads_elsewhere_is_refused_and_not_sent_on(
    talk: Talk, method: str, below: str, name: str
) -> None:
    path = f"/v1/responses/{name}{below}"
    assert status_of(talk, method, path) in {400, 404, 405}
    tidied = httpx2.request(method, f"{talk.server.address}{path}", headers={"Authorization": f"Bearer {talk.key}"})
    assert tidied.status_code in {400, 404, 405}
    assert talk.model.requests == []


def test_ids_of_responses_arrive_as_they_are(talk: Talk) -> None:
    headers = {"Authorization": f"Bearer {talk.key}"}
    httpx2.delete(f"{talk.server.address}/v1/responses/resp_68a-b:c", headers=headers)
    (request,) = talk.model.requests
    assert request.path == "/v1/responses/resp_68a-b:c"
