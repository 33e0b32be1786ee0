"""What can go wrong between a program and a model, on demand.

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
    """Stands between an ordinary answer and the wire. The base of all faults; alone, it changes nothing."""

    def strikes(self, request: Request) -> bool:  # noqa: ARG002 - for those that look at it
        """Tell whether this request is hit."""
        return True

    def change(self, answer: HttpResponse) -> HttpResponse:
        """Return what is sent instead of the ordinary answer."""
        return answer

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send it, in whatever way."""
        await wire.send(answer)


@dataclass(frozen=True, slots=True)
class NeverAnswers(Fault):
    """Takes the request and says nothing, for as long as the client waits."""

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:  # noqa: ARG002 - nothing is sent
        """Wait for the client to give up."""
        await wire.hung_up()


@dataclass(frozen=True, slots=True)
class TooManyRequests(Fault):
    """Answers 429. `retry_after` is a number of seconds or a date; None leaves the header out."""

    retry_after: float | str | None = 1

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Send the failure."""
        made = failure(429, "Rate limit reached", "rate_limit_exceeded")
        return made if self.retry_after is None else replace(made, headers={"Retry-After": str(self.retry_after)})


@dataclass(frozen=True, slots=True)
class ServerError(Fault):
    """Answers with a status of the server's own failure."""

    status: int = 500
    message: str = "The server had an error while processing your request"

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Send the failure."""
        return failure(self.status, self.message, "server_error")


@dataclass(frozen=True, slots=True)
class WrongKey(Fault):
    """Answers 401, as if the key were wrong."""

    message: str = "Incorrect API key provided"

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Send the failure."""
        return failure(401, self.message, "invalid_api_key")


@dataclass(frozen=True, slots=True)
class UnknownModel(Fault):
    """Answers 404, as if the model did not exist."""

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Send the failure."""
        return failure(404, "The model does not exist or you do not have access to it", "model_not_found")


@dataclass(frozen=True, slots=True)
class Refuses(Fault):
    """Answers 400 to every request that has a parameter, such as `temperature`, and names it."""

    parameter: str
    message: str = ""

    def strikes(self, request: Request) -> bool:
        """Hit requests with the parameter."""
        return self.parameter in request.body

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Send the failure."""
        message = self.message or f"Unsupported parameter: '{self.parameter}' is not supported with this model."
        return failure(400, message, "unsupported_parameter", self.parameter)


@dataclass(frozen=True, slots=True)
class NoSchema(Fault):
    """Answers 400 to every request with a JSON schema, as servers do that know only plain text."""

    def strikes(self, request: Request) -> bool:
        """Hit requests with a schema."""
        return request.schema is not None

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - a failure is sent instead
        """Send the failure."""
        return failure(400, "This response_format type is unavailable now", "invalid_request_error")


@dataclass(frozen=True, slots=True)
class Garbage(Fault):
    """Answers 200 with a page of HTML, as a proxy or a wrong address does."""

    content_type: str = "text/html"

    def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002 - the page is sent instead
        """Send the page."""
        return HttpResponse(content_type=self.content_type, parts=(b"<html><body>It works!</body></html>\n",))


@dataclass(frozen=True, slots=True)
class CutJson(Fault):
    """Ends the body in the middle, as if that were all. A stream ends in the middle of an event."""

    def change(self, answer: HttpResponse) -> HttpResponse:
        """Keep the first half."""
        if len(answer.parts) == 1:
            whole = answer.parts[0]
            return replace(answer, parts=(whole[: len(whole) // 2],))
        half = len(answer.parts) // 2
        return replace(answer, parts=(*answer.parts[:half], answer.parts[half][:20] + b"\n\n"))


@dataclass(frozen=True, slots=True)
class Slow(Fault):
    """Sends one byte at a time, head included."""

    seconds: float = 1.0
    """Between two bytes."""

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send it, slowly."""
        for byte in answer.wired():
            await wire.write(bytes((byte,)))
            await asyncio.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class Stalls(Fault):
    """Sends the first parts of a stream and then falls silent, without hanging up."""

    after: int = 1

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send a part of it."""
        await wire.write(answer.head())
        for part in answer.parts[: self.after]:
            await wire.write(answer.wrapped(part))
        await wire.hung_up()


@dataclass(frozen=True, slots=True)
class Resets(Fault):
    """Resets the connection: at once, or after some parts of a stream."""

    after: int = 0

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        """Send a part of it, and reset."""
        if self.after:
            await wire.write(answer.head())
            for part in answer.parts[: self.after]:
                await wire.write(answer.wrapped(part))
        wire.reset()
