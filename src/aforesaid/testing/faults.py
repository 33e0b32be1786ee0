"""Faults between a program and a model, on demand.

Give one to `ScriptedModel.fail`, or put it into a script where a reply would be.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.policy import HTTP
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from aforesaid.testing.script import Request


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


@dataclass(frozen=True, slots=True)
class Fault:
    """The base class of all faults. By itself it changes nothing."""

    def strikes(self, request: Request) -> bool:  # noqa: ARG002 - for those that look at it
        """Return whether the fault applies to this request."""
        return True

    def change(self, answer: HttpResponse) -> HttpResponse:
        """Return the response to send instead of the regular one."""
        return answer

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send the response."""
        await wire.send(answer)


@dataclass(frozen=True, slots=True)
class NeverAnswers(Fault):
    """Accepts the request and never responds."""

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:  # noqa: ARG002 - nothing is sent
        """Wait until the client disconnects."""
        await wire.hung_up()


@dataclass(frozen=True, slots=True)
class TooManyRequests(Fault):
    """Responds with 429. `retry_after` is a number of seconds or a date; None omits the header."""

    retry_after: float | str | None = 1

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Return the error response."""
        made = failure(429, "Rate limit reached", "rate_limit_exceeded")
        return made if self.retry_after is None else replace(made, headers={"Retry-After": str(self.retry_after)})


@dataclass(frozen=True, slots=True)
class ServerError(Fault):
    """Responds with a 5xx status."""

    status: int = 500
    message: str = "The server had an error while processing your request"

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Return the error response."""
        return failure(self.status, self.message, "server_error")


@dataclass(frozen=True, slots=True)
class WrongKey(Fault):
    """Responds with 401, as if the key were wrong."""

    message: str = "Incorrect API key provided"

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Return the error response."""
        return failure(401, self.message, "invalid_api_key")


@dataclass(frozen=True, slots=True)
class UnknownModel(Fault):
    """Responds with 404, as if the model did not exist."""

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Return the error response."""
        return failure(404, "The model does not exist or you do not have access to it", "model_not_found")


@dataclass(frozen=True, slots=True)
class Refuses(Fault):
    """Responds with 400 to every request with a certain parameter, such as `temperature`, and names it."""

    parameter: str
    message: str = ""

    def strikes(self, request: Request) -> bool:
        """Apply to requests with the parameter."""
        return self.parameter in request.body

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Return the error response."""
        message = self.message or f"Unsupported parameter: '{self.parameter}' is not supported with this model."
        return failure(400, message, "unsupported_parameter", self.parameter)


@dataclass(frozen=True, slots=True)
class NoSchema(Fault):
    """Responds with 400 to every request with a JSON schema, like servers that support plain text only."""

    def strikes(self, request: Request) -> bool:
        """Apply to requests with a schema."""
        return request.schema is not None

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Return the error response."""
        return failure(400, "This response_format type is unavailable now", "invalid_request_error")


@dataclass(frozen=True, slots=True)
class Garbage(Fault):
    """Responds with 200 and an HTML page, like a proxy or a wrong address."""

    content_type: str = "text/html"

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - the page is sent instead
        """Return the HTML page."""
        return HttpResponse(content_type=self.content_type, parts=(b"<html><body>It works!</body></html>\n",))


@dataclass(frozen=True, slots=True)
class CutJson(Fault):
    """Sends only the first half of the body. A stream ends in the middle of an event."""

    def change(self, answer: HttpResponse) -> HttpResponse:
        """Return the first half of the response."""
        if len(answer.parts) == 1:
            whole = answer.parts[0]
            return replace(answer, parts=(whole[: len(whole) // 2],))
        half = len(answer.parts) // 2
        return replace(answer, parts=(*answer.parts[:half], answer.parts[half][:20] + b"\n\n"))


@dataclass(frozen=True, slots=True)
class Slow(Fault):
    """Sends the response byte by byte, headers included."""

    seconds: float = 1.0
    """Seconds between two bytes."""

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send the response byte by byte."""
        for byte in answer.wired():
            await wire.write(bytes((byte,)))
            await asyncio.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class Stalls(Fault):
    """Sends the first parts of a stream, then nothing more, and keeps the connection open."""

    after: int = 1

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send the first parts and wait until the client disconnects."""
        await wire.write(answer.head())
        for part in answer.parts[: self.after]:
            await wire.write(answer.wrapped(part))
        await wire.hung_up()


@dataclass(frozen=True, slots=True)
class Resets(Fault):
    """Resets the connection, at once or after some parts of a stream."""

    after: int = 0

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send the first parts and reset the connection."""
        if self.after:
            await wire.write(answer.head())
            for part in answer.parts[: self.after]:
                await wire.write(answer.wrapped(part))
        wire.reset()
