"""`aforesaid config`: the effective configuration, where each value comes from, and whether the models answer."""

from __future__ import annotations

import io
import os
import time
import wave
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich import box
from rich.table import Column, Table
from rich.text import Text

from aforesaid.cli.options import AsJson
from aforesaid.cli.output import console, harmless, print_json, say
from aforesaid.errors import AforesaidError
from aforesaid.models.embed.remote import LOCAL
from aforesaid.settings import (
    Choice,
    Operation,
    Provider,
    Resilience,
    Route,
    Settings,
    SpeechOperation,
    Spending,
    load_settings,
)
from aforesaid.settings.layers import find_file, usual_place
from aforesaid.settings.load import EffectiveValue, Shown, chain_of, effective
from aforesaid.settings.providers import KNOWN_PROVIDERS
from aforesaid.store.locations import default_location

_NOTHING: Final = "–"
_ONCE: Final = Resilience(attempts=1)
_ASK: Final = "Answer with the one word: ready"


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of a test request to a model."""

    model: str
    operations: tuple[str, ...]
    ok: bool
    seconds: float
    said: str
    """The reply, or the error."""


def config(
    file: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="The file to read. Default: the file --path prints. Example: -c ./aforesaid.toml"
        ),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print the path of the configuration file and exit.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Send one request to every configured model, and print the results.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the effective configuration and where each value comes from. Keys are masked.

    With --check, exits with 1 if a model does not answer. Example:

        aforesaid config --check
    """
    found = find_file(file, os.environ)
    place = found or usual_place(os.environ)
    if path:
        if as_json:
            print_json({"path": str(place), "exists": found is not None})
        else:
            say(harmless(str(place)))
        return
    settings = load_settings(file)
    if check:
        _check(settings, as_json=as_json)
    elif as_json:
        values = {row.key: {"value": row.value, "origin": row.origin} for row in effective(settings)}
        print_json({"path": str(place), "exists": found is not None, "settings": values, "warnings": settings.warnings})
    else:
        _show(settings, place, exists=found is not None)


def _show(settings: Settings, place: Path, *, exists: bool) -> None:
    say(Text.assemble(("file: ", "dim"), harmless(str(place)), ("" if exists else " (does not exist)", "dim")))
    # The full path is printed above, once.
    rows = {row.key: row._replace(origin=row.origin.replace(str(place), place.name)) for row in effective(settings)}
    console().print(_operations(settings, rows))
    if settings.providers:
        console().print(_providers(settings, rows))
    console().print(_others(rows))
    for warning in settings.warnings:
        say(Text(f"! {harmless(warning)}", style="yellow"))
    if not any(route.chain for route in settings.routes.values()):
        _invite(settings, place)


def _operations(settings: Settings, rows: dict[str, EffectiveValue]) -> Table:
    numbers = [Column(title, justify="right") for title in ("temp.", "tokens", "seconds")]
    table = Table("operation", Column("models, in order", overflow="fold"), *numbers, _origin(), box=box.SIMPLE)
    for operation, route in settings.routes.items():
        chain = chain_of(route)
        if operation == "embed" and not route.chain:
            chain = [str(rows["embedder"].value or LOCAL)]
        key = "embedder" if operation == "embed" and settings.embedder else f"models.{operation}.chain"
        limits = (_cell(route.temperature), _cell(route.max_tokens), _cell(route.timeout))
        table.add_row(operation, harmless("\n".join(chain)), *limits, harmless(rows[key].origin))
    return table


def _providers(settings: Settings, rows: dict[str, EffectiveValue]) -> Table:
    address, concurrency = Column("address", overflow="fold"), Column("concurrency", justify="right")
    table = Table("provider", address, "key", concurrency, "structured", _origin(), box=box.SIMPLE)
    for name in settings.providers:
        parts = [rows[f"providers.{name}.{part}"] for part in ("base_url", "api_key", "concurrency", "structured")]
        origins = dict.fromkeys(row.origin for row in parts[:2] if row.value is not None)
        table.add_row(harmless(name), *(harmless(_cell(row.value)) for row in parts), harmless("\n".join(origins)))
    return table


def _others(rows: dict[str, EffectiveValue]) -> Table:
    table = Table("setting", Column("value", overflow="fold"), _origin(), box=box.SIMPLE)
    for key, row in rows.items():
        if not key.startswith(("models.", "providers.", "embedder")):
            value = str(default_location()) if key == "store" and row.value is None else row.value
            value = str(value) if key.endswith(".port") else value
            table.add_row(key, harmless(_cell(value)), harmless(row.origin))
    return table


def _origin() -> Column:
    return Column("from", overflow="fold", style="dim")


def _cell(value: Shown) -> str:
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    return value if isinstance(value, str) else ", ".join(value) or _NOTHING


def _invite(settings: Settings, place: Path) -> None:
    """Explain how to configure a model. A key in the environment alone sends nothing anywhere."""
    say(
        Text(
            "No model is configured. Everything works without one; a model writes better summaries and memories.",
            "bold",
        )
    )
    for name, provider in settings.providers.items():
        origin = settings.origins.get(f"providers.{name}.{'api_key' if provider.api_key else 'base_url'}")
        if name in KNOWN_PROVIDERS and origin != "default":
            say(f"{origin} is set, but nothing is sent to {name} until you configure one of its models.")
    say("To use one, set variables:")
    for name, known in KNOWN_PROVIDERS.items():
        provider_ = settings.providers.get(name)
        key = "" if not known.key_variable or (provider_ and provider_.api_key) else f"{known.key_variable}=… "
        say(f"  {key}AFORESAID_MODEL={name}:{known.example}")
    say(f"or add this to {harmless(str(place))}:")
    say('  [models]\n  default = "ollama:llama3.2"')
    say("Then: aforesaid config --check")


def _check(settings: Settings, *, as_json: bool) -> None:
    tried = []
    if not as_json:
        for warning in settings.warnings:
            say(Text(f"! {harmless(warning)}", style="yellow"))
    for choice, operations, answer in _asked(settings):
        result = anyio.run(_try, choice, operations, answer)
        tried.append(result)
        if not as_json:
            mark = Text("ok      ", style="green") if result.ok else Text("FAILED  ", style="bold red")
            used = f"  {', '.join(result.operations)}"
            say(mark, Text.assemble((result.model, "bold"), (f"  {result.seconds:.1f} s", "dim"), (used, "dim")))
            if not result.ok:
                say(f"        {harmless(result.said)}")
    counting = _counting(settings)
    if as_json:
        print_json({"models": tried, "tokens": counting, "warnings": settings.warnings})
    else:
        if not tried:
            say("no model is configured, so there is nothing to check. See: aforesaid config")
        say(Text(f"tokens are counted with {counting}", style="dim"))
    if not all(result.ok for result in tried):
        raise typer.Exit(1)


def _asked(settings: Settings) -> Iterator[tuple[Choice, tuple[str, ...], Awaitable[str]]]:
    """Return a test request for every configured model: the model, its operations, the request."""
    for choice, operations in _models(settings):
        seconds = max(settings.route(operation).timeout for operation in operations)
        embeds = "embed" in operations
        provider = settings.providers[choice.provider]
        yield choice, operations, _embed(provider, choice, seconds) if embeds else _ask(settings, choice, seconds)
    if settings.rerank.model is not None:
        yield settings.rerank.model, ("rerank",), _rerank(settings)
    for choice in settings.speech.hear:
        yield choice, ("hear",), _speech(settings, choice, "hear")
    for choice in settings.speech.speak:
        yield choice, ("speak",), _speech(settings, choice, "speak")


def _models(settings: Settings) -> Iterator[tuple[Choice, tuple[Operation, ...]]]:
    """Return every configured model once, with its operations. Chat models come before embedders."""
    for embeds in (False, True):
        used: dict[Choice, list[Operation]] = {}
        for operation, route in settings.routes.items():
            if (operation == "embed") is embeds:
                for choice in route.chain:
                    used.setdefault(choice, []).append(operation)
        yield from ((choice, tuple(operations)) for choice, operations in used.items())


async def _try(choice: Choice, operations: tuple[str, ...], answer: Awaitable[str]) -> ModelCheck:
    start = time.perf_counter()
    try:
        said = await answer
    except AforesaidError as error:
        return ModelCheck(str(choice), operations, ok=False, seconds=time.perf_counter() - start, said=str(error))
    return ModelCheck(str(choice), operations, ok=True, seconds=time.perf_counter() - start, said=said)


async def _ask(settings: Settings, choice: Choice, seconds: float) -> str:
    """Send one request to one model, without its fallbacks and without the daily spending limits."""
    from aforesaid.models.chat import Said, open_chat  # noqa: PLC0415 - only a check needs it

    alone = replace(
        settings,
        routes={"chat": Route(chain=(choice,), timeout=seconds)},
        resilience=_ONCE,
        spending=Spending(),
    )
    chat = open_chat(alone)
    try:
        return (await chat.text("chat", [Said("user", _ASK)])).text.strip()
    finally:
        await chat.close()


async def _embed(provider: Provider, choice: Choice, seconds: float) -> str:
    from aforesaid.models.embed import RemoteEmbedder  # noqa: PLC0415 - only a check needs it

    embedder = RemoteEmbedder(choice.model, provider=provider, timeout=seconds, resilience=_ONCE)
    try:
        return f"{(await embedder.embed([_ASK])).shape[1]} dimensions"
    finally:
        await embedder.close()


async def _rerank(settings: Settings) -> str:
    """Have the reranker score two texts."""
    from aforesaid.models.rerank import open_reranker  # noqa: PLC0415 - only a check needs it

    reranker = open_reranker(replace(settings, resilience=_ONCE))
    if reranker is None:
        return "not configured"
    try:
        best, other = await reranker.scores("Where does she live?", ["She moved to Berlin.", "The soup was good."])
    finally:
        await reranker.close()
    return f"scores {best:.3g} for an answer and {other:.3g} for another text"


async def _speech(settings: Settings, choice: Choice, operation: SpeechOperation) -> str:
    """Have a speech service synthesise one word, or transcribe one second of silence."""
    from aforesaid.models.speech import open_speech  # noqa: PLC0415 - only a check needs it

    speech = open_speech(
        replace(settings, resilience=_ONCE, speech=replace(settings.speech, hear=(choice,), speak=(choice,)))
    )
    try:
        if operation == "speak":
            return f"{len(await speech.speak('ready')):,} bytes of sound"
        return await speech.hear(_silence()) or "transcribed silence as nothing, as it should"
    finally:
        await speech.close()


def _silence() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(32_000))
    return file.getvalue()


def _counting(settings: Settings) -> str:
    """Return the name of the token counter for the chat model, and whether it estimates."""
    from aforesaid.models.tokens import counter_for  # noqa: PLC0415 - loads an encoding

    chain = settings.route("chat").chain
    counter = counter_for(str(chain[0]) if chain else None)
    return counter.name if counter.exact else f"{counter.name}, as an estimate"
