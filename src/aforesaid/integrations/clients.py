"""The official clients of OpenAI and Anthropic with a memory, without a server: `aforesaid.wrap`.

    client = aforesaid.wrap(OpenAI(), user="ann")
    client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "Where do I live?"}])

The client that is returned is a copy of the one that is given, and sends its requests through it. On the way, a chat
goes through the same steps as in the proxy (`server.proxy`): what is new in it is stored, what is remembered is put
into it, and what the assistant says is stored while it comes.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from aforesaid.blocking import open as open_blocking
from aforesaid.domain.checks import json_object
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.integrations.shared import AnyMemory, Calls
from aforesaid.memory import Memory
from aforesaid.server.auth import Credential
from aforesaid.server.proxy.caller import PRIVATE_HEADERS, USER, NoMemory
from aforesaid.server.proxy.chats import REFUSED, attempts, headers_of, remembered
from aforesaid.server.proxy.protocols import ChatCompletions, Completions, Messages, Protocol, Responses
from aforesaid.server.proxy.proxy_memory import MemoryOutcome, ProxyMemory, Work, warm_up
from aforesaid.server.proxy.reply import Reply

Client = TypeVar("Client")
Http: TypeAlias = Any
"""Something of `httpx` or `httpx2`: the clients use either, and neither is needed to import this module."""

_log: Final = logging.getLogger("aforesaid.wrap")

_NOBODY: Final = "local"
"""The user of requests that name nobody, as in the proxy without authentication."""
_PROTOCOLS: Final[Mapping[str, tuple[Protocol, ...]]] = {
    "openai": (ChatCompletions(), Completions(), Responses()),
    "anthropic": (Messages(),),
}
_CLASSES: Final = {"openai": ("OpenAI", "AsyncOpenAI"), "anthropic": ("Anthropic", "AsyncAnthropic")}
_WARM_SECONDS: Final = 20.0
"""Maximum time that the first requests of a program wait until the embedder is loaded: without it, nothing is found."""
_STORE_SECONDS: Final = 5.0
"""Maximum time that closing an unfinished stream waits until its beginning is stored; storing goes on after it."""


def wrap(
    client: Client,
    *,
    memory: AnyMemory | str | os.PathLike[str] | None = None,
    user: str | int | None = None,
    chat: str | int | None = None,
    space: str | int = DEFAULT_SPACE,
) -> Client:
    """Return a copy of an official client of OpenAI or Anthropic, sync or async, that has a memory.

    `memory` is an open one, or the location of one, as for `aforesaid.open`; that stays open until the program ends.
    An async client can have a memory of either kind, a sync client one from `aforesaid.open`.

    `user` is whose memory it is, whomever the requests name. Without it, it is the user whom a request names (the
    field `user`, or in Anthropic's protocol `metadata.user_id`), and `local` where a request names nobody. `chat` is
    one of the user's private chats, of which a program then need not send the history; without it, chats are told
    apart by their messages.

    A memory that fails stops no request: the failure is logged, and the header `X-Aforesaid-Memory` of the response
    says `failed`. Raises InvalidInput for another client, and for names that cannot be used.
    """
    inner: Http = getattr(client, "_client", None)
    copy = getattr(client, "copy", None)
    sdk = next((name for name in _CLASSES if _is_of(client, name)), None)
    modules = [kind.__module__.partition(".")[0] for kind in type(inner).__mro__]
    http = next((sys.modules[name] for name in modules if name in {"httpx", "httpx2"}), None)
    if sdk is None or copy is None or http is None:
        raise InvalidInput(
            "pass a client of OpenAI or Anthropic, such as OpenAI(), AsyncOpenAI(), Anthropic() or AsyncAnthropic(), "
            f"not {type(client).__name__}",
            "client",
        )
    if isinstance(inner, _Sending):
        inner = inner.inner  # it is wrapped again, for somebody else
    calls = Calls(_opened(memory), Memory)
    is_sync = isinstance(inner, http.Client)
    if is_sync and not calls.blocks:
        raise InvalidInput("a sync client needs a memory that was opened with aforesaid.open", "memory")
    space_, whose, _, _ = calls.target.user(_NOBODY if user is None else user, space=space, chat=chat).scope
    sync_client, async_client, _ = _classes(http)
    # It sends nothing by itself: making a transport takes a while.
    sending = (sync_client if is_sync else async_client)(transport=object(), trust_env=False, timeout=inner.timeout)
    sending.inner = inner
    sending.wrapped = _Wrapped(
        calls,
        _chats_of(calls.target),
        _PROTOCOLS[sdk],
        Credential("client", sdk, "app", space=space_, default_user=whose),
        None if user is None else whose,
        None if chat is None else str(chat),
        http,
    )
    wrapped: Client = copy(http_client=sending)
    return wrapped


def _is_of(client: object, sdk: str) -> bool:
    module = sys.modules.get(sdk)
    return module is not None and isinstance(client, tuple(getattr(module, name) for name in _CLASSES[sdk]))


_here: Final[dict[str | None, AnyMemory]] = {}
_opening: Final = threading.Lock()


def _opened(memory: AnyMemory | str | os.PathLike[str] | None) -> object:
    """Return an open memory. Those of the same location are one."""
    if memory is not None and not isinstance(memory, str | os.PathLike):
        return memory
    location = None if memory is None else os.fspath(memory)
    with _opening:
        if location not in _here:
            _here[location] = opened = open_blocking(location)
            # While the threads that it needs still take work: at the time of `atexit` they do not any more.
            getattr(threading, "_register_atexit", atexit.register)(opened.close)
        return _here[location]


class _Chats:
    """What all clients of one memory share, on its event loop."""

    def __init__(self, memory: Memory) -> None:
        self.proxy = ProxyMemory(memory, memory._services.serving)  # noqa: SLF001 - no part of the public API needs it
        self.loop: asyncio.AbstractEventLoop | None = None
        self.strict_models: set[tuple[str, str]] = set()
        """Addresses and models that refused a system message in the middle of a conversation."""
        self._tasks: set[object] = set()
        self._warming: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Return when the embedder is loaded, which begins with the first call."""
        if self._warming is None:
            self.loop = asyncio.get_running_loop()
            self._warming = asyncio.create_task(warm_up(self.proxy.memory))
        await asyncio.wait((self._warming,), timeout=_WARM_SECONDS)

    def finish(self, work: Work) -> None:
        """Run work to its end, also when the request that began it is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def begin(self, work: Work) -> Future[None] | None:
        """Begin work from any thread. If the memory has been closed, log that and return None."""
        try:
            if self.loop is None:
                raise RuntimeError("no request was made")
            begun = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:
            work.close()
            _log.exception("a reply is not stored: the memory is closed")
            return None
        self._tasks.add(begun)
        begun.add_done_callback(self._tasks.discard)
        return begun

    async def give_up(self, outcome: MemoryOutcome) -> None:
        """Store the receipt of a chat that got no reply."""
        self.proxy.keep_receipt(outcome)


def _chats_of(memory: Memory) -> _Chats:
    # They are there as long as the memory is: chats that it told apart once are known to all its clients.
    found: _Chats = vars(memory).setdefault("_wrapped_chats", _Chats(memory))
    return found


class _Heard:
    """Reads a reply while it comes, and stores it once."""

    def __init__(self, chats: _Chats, outcome: MemoryOutcome, reply: Reply) -> None:
        self._chats = chats
        self._outcome = outcome
        self._reply = reply
        self._is_begun = False

    def hear(self, data: bytes) -> bool:
        """Read a piece; return whether the reply is complete."""
        if self._outcome.receipt is not None:
            self._outcome.receipt.note("first_byte")
        self._reply.feed(data)
        return self._reply.ended

    def store(self) -> Future[None] | None:
        """Begin to store what has come, from any thread; None if that was begun before."""
        if self._is_begun:
            return None
        self._is_begun = True
        if self._outcome.receipt is not None:
            self._outcome.receipt.note("reply")
        return self._chats.begin(self._chats.proxy.after(self._outcome, self._reply))


class _HeardStream:
    """The stream of a response, with somebody who listens. Made by `_classes` as a stream of the HTTP library."""

    def __init__(self, stream: Http, heard: _Heard) -> None:
        self._stream = stream
        self._heard = heard
        self._thread = threading.get_ident()

    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            if self._heard.hear(data):
                _wait(self._heard.store())
            yield data

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            storing = self._heard.store()
            # The garbage collector closes forgotten streams, in any thread; one that stores must not wait for itself.
            if threading.get_ident() == self._thread:
                _wait(storing)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            if self._heard.hear(data):
                await _awaited(self._heard.store())
            yield data

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            await _awaited(self._heard.store())


def _wait(storing: Future[None] | None) -> None:
    if storing is not None:
        with suppress(TimeoutError):
            storing.result(_STORE_SECONDS)


async def _awaited(storing: Future[None] | None) -> None:
    # A caller that is cancelled does not cancel it.
    if storing is not None:
        await asyncio.wait((asyncio.wrap_future(storing),), timeout=_STORE_SECONDS)


class _Door(NamedTuple):
    """How a request reaches the memory and the provider: by calls that block, or on the event loop of the client."""

    ask: Callable[[Callable[[Memory], Awaitable[Any]]], Awaitable[Any]]
    send: Callable[[Http], Awaitable[Http]]
    read: Callable[[Http], Awaitable[bytes]]
    wait: Callable[[Future[None] | None], Awaitable[None]]
    streams: bool


class _Wrapped(NamedTuple):
    """What one wrapped client knows."""

    calls: Calls[Memory]
    chats: _Chats
    protocols: tuple[Protocol, ...]
    who: Credential
    user: str | None
    chat: str | None
    http: Http
    """The library of the client: `httpx` or `httpx2`."""

    def protocol_of(self, request: Http) -> Protocol | None:
        """Return the protocol of a request that is a chat."""
        path = request.url.path
        return next((each for each in self.protocols if path.endswith(each.endpoint.path)), None)

    async def answer(self, request: Http, protocol: Protocol, door: _Door) -> Http:
        """Send a chat with what is remembered; return the response, which stores the reply while it is read."""
        body = json_object(request.content) or {}
        memory: MemoryOutcome | NoMemory | None = None
        told = {"X-Aforesaid-Memory": "failed"}
        try:
            memory = await door.ask(lambda _: self._remembered(request, protocol, body))
        except Exception as error:
            # Whatever it is, somebody waits for a reply and gets one without memory.
            _log.exception("a chat goes on without memory")
            told["X-Aforesaid-Reason"] = f"the memory cannot be used: {type(error).__name__}"
        outcome = memory if isinstance(memory, MemoryOutcome) else None
        try:
            response = await self._sent(request, protocol, body, outcome, door)
        finally:
            # Also if the provider cannot be reached: what was asked is stored before anybody hears of it.
            if outcome is not None:
                await self._try(door, self.chats.proxy.wait_until_stored(outcome))
        response.headers.update(told if memory is None else headers_of(memory))
        if outcome is None:
            return response
        if not response.is_success:
            await self._try(door, self.chats.give_up(outcome))
            return response
        heard = _Heard(self.chats, outcome, protocol.reply(body, response.headers.get("content-type", "")))
        if door.streams:
            response.stream = _classes(self.http)[2](response.stream, heard)
        else:
            heard.hear(response.content)
            await door.wait(heard.store())
        return response

    async def _remembered(self, request: Http, protocol: Protocol, body: dict[str, Any]) -> MemoryOutcome | NoMemory:
        chats, headers = self.chats, {name.lower(): value for name, value in request.headers.items()}
        await chats.ready()
        if self.user is not None:
            headers.setdefault(USER, self.user)
        model, finish = body.get("model"), chats.finish
        return await remembered(protocol, chats.proxy, headers, body, self.who, model, finish, chat=self.chat)

    async def _sent(
        self, request: Http, protocol: Protocol, body: dict[str, Any], outcome: MemoryOutcome | None, door: _Door
    ) -> Http:
        if outcome is not None and outcome.receipt is not None:
            outcome.receipt.restart_clock()
        model = str(request.url), str(body.get("model"))
        tries = attempts(protocol, body, request.content, outcome, strict=model in self.chats.strict_models)
        attempt = next(tries)
        while True:
            response = await door.send(self._request(request, attempt.body, streams=door.streams))
            if attempt.is_last or response.status_code not in REFUSED:
                if attempt.in_question and response.is_success:
                    self.chats.strict_models.add(model)
                return response
            try:
                attempt = tries.send(await door.read(response))
            except StopIteration:
                return response

    def _request(self, request: Http, content: bytes, *, streams: bool) -> Http:
        """Return a request with another content, and without what is said to the memory alone."""
        _make_public(request)
        headers = [each for each in request.headers.multi_items() if each[0].lower() != "content-length"]
        if streams:  # what is read on the way must not be compressed
            headers = [
                *(each for each in headers if each[0].lower() != "accept-encoding"),
                ("accept-encoding", "identity"),
            ]
        return self.http.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions
        )

    async def _try(self, door: _Door, work: Work) -> None:
        try:
            await door.ask(lambda _: work)
        except Exception:
            work.close()
            _log.exception("what was asked may not be stored")


def _make_public(request: Http) -> None:
    for name in [name for name in request.headers if name.lower().startswith(PRIVATE_HEADERS)]:
        del request.headers[name]


class _Sending:
    """What the wrapped HTTP clients have in common. They send through `inner`, the client's own."""

    inner: Http
    wrapped: _Wrapped

    def build_request(self, *values: Any, **named: Any) -> Http:  # noqa: ANN401 - those of the HTTP client
        return self.inner.build_request(*values, **named)

    @property
    def is_closed(self) -> bool:
        return bool(self.inner.is_closed)


class _SyncSending(_Sending):
    def send(self, request: Http, *, stream: bool = False, **more: Any) -> Http:  # noqa: ANN401
        protocol = self.wrapped.protocol_of(request)
        if protocol is None:
            _make_public(request)
            return self.inner.send(request, stream=stream, **more)

        async def ask(call: Callable[[Memory], Awaitable[Any]]) -> object:
            return self.wrapped.calls.run(call)

        async def send(changed: Http) -> Http:
            return self.inner.send(changed, stream=stream, **more)

        async def read(response: Http) -> bytes:
            return bytes(response.read())

        async def wait(storing: Future[None] | None) -> None:
            _wait(storing)

        work = self.wrapped.answer(request, protocol, _Door(ask, send, read, wait, stream))
        # It never waits for an event loop: all that it awaits blocks.
        try:
            work.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("a blocking call waits for an event loop")

    def close(self) -> None:
        self.inner.close()


class _AsyncSending(_Sending):
    async def send(self, request: Http, *, stream: bool = False, **more: Any) -> Http:  # noqa: ANN401
        protocol = self.wrapped.protocol_of(request)
        if protocol is None:
            _make_public(request)
            return await self.inner.send(request, stream=stream, **more)

        async def send(changed: Http) -> Http:
            return await self.inner.send(changed, stream=stream, **more)

        async def read(response: Http) -> bytes:
            return bytes(await response.aread())

        door = _Door(self.wrapped.calls.wait, send, read, _awaited, stream)
        return await self.wrapped.answer(request, protocol, door)

    async def aclose(self) -> None:
        await self.inner.aclose()


@cache
def _classes(http: Http) -> tuple[Http, Http, Http]:
    """Return the sync client, the async client and the stream, as classes of an HTTP library."""
    return (
        type("Client", (_SyncSending, http.Client), {}),
        type("AsyncClient", (_AsyncSending, http.AsyncClient), {}),
        type("Stream", (_HeardStream, http.SyncByteStream, http.AsyncByteStream), {}),
    )
