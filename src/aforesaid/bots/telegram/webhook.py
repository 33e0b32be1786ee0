"""A small HTTP server that receives updates from Telegram."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from aforesaid.errors import InvalidInput, quoted

_log: Final = logging.getLogger("aforesaid.bots")

_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
_MOST_BYTES: Final = 1024 * 1024

Take = Callable[[dict[str, Any]], Awaitable[bool]]


@asynccontextmanager
async def webhook(listen: str, path: str, secret: str, take: Take) -> AsyncIterator[int]:
    """Listen until the end of the block and pass every update to `take`; yield the port.

    The update is acknowledged when `take` returns True. If it returns False or raises, Telegram delivers it again.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(f"bots.telegram.listen must be an address such as 127.0.0.1:8443, not {quoted(listen)}")

    async def handle(request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get(_HEADER, "").encode(), secret.encode()):
            _log.warning("the webhook was called with a wrong secret, from %s", request.remote)
            return web.Response(status=403)
        try:
            update = json.loads(await request.read())
        except ValueError:
            return web.Response(status=400)
        if not isinstance(update, dict):
            return web.Response(status=400)
        return web.Response(status=200 if await take(update) else 503)

    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post(path, handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host.strip("[]"), int(port))
        try:
            await site.start()
        except OSError as error:
            raise InvalidInput(f"bots.telegram.listen: cannot listen on {listen}: {error.strerror}") from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
