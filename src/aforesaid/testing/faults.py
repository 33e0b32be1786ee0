"""Faults between a program and a model, on demand.

Give one to `ScriptedModel.fail`, or put it into a script where a reply would be.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aforesaid.testing.http_connection import HttpConnection, HttpResponse, failure

if TYPE_CHECKING:
    from aforesaid.testing.script import Request


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
