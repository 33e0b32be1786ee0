"""Web apps of other origins may call the API and the proxy if a setting says so, and never with cookies."""

from __future__ import annotations

import pytest

from aforesaid.errors import InvalidInput
from aforesaid.server import ServerOptions
from aforesaid.settings import Serving, load_settings
from server.serving import running

APP = "https://app.example.com"
PREFLIGHT = {
    "Origin": APP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-aforesaid-user",
}


def serving(*origins: str) -> Serving:
    return Serving(requests_per_second=1e6, burst=1_000_000, origins=origins)


async def test_an_allowed_origin_may_call_and_read_what_the_memory_did() -> None:
    async with running(serving=serving(APP)) as server, server.client() as browser:
        asked = await browser.options("/v1/chat/completions", headers=PREFLIGHT)
        assert asked.status_code == 200, "browsers send no key with this"
        assert asked.headers["access-control-allow-origin"] == APP
        assert "x-aforesaid-user" in asked.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in asked.headers
        for path in ("/v1/models", "/api/spaces", "/api/tags"):
            refused = await browser.get(path, headers={"Origin": APP})
            assert refused.status_code == 401
            assert refused.headers["access-control-allow-origin"] == APP, "a page may read why it was refused"
            assert "X-Aforesaid-Memory" in refused.headers["access-control-expose-headers"]
    async with running(serving=serving(APP)) as server, server.client(server.key()) as browser:
        answer = await browser.get("/api/users", headers={"Origin": APP})
        assert answer.status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "https://app.example.com.evil.example", "null"])
async def test_every_other_origin_is_refused(origin: str) -> None:
    for origins in ((), (APP,)):
        async with running(serving=serving(*origins)) as server, server.client(server.key()) as browser:
            for answer in (
                await browser.get("/api/users", headers={"Origin": origin}),
                await browser.options("/v1/chat/completions", headers=PREFLIGHT | {"Origin": origin}),
            ):
                assert answer.status_code == 403
                assert "access-control-allow-origin" not in answer.headers


async def test_pages_of_the_panel_are_open_to_no_other_origin() -> None:
    async with running(serving=serving("*")) as server, server.client() as browser:
        assert (await browser.get("/login", headers={"Origin": APP})).status_code == 403
        assert (await browser.post("/logout", headers={"Origin": APP})).status_code == 403
        allowed = await browser.options("/v1/messages", headers=PREFLIGHT)
        assert allowed.headers["access-control-allow-origin"] == "*"


async def test_a_page_of_another_origin_cannot_use_the_cookie_of_the_panel() -> None:
    async with running(serving=serving(APP)) as server, server.client() as browser:
        await browser.get(f"/login?token={str.__str__(server.here.link)}")
        assert (await browser.get("/api/users")).status_code == 200, "the browser is signed in"
        assert (await browser.get("/api/users", headers={"Origin": APP})).status_code == 401


def test_every_origin_and_no_authentication_are_refused_together() -> None:
    with pytest.raises(InvalidInput, match=r"server\.origins"):
        ServerOptions(serving("*"), auth=False)
    ServerOptions(serving(APP), auth=False)


@pytest.mark.parametrize("wrong", ["app.example.com", "https://app.example.com/", "https://a.example/page", ""])
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match=r"server\.origins must be an origin"):
        load_settings(env={}, overrides={"server.origins": [wrong]})
