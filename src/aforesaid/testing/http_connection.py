"""A minimal HTTP server connection, for tests only."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response: one part with a length, or many parts that are streamed."""

    parts: tuple[bytes, ...]
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: bool = False

    def head(self) -> bytes:
        """Return the status line and the headers."""
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", f"Content-Type: {self.content_type}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        length = sum(len(part) for part in self.parts)
        lines.append("Transfer-Encoding: chunked" if self.streamed else f"Content-Length: {length}")
        return "\r\n".join([*lines, "", ""]).encode()

    def wrapped(self, part: bytes) -> bytes:
        """Return a part in its encoding on the connection."""
        return b"%x\r\n%s\r\n" % (len(part), part) if self.streamed else part

    def wired(self) -> bytes:
        """Return the whole response as bytes."""
        end = b"0\r\n\r\n" if self.streamed else b""
        return self.head() + b"".join(self.wrapped(part) for part in self.parts) + end


def answer_json(value: object, status: int = 200) -> HttpResponse:
    """Return a response with a JSON value."""
    return HttpResponse((json.dumps(value).encode(),), status)


def failure(status: int, message: str, code: str, parameter: str | None = None) -> HttpResponse:
    """Return an error response in OpenAI's format."""
    error = {"message": message, "type": "invalid_request_error", "param": parameter, "code": code}
    return answer_json({"error": error}, status)


class HttpConnection:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_request(self) -> tuple[str, str, dict[str, str], dict[str, str], dict[str, Any]] | None:
        """Return method, path, query, headers and body of the next request; None if the client disconnected."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            line, *fields = head.decode("latin-1").splitlines()
            method, target, _ = line.split(" ", 2)
            pairs = (each.partition(":") for each in fields if each)
            headers = {name.strip().casefold(): value.strip() for name, _, value in pairs}
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        address = urlsplit(target)
        return method, address.path, dict(parse_qsl(address.query)), headers, _body(body, headers)

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, answer: HttpResponse) -> None:
        """Send a response; a streamed one part by part."""
        await self.write(answer.head())
        for part in answer.parts:
            await self.write(answer.wrapped(part))
        if answer.streamed:
            await self.write(b"0\r\n\r\n")

    async def hung_up(self) -> None:
        """Wait until the client disconnects."""
        while await self._reader.read(65536):
            pass

    def reset(self) -> None:
        """Reset the connection, so that the client sees a reset instead of a regular close."""
        own: socket.socket = self._writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def abort(self) -> None:
        """Close the connection at once. One that is closed stays closed."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


def _body(body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    kind = headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        form = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body, policy=HTTP)
        return {str(part.get_param("name", header="content-disposition")): _field(part) for part in form.iter_parts()}
    if not body:
        return {}
    made: dict[str, Any] = json.loads(body)
    return made


def _field(part: Any) -> str | bytes:  # noqa: ANN401 - a part of an e-mail, which has no narrower type
    content: bytes = part.get_payload(decode=True)
    return content if part.get_filename() else content.decode()
