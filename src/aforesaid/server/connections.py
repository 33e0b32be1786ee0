"""Connections that cannot be held open for nothing: a limit on their number, and a time limit for headers."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from aforesaid.server.problems import MEDIA_TYPE, problem
from aforesaid.settings import Serving


def uvicorn_config(app: FastAPI, serving: Serving, **more: Any) -> uvicorn.Config:  # noqa: ANN401 - uvicorn's options
    """Return the uvicorn configuration of every server, including those of tests."""
    return uvicorn.Config(
        app,
        http=type("Bounded", (_Bounded,), {"serving": serving}),
        lifespan="on",
        log_config=None,
        access_log=False,  # it would log the token of the sign-in link
        server_header=False,
        proxy_headers=bool(serving.trusted_proxies),
        forwarded_allow_ips=list(serving.trusted_proxies),
        **more,
    )


class _Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # which of two classes is decided at run time
    """uvicorn's protocol with limits on connections."""

    serving: Serving
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        if len(self.connections) >= self.serving.connections:
            transport.abort()
            return
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            return  # The connection was one too many; what it sent before it was closed is dropped.
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self.timeout_keep_alive_task is None and not self.transport.is_closing():
            self._await_headers()

    def send_400_response(self, msg: str) -> None:
        """Answer with problem details, as to every other bad request: no route has been looked up yet."""
        answer = problem(400, "bad-request", f"{msg} It is not HTTP/1.1, or its address or headers are too long.")
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(answer.body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + bytes(answer.body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self.transport is not None:
            super().connection_lost(exc)

    def _await_headers(self) -> None:
        """Close the connection unless the headers of a request are complete in time."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.serving.header_seconds, self._close_late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_late(self) -> None:
        self._deadline = None
        # A request may have been received and answered since the last bytes: then uvicorn's keep-alive counts.
        if self.timeout_keep_alive_task is None and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
