"""The scripted model: a server in its own thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Final, Literal, Self

from aforesaid.settings import OPERATIONS, Choice, Provider, Resilience, Route, Secret, Settings, Speech
from aforesaid.testing import protocols
from aforesaid.testing.faults import Fault, HttpConnection, HttpResponse, failure
from aforesaid.testing.script import Play, Request, Said, Script, ScriptEnded, Writes

_SCRIPTED: Final = frozenset(
    {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate"}
)
"""Paths whose replies the script decides."""


class ScriptedModel:
    """A server on loopback that writes what its script says, and fails on demand.

    It speaks OpenAI's Chat Completions, Responses and Completions, Anthropic's Messages, and Ollama's API.

    Use it with `with` or `async with`. It runs in a thread of its own, so a test may block its event loop. Without a
    script it repeats what it was told, and fills in schemas by example. A script of a fixed number of replies that are
    used up is an error, which the client sees as a 400.
    """

    def __init__(
        self, script: Script = (), *, models: tuple[str, ...] = ("scripted",), api_key: str | None = None
    ) -> None:
        self.models = models
        self.api_key = api_key
        """The API key that clients must send; None accepts any."""
        self.requests: list[Request] = []
        """All requests so far, including those that a fault applied to."""
        self._numbers = count(1)
        self._play = Play(script)
        self._fault: Fault | None = None
        self._times: int | None = None
        self._port = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        """The base URL for clients. The port stays the same after a restart."""
        return f"http://127.0.0.1:{self._port}/v1"

    def provider(
        self,
        name: str = "scripted",
        *,
        structured: Literal["auto", "schema", "instructed"] = "auto",
        concurrency: int = 4,
    ) -> Provider:
        """Return the provider settings of this server."""
        key = None if self.api_key is None else Secret(self.api_key)
        return Provider(name, self.base_url, key, concurrency, structured)

    def settings(
        self,
        *,
        timeout: float = 10.0,
        resilience: Resilience | None = None,
        fallback: ScriptedModel | None = None,
    ) -> Settings:
        """Return settings that use this model for every operation, optionally with a fallback model."""
        others = {} if fallback is None else {"fallback": fallback.provider("fallback")}
        chain = [Choice("scripted", self.models[0])]
        if fallback is not None:
            chain.append(Choice("fallback", fallback.models[0]))
        routes = {
            operation: Route(tuple(chain[:1] if operation == "embed" else chain), timeout=timeout)
            for operation in OPERATIONS
        }
        return Settings(
            providers={"scripted": self.provider(), **others},
            routes=routes,
            resilience=resilience or Resilience(),
            speech=Speech(hear=tuple(chain), speak=tuple(chain), timeout=timeout),
        )

    def say(self, script: Script) -> None:
        """Replace the script."""
        with self._lock:
            self._play = Play(script)

    def fail(self, fault: Fault, *, times: int | None = None) -> None:
        """Apply a fault from now on: `times` times, or until `heal`."""
        with self._lock:
            self._fault, self._times = fault, times

    def heal(self) -> None:
        """Remove the fault."""
        with self._lock:
            self._fault = None

    def start(self) -> None:
        """Start listening, on the same port as before a `stop`. A second call does nothing."""
        if self._thread is not None:
            return
        ready = threading.Event()
        errors: list[OSError] = []

        def run() -> None:
            try:
                asyncio.run(self._serve(ready))
            except OSError as error:
                errors.append(error)
                ready.set()

        self._thread = threading.Thread(target=run, name="scripted-model", daemon=True)
        self._thread.start()
        ready.wait()
        if errors:
            self._thread = None
            raise errors[0]

    def stop(self) -> None:
        """Close all connections and stop listening. A second call does nothing."""
        if self._thread is None or self._loop is None or self._stopped is None:
            return
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.stop)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        conversations: dict[asyncio.Task[None], HttpConnection] = {}

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            wire = HttpConnection(reader, writer)
            own = asyncio.create_task(self._talk(wire))
            conversations[own] = wire
            own.add_done_callback(conversations.pop)

        server = await asyncio.start_server(talk, "127.0.0.1", self._port)
        self._port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stopped.wait()
        server.close()
        # A connection that was just accepted comes first, and a conversation that had not begun closes nothing itself.
        await asyncio.sleep(0)
        wires = list(conversations.values())
        for conversation in list(conversations):
            conversation.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)
        for wire in wires:
            wire.abort()
        await asyncio.sleep(0)
        await server.wait_closed()

    async def _talk(self, wire: HttpConnection) -> None:
        try:
            with suppress(ConnectionError):
                while (read := await wire.read_request()) is not None:
                    request = Request(*read)
                    self.requests.append(request)
                    answer, fault = self._answer(request)
                    await (fault or Fault()).send(fault.change(answer) if fault else answer, wire)
        finally:
            await wire.close()

    def _answer(self, request: Request) -> tuple[HttpResponse, Fault | None]:
        """Return the response and the fault to apply. A fault from `fail` does not advance the script."""
        with self._lock:
            if self._fault is not None and self._fault.strikes(request) and self._times != 0:
                self._times = None if self._times is None else self._times - 1
                said: Said = Writes("Struck by a fault, and hardly readable.")
                return self._ordinary(request, said), self._fault
            if self.api_key is not None:
                # In the header of the request's protocol.
                ours = "anthropic-version" in request.headers
                sent = request.headers.get("x-api-key" if ours else "authorization")
                if sent != (self.api_key if ours else f"Bearer {self.api_key}"):
                    return failure(401, "Incorrect API key provided", "invalid_api_key"), None
            if request.path not in _SCRIPTED:
                return self._ordinary(request, ""), None
            try:
                said = self._play.next(request)
            except ScriptEnded as error:
                return failure(400, str(error), "script_ended"), None
        if isinstance(said, Fault):
            return self._ordinary(request, Writes("Struck by a fault, and hardly readable.")), said
        return self._ordinary(request, said), None

    def _ordinary(self, request: Request, said: Said) -> HttpResponse:
        text = json.dumps(said) if isinstance(said, Mapping) else str(said)
        writes, number = said if isinstance(said, Writes) else Writes(text), next(self._numbers)
        models = protocols.messages_models if "anthropic-version" in request.headers else protocols.models
        answers: dict[str, Callable[[], HttpResponse]] = {
            "/v1/chat/completions": lambda: protocols.chat(request, writes),
            "/v1/completions": lambda: protocols.completion(request, writes),
            "/v1/responses": lambda: protocols.response(request, writes, number),
            "/v1/embeddings": lambda: protocols.embeddings(request),
            "/rerank": lambda: protocols.rerank(request),
            "/v1/rerank": lambda: protocols.rerank(request),
            "/v1/models": lambda: models(self.models),
            "/v1/audio/speech": lambda: protocols.speech(request),
            "/v1/audio/transcriptions": lambda: protocols.transcription(request),
            "/v1/messages": lambda: protocols.message(request, writes, number),
            "/v1/messages/count_tokens": lambda: protocols.count(request),
            "/api/chat": lambda: protocols.ollama_chat(request, writes),
            "/api/generate": lambda: protocols.generate(request, writes, number),
            "/api/tags": lambda: protocols.tags(self.models),
            "/api/show": lambda: protocols.show(request, self.models),
            "/api/version": protocols.version,
        }
        if request.path in answers:
            return answers[request.path]()
        return failure(404, f"{request.method} {request.path} does not exist", "not_found")
