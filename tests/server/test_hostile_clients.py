"""Clients that guess, flood, dawdle or lie about where they come from."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from dataclasses import fields

import httpx2
import pytest

from aforesaid.server.guard import Rates
from aforesaid.settings import Serving
from server.serving import Live, Running, live, running

pytestmark = pytest.mark.anyio
FAST = Serving(requests_per_second=1e6, burst=1_000_000, header_seconds=1.0, body_seconds=1.0)


@pytest.mark.defect("P4")
async def test_a_valid_key_is_not_refused_because_others_at_the_address_fail(server: Running) -> None:
    async with server.client("ak_old") as stale, server.client(server.key("reader", space=None)) as valid:
        refused = [(await stale.get("/metrics")).status_code for _ in range(40)]
        assert (refused[0], refused[-1]) == (401, 429)
        assert [(await valid.get("/metrics")).status_code for _ in range(12)] == [200] * 12


@pytest.mark.defect("P4")
async def test_a_client_with_an_old_key_does_not_use_up_what_its_address_may_get_wrong(server: Running) -> None:
    seconds = 0.0
    limits = [getattr(server.here, each.name) for each in fields(server.here) if hasattr(server.here, each.name)]
    for limit in limits:
        if isinstance(limit, Rates):
            limit._clock = lambda: seconds
    async with server.client("ak_old") as stale, server.client("ak_typo") as person:
        for _ in range(100):
            seconds += 1.0
            await stale.get("/metrics")
        assert (await person.get("/metrics")).status_code == 401, "a mistyped key is called wrong, not too frequent"


async def test_somebody_who_tries_many_keys_has_to_wait(server: Running) -> None:
    async with server.client() as stranger:
        guesses = [
            (await stranger.get("/metrics", headers={"Authorization": f"Bearer ak_{number}"})).status_code
            for number in range(30)
        ]
    assert (guesses[0], guesses[-1]) == (401, 429)


@pytest.mark.defect("P4")
@pytest.mark.parametrize(("trusted", "last"), [((), 429), (("127.0.0.0/8",), 401)])
def test_a_forwarded_address_counts_only_from_a_trusted_proxy(trusted: tuple[str, ...], last: int) -> None:
    serving = Serving(requests_per_second=1e6, burst=1_000_000, trusted_proxies=trusted)
    with live(serving=serving) as server, httpx2.Client(base_url=server.address) as client:
        answers = [
            client.get(
                "/metrics", headers={"Authorization": f"Bearer ak_{each}", "X-Forwarded-For": f"198.51.100.{each}"}
            ).status_code
            for each in range(30)
        ]
    assert (answers[0], answers[-1]) == (401, last)


@pytest.mark.defect("P10")
async def test_without_authentication_a_bearer_token_is_ignored() -> None:
    async with running(auth=False) as server, server.client("sk-anything") as client:
        assert [(await client.get("/api/users")).status_code for _ in range(30)] == [200] * 30


@pytest.mark.defect("P11")
async def test_malformed_json_without_a_key_is_unauthorized(server: Running) -> None:
    async with server.client() as stranger:
        for path in ("/api/messages", "/api/memories", "/v1/chat/completions", "/api/no-such-route"):
            answer = await stranger.post(path, content=b"{", headers={"Content-Type": "application/json"})
            assert answer.status_code == 401, path


def _connect(server: Live) -> socket.socket:
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def _answer(connection: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass  # Closed with bytes unread.
    return found


@pytest.mark.defect("P11")
def test_a_large_body_without_a_key_is_refused_before_it_is_sent() -> None:
    with live() as server, _connect(server) as connection:
        connection.sendall(b"POST /api/import HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 30000000\r\n\r\n")
        answer = _answer(connection)
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("line", [b"GET /api/users?space=" + b"a" * 70_000 + b" HTTP/1.1", b"this is no request"])
def test_what_cannot_be_read_as_a_request_is_answered_with_problem_details(line: bytes) -> None:
    with live() as server, _connect(server) as connection:
        connection.sendall(line + b"\r\nHost: 127.0.0.1\r\n\r\n")
        head, _, body = _answer(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["type"] == "urn:aforesaid:problem:bad-request"


@pytest.mark.defect("P11")
def test_half_open_requests_are_closed_and_hold_nobody_up() -> None:
    with live(serving=FAST) as server, ExitStack() as stack:
        held = [stack.enter_context(_connect(server)) for _ in range(300)]
        for connection in held:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert httpx2.get(f"{server.address}/healthz").status_code == 200
        assert [_answer(connection) for connection in held] == [b""] * 300, "closed by the server"


def test_headers_that_drip_in_are_not_waited_for() -> None:
    with live(serving=FAST) as server, _connect(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200"), "the first request of the connection is answered"
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        connection.settimeout(0.05)
        until = time.monotonic() + 30
        closed = False
        while not closed and time.monotonic() < until:
            try:
                connection.sendall(b"a")
                closed = connection.recv(65536) is not None
            except TimeoutError:
                continue
            except OSError:
                closed = True
        assert closed


@pytest.mark.defect("P11")
def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    with live(serving=FAST) as server, _connect(server) as connection:
        key = server.key("app").encode()
        connection.sendall(
            b"POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + key + b"\r\n"
            b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        answer = _answer(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"server.body_seconds" in answer


@pytest.mark.defect("P11")
def test_no_more_connections_than_allowed_are_open() -> None:
    with live(serving=Serving(connections=3)) as server, ExitStack() as stack:
        kept = [stack.enter_context(_connect(server)) for _ in range(3)]
        for connection in kept:  # answered: so the server has seen all of them
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with _connect(server) as further:
            assert _answer(further) == b""
        kept[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert kept[0].recv(65536).startswith(b"HTTP/1.1 200")
