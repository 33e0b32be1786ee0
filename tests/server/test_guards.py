"""What stands before every route, part by part: to the last second, byte and name."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import aforesaid
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged
from aforesaid.server import auth as keys_room
from aforesaid.server import guard as rate_room
from aforesaid.server.auth import Credential, Keys, Sessions
from aforesaid.server.guard import Access, Bodies, Hosts, Rates, RouteTemplates, SecurityHeaders

pytestmark = pytest.mark.anyio
LINK = Credential("link", "the link", "admin")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_allowances_run_out_and_come_back_steadily() -> None:
    clock = Clock()
    rates = Rates(2.0, 3, clock)
    assert [rates.take("ann") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert rates.take("bob") == 0.0, "everybody has allowances of their own"
    clock.now += 0.25
    assert rates.take("ann") == pytest.approx(0.25)
    clock.now += 0.25
    assert rates.take("ann") == 0.0
    assert rates.take("ann") == pytest.approx(0.5)
    clock.now += 100
    assert [rates.take("ann") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5], "no more than a burst is saved up"


def test_looking_at_allowances_takes_none() -> None:
    clock = Clock()
    rates = Rates(4.0, 1, clock)
    assert [rates.empty("ann") for _ in range(3)] == [0.0, 0.0, 0.0]
    rates.take("ann")
    assert rates.empty("ann") == pytest.approx(0.25)
    clock.now += 0.25
    assert rates.empty("ann") == 0.0


def test_only_so_many_callers_are_kept_in_mind_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_room, "_MOST_CALLERS", 2)
    rates = Rates(0.001, 1, Clock())
    for caller in ("ann", "bob"):
        rates.take(caller)
    assert rates.empty("ann") > 0
    rates.take("carol")
    assert rates.empty("ann") == 0.0, "forgotten, so it has allowances again"
    assert rates.empty("bob") > 0


def test_a_browser_stays_signed_in_for_a_week_to_the_second() -> None:
    clock = Clock()
    sessions = Sessions(Keys(), clock)
    cookie = sessions.open(LINK)
    clock.now += 7 * 24 * 60 * 60 - 0.5
    found = sessions.find(cookie)
    assert found is not None
    assert (found.id, found.role) == ("link", "admin")
    clock.now += 0.5
    assert sessions.find(cookie) is None
    assert sessions.find("another") is None


def test_each_browser_has_secrets_of_its_own_that_nobody_guesses() -> None:
    sessions = Sessions(Keys(), Clock())
    cookies = [sessions.open(LINK) for _ in range(2)]
    found = [sessions.find(cookie) for cookie in cookies]
    tokens = {each.csrf for each in found if each is not None and each.csrf is not None}
    assert len(tokens) == 2
    assert all(len(token) == 32 for token in tokens)
    assert {len(str.__str__(cookie)) for cookie in cookies} == {43}
    sessions.close(cookies[0])
    sessions.close("unknown")
    assert [sessions.find(cookie) is None for cookie in cookies] == [True, False]


def test_sessions_that_are_over_are_dropped_and_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_room, "_MOST_SESSIONS", 3)
    clock = Clock()
    sessions = Sessions(Keys(), clock)
    first, second, third = [sessions.open(LINK) for _ in range(3)]
    assert sessions.find(first) is not None
    fourth = sessions.open(LINK)
    assert [sessions.find(each) is None for each in (first, second, third, fourth)] == [True, False, False, False]
    clock.now += 7 * 24 * 60 * 60
    sessions.open(LINK)
    assert len(sessions._sessions) == 1


def test_a_key_is_found_by_its_token_and_its_id_until_its_time_is_over(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "below" / "keys.json")
    began = datetime.now(UTC).replace(microsecond=0)
    soon = began + timedelta(hours=1)
    key, token = keys.add("app", "reader", space="default", user="ann", expires_at=soon)
    assert re.fullmatch(r"ak_[\w-]{43}", str.__str__(token))
    assert re.fullmatch(r"[0-9a-f]{8}", key.id)
    assert began <= datetime.fromisoformat(key.created_at) <= datetime.now(UTC)
    assert (keys.get(key.id), keys.find(str.__str__(token)), keys.all()) == (key, key, (key,))
    assert keys.get("another") is None
    assert key.credential == Credential(f"key:{key.id}", "app", "reader", "default", "ann")
    end = datetime.fromisoformat(key.expires_at or "")
    assert (key.expired(end - timedelta(microseconds=1)), key.expired(end)) == (False, True)
    with pytest.raises(InvalidInput, match="expired at") as refused:
        keys.add("old", "reader", expires_at=datetime.now(UTC))
    assert refused.value.field == "expires_at"
    assert keys.all() == (key,)
    with pytest.raises(InvalidInput, match="the end of the key"):
        keys.add("naive", "reader", expires_at=datetime(2030, 1, 1))  # noqa: DTZ001 - that is what is refused
    assert [path.name for path in (tmp_path / "below").iterdir() if path.name.startswith(".")] == []


def test_without_its_file_there_are_no_keys_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = Keys(path)
    assert keys.all() == ()
    key, _ = keys.add("app", "app")
    assert keys.all() == (key,)
    path.unlink()
    assert keys.all() == ()
    other, _ = Keys(path).add("other", "app")
    assert keys.all() == (other,)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["keys"][0].update(user="ann", space=None)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StoreDamaged, match="are for nobody"):
        keys.all()


def test_a_file_of_keys_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.json"
    keys = Keys(path)
    keys.add("app", "app")
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        keys.add("another", "app")
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["keys.json", "keys.json.lock"]
    assert [key.name for key in keys.all()] == ["app"]


def test_keys_are_on_the_disk_as_a_whole_before_they_take_the_place_of_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.json"
    keys = Keys(path)
    keys.add("app", "app")
    synced: list[tuple[bytes, bytes]] = []

    def sync(handle: int) -> None:
        opened = Path(f"/proc/self/fd/{handle}").readlink()
        if opened.is_file():  # the folder is synced afterwards, for the name
            synced.append((opened.read_bytes(), path.read_bytes()))

    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", sync)
    keys.add("another", "app")
    assert synced == [(path.read_bytes(), before)]


def test_keys_that_are_added_at_the_same_moment_are_all_there(tmp_path: Path) -> None:
    path, start = tmp_path / "keys.json", threading.Barrier(4)

    def add(name: str) -> None:
        ring = Keys(path)
        start.wait()
        for number in range(5):
            ring.add(f"{name} {number}", "reader")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, "abcd"))
    assert sorted(key.name for key in Keys(path).all()) == [
        f"{name} {number}" for name in "abcd" for number in range(5)
    ]


def test_only_the_newest_revoked_keys_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_room, "_MOST_REVOKED", 2)
    keys = Keys(tmp_path / "keys.json")
    made = [keys.add(str(number), "app") for number in range(3)]
    for key, _ in made:
        keys.remove(key.id)
    again = Keys(tmp_path / "keys.json")
    assert [again.describe_refused(token) for _, token in made] == [
        None,
        *(f"key:{key.id} (revoked)" for key, _ in made[1:]),
    ]


def test_each_role_may_do_what_those_before_it_may() -> None:
    roles = ("reader", "app", "admin")
    allowed = [[Credential("x", "x", mine).may(wanted) for wanted in roles] for mine in roles]  # type: ignore[arg-type]
    assert allowed == [[True, False, False], [True, True, False], [True, True, True]]


def test_a_credential_reaches_its_own_space_and_user_and_says_nothing_of_others() -> None:
    anywhere, here, ann = LINK, Credential("k", "k", "app", "a"), Credential("k", "k", "app", "a", "ann")
    assert [each.everywhere for each in (anywhere, here, ann)] == [True, False, False]
    assert (anywhere.space_of(None), anywhere.space_of("b"), here.space_of(None), here.space_of("a")) == (
        ("default", "b", "a", "a")
    )
    assert (anywhere.user_of(None), anywhere.user_of("bob"), ann.user_of(None), ann.user_of("ann")) == (
        (None, "bob", "ann", "ann")
    )
    with pytest.raises(NotFound, match="no space 'b'"):
        here.space_of("b")
    with pytest.raises(NotFound, match="no user 'bob'"):
        ann.user_of("bob")
    assert Credential("key:1", "n" * 300, "app").actor == ("key:1 " + "n" * 300)[:255]


async def test_a_key_for_one_user_has_threads_of_its_own() -> None:
    ann, app = Credential("k", "k", "app", "a", "ann"), Credential("k", "k", "app", "a")
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        assert ann.person(memory, "ann").scope.thread == "direct:ann"
        assert ann.person(memory, "ann", thread="direct:ann").scope.thread == "direct:ann"
        assert ann.person(memory, "ann", thread="general").scope.thread == "ann/general"
        assert app.person(memory, "ann", thread="general").scope.thread == "general"
        assert ann.person(memory, "ann").scope[:2] == ("a", "ann")


async def answered(
    app: ASGIApp, *, path: str = "/x", kind: str = "http", body: tuple[bytes, ...] = (b"",), **headers: str
) -> list[Message]:
    """Send a request of several pieces, and return what comes back."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {"type": kind, "method": "POST", "path": path, "headers": raw, "query_string": b""}
    pieces = [{"type": "http.request", "body": each, "more_body": True} for each in body]
    sent: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0) if pieces else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def inner(**headers: str) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "passed on"})
            return
        size = 0
        while (message := await receive()).get("more_body"):
            size += len(message["body"])
        await PlainTextResponse(f"{size} bytes", headers=headers)(scope, receive, send)

    return app


def status(sent: list[Message]) -> int:
    return int(sent[0]["status"])


class Seen:
    """What was counted."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int]] = []
        self.seconds: list[float] = []

    def seen(self, method: str, route: str, code: int, seconds: float) -> None:
        self.requests.append((method, route, code))
        self.seconds.append(seconds)


@pytest.mark.parametrize(
    "guard",
    [
        SecurityHeaders,
        lambda app: Bodies(app, 1),
        lambda app: Hosts(app, frozenset()),
        lambda app: Access(app, Seen(), RouteTemplates([]), lambda: None),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_request_passes_every_guard(guard: Callable[[Any], ASGIApp]) -> None:
    assert await answered(guard(inner()), kind="lifespan") == [{"type": "passed on"}]


async def test_a_body_may_have_as_many_bytes_as_are_allowed_and_not_one_more() -> None:
    app = Bodies(inner(), 10)
    assert status(await answered(app, body=(b"12345", b"67890"), content_length="10")) == 200
    assert status(await answered(app, content_length="11")) == 413
    assert status(await answered(app, content_length="nonsense")) == 200
    assert status(await answered(app, body=(b"12345", b"67890"))) == 200
    with pytest.raises(Exception, match="more than 10 bytes"):
        await answered(app, body=(b"12345", b"678901"))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"host": "mine"}, 200),
        ({"host": "MINE:80"}, 200),
        ({"host": "mine:"}, 421),
        ({"host": "mine:x"}, 421),
        ({}, 421),
        ({"host": "mine", "origin": "http://mine"}, 200),
        ({"host": "mine", "origin": "http://MINE"}, 200),
        ({"host": "mine:1", "origin": "http://mine:2"}, 403),
        ({"host": "mine", "sec_fetch_site": "same-origin"}, 200),
        ({"host": "mine", "sec_fetch_site": "same-site"}, 403),
        ({"host": "mine", "sec_fetch_site": "cross-site"}, 403),
        ({"host": "mine", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
    ],
)
async def test_only_our_own_name_and_pages_get_through(headers: dict[str, str], expected: int) -> None:
    assert status(await answered(Hosts(inner(), frozenset({"mine"})), **headers)) == expected  # type: ignore[arg-type]


async def test_an_answer_keeps_what_it_says_about_caches_itself() -> None:
    async def sent(**headers: str) -> dict[bytes, bytes]:
        return dict((await answered(SecurityHeaders(inner(**headers))))[0]["headers"])

    assert (await sent())[b"cache-control"] == b"no-store"
    assert (await sent(**{"Cache-Control": "max-age=60"}))[b"cache-control"] == b"max-age=60"
    assert (await sent())[b"x-frame-options"] == b"DENY"


async def test_a_request_that_fails_is_counted_as_failed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("inside")

    seen = Seen()
    with caplog.at_level(logging.INFO, "aforesaid.server.access"):
        with pytest.raises(RuntimeError, match="inside"):
            await answered(Access(fails, seen, RouteTemplates([]), lambda: None))  # type: ignore[arg-type]
        await answered(Access(inner(), seen, RouteTemplates([]), lambda: None))  # type: ignore[arg-type]
    assert seen.requests == [("POST", "other", 500), ("POST", "other", 200)]
    lines = [record.getMessage() for record in caplog.records]
    assert [re.sub(r"[\d.]+ ms", "# ms", line) for line in lines] == ["POST other 500 # ms -", "POST other 200 # ms -"]


async def test_a_request_takes_no_longer_than_whoever_waits_for_it() -> None:
    seen = Seen()
    began = time.perf_counter()
    for _ in range(3):
        await answered(Access(inner(), seen, RouteTemplates([]), lambda: None))  # type: ignore[arg-type]
    assert all(took > 0 for took in seen.seconds)
    assert sum(seen.seconds) < time.perf_counter() - began
