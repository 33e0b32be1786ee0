"""Who gets in, and who does not."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import re
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from aforesaid.errors import InvalidInput, NotFound, StoreDamaged
from aforesaid.server import ServerOptions
from aforesaid.server.auth import Keys, Sessions
from aforesaid.server.proxy.proxy_memory import warm_up
from aforesaid.settings import Receipts, Serving, Settings
from server.serving import ADDRESS, Running, running

pytestmark = pytest.mark.anyio


async def test_nobody_gets_in_without_a_key(server: Running) -> None:
    async with server.client() as stranger:
        answer = await stranger.get("/metrics")
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["type"] == "urn:aforesaid:problem:unauthorized"


async def test_a_wrong_key_gets_nobody_in(server: Running) -> None:
    async with server.client("ak_wrong") as stranger:
        assert (await stranger.get("/metrics")).status_code == 401


async def test_whoever_guesses_keys_is_made_to_wait(server: Running) -> None:
    async with server.client("ak_wrong") as stranger:
        answers = [(await stranger.get("/metrics")) for _ in range(30)]
    assert answers[0].status_code == 401
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whoever_guesses_at_the_sign_in_page_is_made_to_wait_too(server: Running, method: str) -> None:
    async def guess(token: str) -> httpx2.Response:
        if method == "GET":
            return await browser.get("/login", params={"token": token})
        return await browser.post("/login", data={"token": token})

    async with server.client() as browser:
        guesses = [(await guess("ak_wrong")).status_code for _ in range(30)]
        assert (guesses[0], guesses[-1]) == (401, 429)
        assert (await guess(str.__str__(server.here.link))).status_code == 303, "a valid token always works"


async def test_signing_in_is_for_browsers_and_no_part_of_the_api(server: Running) -> None:
    async with server.admin() as admin:
        assert (await admin.get("/login")).status_code == 200
        described = (await admin.get("/openapi.json")).json()["paths"]
    assert "/api/messages" in described
    assert not {"/login", "/logout"} & set(described)


async def test_the_link_signs_a_browser_in_and_its_token_leaves_the_address(server: Running) -> None:
    async with server.client() as browser:
        answer = await browser.get("/login", params={"token": str.__str__(server.here.link), "next": "/users?x=1"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/users?x=1")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert str.__str__(server.here.link) not in cookie
        assert (await browser.get("/")).status_code == 200


@pytest.mark.parametrize("address", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\nb"])
async def test_signing_in_leads_nowhere_else(server: Running, address: str) -> None:
    async with server.client() as browser:
        answer = await browser.get("/login", params={"token": str.__str__(server.here.link), "next": address})
    assert answer.headers["location"] == "/"


async def test_a_browser_that_is_not_signed_in_is_shown_where_to(server: Running) -> None:
    async with server.client() as browser:
        answer = await browser.get("/?q=ann", headers={"Accept": "text/html"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/login?next=/%3Fq%3Dann"
        form = await browser.get("/login")
        assert form.status_code == 200
        wrong = await browser.post("/login", data={"token": "no"})
        assert (wrong.status_code, "unknown" in wrong.text) == (401, True)
        right = await browser.post("/login", data={"token": str.__str__(server.here.link)})
        assert right.status_code == 303


@asynccontextmanager
async def signed_in(server: Running) -> AsyncIterator[httpx2.AsyncClient]:
    async with server.client() as browser:
        await browser.post("/login", data={"token": str.__str__(server.here.link)})
        yield browser


async def test_a_form_of_another_site_changes_nothing(server: Running) -> None:
    async with signed_in(server) as browser:
        page = (await browser.get("/")).text
        assert (await browser.post("/logout")).status_code == 403
        assert (await browser.post("/logout", data={"csrf": "guessed"})).status_code == 403
        assert (await browser.get("/")).status_code == 200, "still signed in"
        token = re.search(r'name="csrf" value="([^"]+)"', page)
        assert token is not None
        assert (await browser.post("/logout", data={"csrf": token[1]})).status_code == 303
        assert (await browser.get("/")).status_code == 401


async def test_a_cookie_that_was_copied_is_of_no_use_after_signing_out(server: Running) -> None:
    async with signed_in(server) as browser:
        (cookie,) = browser.cookies.jar
        copied = {"Cookie": f"{cookie.name}={cookie.value}"}
        async with server.client() as other:
            assert (await other.get("/", headers=copied)).status_code == 200
            token = re.search(r'name="csrf" value="([^"]+)"', (await browser.get("/")).text)
            assert token is not None
            await browser.post("/logout", data={"csrf": token[1]})
            assert (await other.get("/", headers=copied)).status_code == 401


async def test_the_token_of_a_form_can_be_a_header(server: Running) -> None:
    async with signed_in(server) as browser:
        token = re.search(r'name="csrf" value="([^"]+)"', (await browser.get("/")).text)
        assert token is not None
        assert (await browser.post("/logout", headers={"X-CSRF-Token": token[1]})).status_code == 303


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:5002", ""])
async def test_another_name_for_this_machine_is_refused(server: Running, host: str) -> None:
    async with server.admin() as client:
        answer = await client.get("/metrics", headers={"Host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:5002", "[::1]:5002"])
async def test_names_of_this_machine_are_fine(server: Running, host: str) -> None:
    async with server.admin() as client:
        assert (await client.get("/metrics", headers={"Host": host})).status_code == 200


async def test_a_name_that_was_allowed_is_fine() -> None:
    async with running(serving=Serving(hosts=("memory.example.org",))) as server, server.admin() as client:
        assert (await client.get("/metrics", headers={"Host": "memory.example.org"})).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:3000", "http://localhost:5002"])
async def test_a_page_of_another_site_is_refused(server: Running, origin: str) -> None:
    async with server.admin() as client:
        answer = await client.post("/logout", headers={"Origin": origin})
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:aforesaid:problem:wrong-origin"


async def test_pages_of_our_own_and_programs_are_let_in(server: Running) -> None:
    async with server.admin() as client:
        assert (await client.get("/metrics", headers={"Origin": ADDRESS})).status_code == 200
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert (await client.get("/metrics", headers=link)).status_code == 200, "a link on another page may lead here"
        script = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        assert (await client.get("/metrics", headers=script)).status_code == 403


async def test_health_is_told_to_everybody_under_any_name(server: Running) -> None:
    async with server.client() as probe:
        for path in ("/healthz", "/readyz"):
            assert (await probe.get(path, headers={"Host": "10.0.0.7"})).status_code == 200


async def test_a_store_that_fails_is_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path / "memory.db") as server, server.client() as probe:
        assert (await probe.get("/readyz")).json() == {"status": "ready"}
        await server.memory.close()
        assert (await probe.get("/healthz")).status_code == 200
        answer = await probe.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "failing"})


async def test_every_answer_keeps_scripts_frames_and_caches_away(server: Running) -> None:
    async with server.client() as stranger:
        for path in ("/healthz", "/login", "/no-such-page", "/metrics"):
            headers = (await stranger.get(path)).headers
            assert "script-src 'self'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-frame-options"] == "DENY"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


async def test_what_is_about_all_spaces_needs_a_key_for_all(server: Running) -> None:
    async with server.client(server.key("admin", space="default")) as client:
        assert (await client.get("/metrics")).status_code == 403
    async with server.client(server.key("reader", space=None)) as client:
        text = (await client.get("/metrics")).text
    assert "aforesaid_store_messages 0.0" in text
    assert 'aforesaid_component_healthy{component="store"} 1.0' in text


async def test_requests_are_counted_by_route(server: Running) -> None:
    async with server.admin() as client:
        await client.get("/healthz")
        await client.get("/no-such-page-of-ann")
        text = (await client.get("/metrics")).text
    assert 'aforesaid_http_requests_total{method="GET",route="/healthz",status="200"} 1.0' in text
    assert "no-such-page" not in text
    assert 'route="other"' in text


async def test_routes_are_named_with_the_prefix_of_their_router(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "aforesaid.server.access"):
        async with server.admin() as client:
            for path in ("/search", "/api/search?user=ann&q=tea", "/api/threads", "/static/style.css", "/v1/models"):
                await client.get(path)
            await client.delete("/api/keys/unknown")
            await client.put("/api/search")
            text = (await client.get("/metrics")).text
    lines = [" ".join(record.getMessage().split()[:2]) for record in caplog.records]
    assert lines == [
        "GET /search",
        "GET /api/search",
        "GET /api/threads",
        "GET /static",
        "GET /v1/models",
        "DELETE /api/keys/{key_id}",
        "PUT /api/search",
        "GET /metrics",
    ]
    assert 'aforesaid_http_requests_total{method="GET",route="/search",status="200"} 1.0' in text
    assert 'aforesaid_http_requests_total{method="GET",route="/api/search",status="200"} 1.0' in text


async def test_the_log_names_the_route_of_refused_requests_and_a_key_that_was_valid(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Keys(tmp_path / "keys.json")
    server.here.keys = keys
    (old, revoked), (short, expired) = keys.add("old", "app"), keys.add("short", "app")
    keys.remove(old.id)
    text = (
        (tmp_path / "keys.json")
        .read_text(encoding="utf-8")
        .replace('"expires_at": null', '"expires_at": "2020-01-01T00:00:00+00:00"')
    )
    (tmp_path / "keys.json").write_text(text, encoding="utf-8")
    with caplog.at_level(logging.INFO, "aforesaid.server.access"):
        for token in (revoked, expired, "ak_never-made"):
            async with server.client(str.__str__(token)) as client:
                assert (await client.get("/api/search")).status_code == 401
        async with server.client() as client:
            await client.delete("/api/keys/ann-s-own")
    lines = [re.sub(r"[\d.]+ ms", "# ms", record.getMessage()) for record in caplog.records]
    assert lines == [
        f"GET /api/search 401 # ms key:{old.id} (revoked)",
        f"GET /api/search 401 # ms key:{short.id} (expired)",
        "GET /api/search 401 # ms -",
        "DELETE /api/keys/{key_id} 401 # ms -",
    ]


async def test_the_warm_up_of_a_server_is_no_request(caplog: pytest.LogCaptureFixture) -> None:
    async with running(settings=Settings(receipts=Receipts(contexts=True))) as server:
        server.memory.metrics.slow_seconds = 0.0
        with caplog.at_level(logging.INFO):
            await warm_up(server.memory)
        assert server.memory.metrics.snapshot() == {}
        assert not [record for record in caplog.records if record.name == "aforesaid.performance"]
        assert await server.memory.user("nobody").receipts() == []


async def test_a_key_that_asks_too_much_is_made_to_wait() -> None:
    async with running(serving=Serving(requests_per_second=0.001, burst=3)) as server:
        token = server.key("reader", space=None)
        async with server.client(token) as client:
            answers = [(await client.get("/metrics")).status_code for _ in range(5)]
        assert answers == [200, 200, 200, 429, 429]
        async with server.client(server.key("reader", space=None)) as another:
            assert (await another.get("/metrics")).status_code == 200


async def test_a_request_that_is_too_large_is_not_read() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 1_000

    async with running(serving=Serving(body_bytes=10_000)) as server, server.admin() as client:
        assert (await client.post("/login", content=b"x" * 10_001)).status_code == 413
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await client.post("/login", content=endless(), headers=form)
    assert answer.status_code == 413
    assert "10,000 bytes" in answer.json()["detail"]


async def test_no_secret_gets_into_the_log(caplog: pytest.LogCaptureFixture, server: Running) -> None:
    token, link = server.key("reader", space=None), str.__str__(server.here.link)
    with caplog.at_level(logging.DEBUG):
        async with server.client(token) as client:
            await client.get("/metrics")
            await client.get("/login", params={"token": link})
            await client.get("/", headers={"Authorization": "Bearer ak_a-wrong-one-that-nobody-has"})
    assert "GET /metrics 200" in caplog.text
    assert re.search(r"key:[0-9a-f]{8}", caplog.text), "who asked can be told"
    for secret in (token, link, "ak_a-wrong-one-that-nobody-has"):
        # The client that tests use logs whole addresses; the server's own words are looked at.
        own = [record.getMessage() for record in caplog.records if record.name.startswith(("aforesaid", "uvicorn"))]
        assert not [line for line in own if secret in line]


def test_a_server_for_other_machines_needs_keys() -> None:
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):  # noqa: S104
        with pytest.raises(InvalidInput, match="other machines"):
            ServerOptions(Serving(host=host), auth=False)
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        ServerOptions(Serving(host=host), auth=False)
    ServerOptions(Serving(host="0.0.0.0"))  # noqa: S104 - with keys


async def test_without_keys_everybody_on_this_machine_is_let_in() -> None:
    async with running(auth=False) as server, server.client() as client:
        assert (await client.get("/metrics")).status_code == 200
        assert (await client.get("/metrics", headers={"Host": "evil.example"})).status_code == 421


def test_keys_are_kept_as_hashes_that_nobody_else_can_read(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key, token = Keys(path).add("app", "app", space="default")
    assert str.__str__(token) not in path.read_text(encoding="utf-8")
    assert "ak_" not in repr(token)
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = Keys(path).find(str.__str__(token))
    assert found == key


def test_a_key_that_was_taken_away_is_refused_everywhere_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    running_server, command_line = Keys(path), Keys(path)
    key, token = command_line.add("app", "app")
    sessions = Sessions(running_server)
    found = running_server.find(str.__str__(token))
    assert found is not None
    cookie = sessions.open(found.credential)
    assert sessions.find(cookie) is not None
    command_line.remove(key.id)
    assert running_server.find(str.__str__(token)) is None
    assert sessions.find(cookie) is None
    with pytest.raises(NotFound):
        command_line.remove(key.id)


async def test_a_key_whose_time_is_over_is_refused(server: Running) -> None:
    keys = server.here.keys
    _, token = keys.add("old", "admin", expires_at=datetime.now(UTC) + timedelta(hours=1))
    keys._keys = tuple(replace(key, expires_at="2026-01-01T00:00:00+00:00") for key in keys.all())
    async with server.client(str.__str__(token)) as client:
        assert (await client.get("/metrics")).status_code == 401


def test_a_session_of_a_browser_ends() -> None:
    now = 0.0
    keys = Keys()
    sessions = Sessions(keys, clock=lambda: now)
    key, _ = keys.add("app", "app")
    cookie = sessions.open(key.credential)
    assert sessions.find(cookie) is not None
    now = 7 * 24 * 60 * 60
    assert sessions.find(cookie) is None


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"keys": [{"id": 1}]}', '{"keys": [{"id":"a","name":"b","role":"god","hash":""}]}']
)
def test_a_damaged_file_of_keys_lets_nobody_in(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StoreDamaged, match=re.escape(str(path))):
        Keys(path).find("anything")


@pytest.mark.parametrize("arguments", [("", "app"), ("x" * 256, "app"), ("a", "god"), ("a\0", "app")])
def test_a_key_needs_a_name_and_a_role(arguments: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput):
        Keys().add(*arguments)
    with pytest.raises(InvalidInput, match="one space"):
        Keys().add("a", "app", user="ann")


@pytest.mark.defect("U3")
async def test_other_requests_are_answered_while_another_process_changes_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, loop = tmp_path / "keys.json", fcntl.flock, asyncio.get_running_loop()
    lock = os.open(tmp_path / "keys.json.lock", os.O_CREAT | os.O_RDWR, 0o600)
    flock(lock, fcntl.LOCK_EX)
    answered, in_time, waits = threading.Event(), [], asyncio.Event()

    def release() -> None:
        in_time.append(answered.wait(60))
        os.close(lock)

    def locking(handle: int, operation: int) -> None:
        loop.call_soon_threadsafe(waits.set)
        flock(handle, operation)

    holder = threading.Thread(target=release)
    async with running(keys=path) as server, server.admin() as client:
        monkeypatch.setattr(fcntl, "flock", locking)
        holder.start()
        making = asyncio.create_task(client.post("/api/keys", json={"name": "app", "role": "app"}))
        await waits.wait()
        assert (await client.get("/api/stats")).status_code == 200
        answered.set()
        key = (await making).json()
        removed = await client.delete(f"/api/keys/{key['id']}")
    holder.join()
    assert in_time == [True], "the event loop waited for the lock"
    assert removed.status_code == 200


def test_two_processes_that_add_keys_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    rings = [Keys(path) for _ in range(4)]
    for number in range(20):
        rings[number % 4].add(f"key {number}", "reader")
    assert len(json.loads(path.read_text(encoding="utf-8"))["keys"]) == 20
