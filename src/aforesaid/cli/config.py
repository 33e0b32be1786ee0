"""Commands for configuration, stored settings and API keys."""

from __future__ import annotations

import io
import json
import os
import time
import wave
from collections.abc import Awaitable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer
from rich import box
from rich.table import Column, Table
from rich.text import Text
from typer import Argument, Option

from aforesaid.cli.options import (
    AsJson,
    Space,
    Stored,
    command,
    complain,
    console,
    harmless,
    inform,
    local_time,
    must_exist,
    print_json,
    say,
    show,
    store_path,
)
from aforesaid.cli.serve import needs_server
from aforesaid.domain import checks
from aforesaid.domain.checks import SettingValue, counted
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, StoreDamaged, quoted
from aforesaid.models.embed.remote import LOCAL
from aforesaid.profiles.effective import RUNTIME_SETTINGS
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
from aforesaid.settings.load import KNOWN_PROVIDERS, EffectiveValue, Shown, chain_of, effective
from aforesaid.store.locations import default_location

if TYPE_CHECKING:
    from aforesaid.server.auth import Key, Keys


_NOTHING: Final = "–"
_ONCE: Final = Resilience(attempts=1)
_ASK: Final = "Answer with the one word: ready"


@dataclass(frozen=True, slots=True)
class ModelCheck:
    model: str
    operations: tuple[str, ...]
    ok: bool
    seconds: float
    said: str
    """The reply, or the error."""


def config(
    file: Annotated[
        Path | None,
        Option(
            "--config", "-c", help="The file to read. Default: the file --path prints. Example: -c ./aforesaid.toml"
        ),
    ] = None,
    path: Annotated[bool, Option("--path", help="Print the path of the configuration file and exit.")] = False,
    check: Annotated[
        bool, Option("--check", help="Send one request to every configured model, and print the results.")
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
        show({"path": str(place), "exists": found is not None}, [harmless(str(place))], as_json=as_json)
        return
    settings = load_settings(file)
    if check:
        _check(settings, as_json=as_json)
    elif as_json:
        values = {row.key: {"value": row.value, "origin": row.origin} for row in effective(settings)}
        print_json({"path": str(place), "exists": found is not None, "settings": values, "warnings": settings.warnings})
    else:
        exists = found is not None
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
    # The name of the token counter for the chat model, and whether it estimates.
    from aforesaid.models.tokens import counter_for  # noqa: PLC0415 - loads an encoding

    chain = settings.route("chat").chain
    counter = counter_for(str(chain[0]) if chain else None)
    counting = counter.name if counter.exact else f"{counter.name}, as an estimate"
    if as_json:
        print_json({"models": tried, "tokens": counting, "warnings": settings.warnings})
    else:
        if not tried:
            say("no model is configured, so there is nothing to check. See: aforesaid config")
        say(Text(f"tokens are counted with {counting}", style="dim"))
    if not all(result.ok for result in tried):
        raise typer.Exit(1)


def _asked(settings: Settings) -> Iterator[tuple[Choice, tuple[str, ...], Awaitable[str]]]:
    """Return a test request for every configured model, chat models before embedders: model, operations, request."""
    for embeds in (False, True):  # each model once, with all its operations
        used: dict[Choice, list[Operation]] = {}
        for operation, route in settings.routes.items():
            if (operation == "embed") is embeds:
                for choice in route.chain:
                    used.setdefault(choice, []).append(operation)
        for choice, operations in used.items():
            seconds = max(settings.route(operation).timeout for operation in operations)
            provider = settings.providers[choice.provider]
            test = _embed(provider, choice, seconds) if embeds else _ask(settings, choice, seconds)
            yield choice, tuple(operations), test
    if settings.rerank.model is not None:
        yield settings.rerank.model, ("rerank",), _rerank(settings)
    for choice in settings.speech.hear:
        yield choice, ("hear",), _speech(settings, choice, "hear")
    for choice in settings.speech.speak:
        yield choice, ("speak",), _speech(settings, choice, "speak")


async def _try(choice: Choice, operations: tuple[str, ...], answer: Awaitable[str]) -> ModelCheck:
    start, ok = time.perf_counter(), True
    try:
        said = await answer
    except AforesaidError as error:
        said, ok = str(error), False
    return ModelCheck(str(choice), operations, ok, time.perf_counter() - start, said)


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
        file = io.BytesIO()
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(16_000)
            sound.writeframes(bytes(32_000))
        return await speech.hear(file.getvalue()) or "transcribed silence as nothing, as it should"
    finally:
        await speech.close()


@command
def settings(
    name: Annotated[str | None, Argument(help="The setting to change. Default: print all.", show_default=False)] = None,
    value: Annotated[str | None, Argument(help="Its new value.", show_default=False)] = None,
    *,
    place: Stored,
    user: Annotated[
        str | None,
        Option("--user", "-u", help="Change it for this user only. Default: all users of the space. Example: -u ann"),
    ] = None,
    space: Space = DEFAULT_SPACE,
    reset: Annotated[bool, Option("--reset", help="Remove the stored value, so that the profile's applies.")] = False,
) -> None:
    """Print or change settings that take effect immediately, for a space or for one user.

    Example:
        aforesaid settings short_term_memory_limit 5 --user ann
    """
    opened = place.read if name is None else place.write
    if name is not None and value is None and not reset:
        raise InvalidInput(f"a value for {name} is missing; pass one, or --reset")
    if reset and (name is None or value is not None):
        raise InvalidInput("--reset takes a setting's name and no value")
    with opened(embedder="none") as memory:
        person = None if user is None else memory.user(user, space=space)
        if name is not None:
            new = None if value is None else _parsed(name, value)
            if person is None:
                memory.set(name, new, space=space)
            else:
                person.set(name, new)
        found = memory.settings(space) if person is None else person.settings()
    if value is not None and name is not None and name not in RUNTIME_SETTINGS:
        complain(f"{name} is stored, but Aforesaid has no setting of this name: only your own code reads it")
    place.show(found, [_settings_table(found)])


def _parsed(name: str, value: str) -> SettingValue:
    """Parse numbers and true/false as JSON; everything else is text and needs no quotes."""
    if name in RUNTIME_SETTINGS or value in {"true", "false"}:
        try:
            read = json.loads(value)
        except ValueError:
            return value
        return read if isinstance(read, bool | int | float) else value
    return value


def _settings_table(found: dict[str, SettingValue]) -> Table:
    table = Table("setting", "value", "what it does", box=None, padding=(0, 2, 0, 0))
    for name, setting in RUNTIME_SETTINGS.items():
        stored = found.get(name)
        shown = Text("from the profile", style="dim") if stored is None else Text(harmless(json.dumps(stored)))
        table.add_row(name, shown, Text(setting.help, style="dim"))
    for name, stored in found.items():
        if name not in RUNTIME_SETTINGS:
            table.add_row(Text(harmless(name)), Text(harmless(json.dumps(stored))), Text("your own", style="dim"))
    return table


_TIMES: Final = ("until", "last_used")

commands = typer.Typer(no_args_is_help=True)


@commands.command("add")
@command
def add_key(
    name: Annotated[str, Argument(help="The key's name, as the audit log shows it.")],
    *,
    role: Annotated[str, Option(help="What the key may do: reader (read), app (read and write) or admin.")] = "app",
    space: Annotated[
        str | None, Option(help="Limit the key to this space. Default: all spaces. Example: --space default")
    ] = None,
    user: Annotated[
        str | None,
        Option("--user", "-u", help="Limit the key to this user of --space. Default: all users. Example: -u ann"),
    ] = None,
    people: Annotated[
        str | None,
        Option(
            help="How many people use the key. one: all requests are one person's, named by --user or else NAME. "
            "many: the proxy has no memory for requests that name no user. Default: many, or one with --user."
        ),
    ] = None,
    days: Annotated[
        int | None, Option(min=1, max=36_500, help="Days until the key expires. Default: never. Example: --days 90")
    ] = None,
    place: Stored,
) -> None:
    """Create a key and print it. It is shown only once: its file has a hash. Running servers accept it immediately.

    Its id and its file are printed to standard error. Example:

        aforesaid key add my-app --role app --space default
        aforesaid key add my-laptop --people one
    """
    if people not in {None, "one", "many"}:
        raise InvalidInput(f"--people must be one or many, not {quoted(people)}")
    if people == "many" and user is not None:
        raise InvalidInput("a key with --user is one person's; leave --user out, or use --people one")
    if people == "one":
        user, space = user or name, space or DEFAULT_SPACE
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    keys, path = _keys(place.store)
    same_name = [each.id for each in keys.all() if each.name == name]
    key, token = keys.add(name, role, space=space, user=user, expires_at=expires)
    inform(f"added the key {key.id} to {path}")
    if same_name:
        inform(f"there are other keys named {name} ({', '.join(same_name)}); to revoke one: aforesaid key remove ID")
    if (missing := store_path(place.store)) is not None and not missing.exists():
        inform(f"there is no store at {missing} yet; check --store and AFORESAID_STORE")
    place.show({"id": key.id, "token": str.__str__(token)}, [str.__str__(token)])


@commands.command("list")
@command
def list_keys(place: Stored) -> None:
    """List the keys, without their secrets, and when each was last used. A running server writes that once a minute.

    Example:
        aforesaid key list
    """
    keys, path = _keys(place.store)
    if not path.exists():
        must_exist(place.store, "check --store and AFORESAID_STORE")
    # When each key was last used, by its id.
    from aforesaid.server.auth import KeyUse  # noqa: PLC0415 - an extra

    used = {key: at.isoformat(timespec="seconds") for key, at in KeyUse(path).all().items()}
    found = [_shown(key) | {"last_used": used.get(key.id)} for key in keys.all()]
    titles = ("id", "name", "role", "space", "user", "until", "last used")
    table = Table(*(Column(title, overflow="fold") for title in titles))
    for key in found:
        times = {name: local_time(datetime.fromisoformat(at)) for name in _TIMES if (at := key[name])}
        table.add_row(*(Text(harmless(value or "-")) for value in (key | times).values()))
    place.show(found, [table])


@commands.command("remove")
@command
def remove_key(key: Annotated[str, Argument(help="The key's id, from `aforesaid key list`.")], place: Stored) -> None:
    """Revoke a key. Running servers reject it immediately.

    Example:
        aforesaid key remove 1f2e3d4c
    """
    keys, path = _keys(place.store)
    if not path.exists():
        raise NotFound(f"there are no keys in {path}; check --store")
    removed = keys.remove(key)
    place.show(_shown(removed), [f"revoked the key {harmless(removed.name)}"])


def note_keys_left_behind(sources: Sequence[str | None], target: str | None) -> None:
    """Say on standard error which keys of a server were not copied with a store, and how to copy them.

    The first source that has keys counts. Clients that use them would be refused without a hint why.
    """
    from aforesaid.server.auth import Keys, copy_command, keys_path, shared_keys  # noqa: PLC0415 - for few commands

    settings = load_settings()
    found = [path for source in sources for path in (keys_path(settings, source), shared_keys(settings, source))]
    there = keys_path(settings, target)
    here = next((path for path in found if path is not None and path.exists()), None)
    if here is None or there is None or here.absolute() == there.absolute():
        return
    try:
        old, new = ({key.id for key in Keys(path).all()} for path in (here, there))
    except StoreDamaged as error:
        inform(str(error))
        return
    if old and not new:
        inform(f"the server's keys were not copied; to keep them, run: {copy_command(here, there)}")
    elif old - new:
        inform(f"{counted(len(old - new), 'key')} of {here} {'is' if len(old - new) == 1 else 'are'} not in {there}")


def note_keys_of(user: str, spaces: Collection[str] | None, store: str | None) -> None:
    """Say on standard error which keys are still valid for a user who was purged, in some spaces or (None) in all."""
    from aforesaid.server.auth import Keys, keys_path  # noqa: PLC0415 - for few commands

    path = keys_path(load_settings(), store)
    try:
        keys = () if path is None else Keys(path).all()
    except StoreDamaged as error:
        inform(str(error))
        return
    known = checks.identifier(user, "the user id")
    now = datetime.now(UTC)
    for key in keys:
        if key.user == known and (spaces is None or key.space in spaces) and not key.expired(now):
            inform(
                f"the API key {key.name} ({key.id}) is still valid for {user}: what it stores creates the user again; "
                f"to revoke it, run: aforesaid key remove {key.id}"
            )


def _keys(store: str | None) -> tuple[Keys, Path]:
    """Return the keys of a store, and the file that they are in."""
    needs_server()
    from aforesaid.server.auth import Keys, check_shared_keys, keys_path  # noqa: PLC0415 - an extra

    settings = load_settings()
    check_shared_keys(settings, store)
    path = keys_path(settings, store)
    if path is None:
        raise InvalidInput("a store in memory has no keys; pass a file with --store")
    return Keys(path), path


def _shown(key: Key) -> dict[str, str | None]:
    return {name: getattr(key, name) for name in ("id", "name", "role", "space", "user")} | {"until": key.expires_at}
