"""Commands that run until they are stopped: the server, MCP, bots, the chat in the terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import anyio
import typer
from rich.text import Text
from typer import Option

import aforesaid
from aforesaid.assistant import SYSTEM, Assistant, File
from aforesaid.cli.options import (
    ME,
    Chat,
    LogLevel,
    Profile,
    Session,
    Space,
    Store,
    Thread,
    UserOption,
    announce_new_folder,
    complain,
    console,
    harmless,
    message_line,
    must_exist,
    say,
    write_log,
)
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.extras import how_to_install
from aforesaid.models.embed import embedder_of_a_server
from aforesaid.settings import Settings, load_settings

if TYPE_CHECKING:
    from aforesaid.bots import Platform


def serve(
    store: Store = None,
    host: Annotated[
        str | None, Option(help="The address to listen on. Default: 127.0.0.1 (this machine only).")
    ] = None,
    port: Annotated[int | None, Option(min=0, max=65_535, help="The port; 0 picks a free one. Default: 5002.")] = None,
    allow_host: Annotated[
        list[str] | None,
        Option(
            help="A Host header to accept besides loopback names; repeatable. Example: --allow-host memory.example.org"
        ),
    ] = None,
    profile: Profile = None,
    auth: Annotated[bool, Option("--auth/--no-auth", help="Require a key. --no-auth works on loopback only.")] = True,
    log_level: LogLevel = "warning",
) -> None:
    """Serve the memory over HTTP: control panel, REST API, OpenAI-compatible proxy, MCP. Stop it with Ctrl+C.

    Prints a link that opens the control panel. Programs need a key: `aforesaid key add`. Example:

        aforesaid serve --port 5002
    """
    needs_server()
    from aforesaid.server import ServerOptions  # noqa: PLC0415 - an extra
    from aforesaid.server.app import run  # noqa: PLC0415
    from aforesaid.server.app import serve as until_stopped  # noqa: PLC0415
    from aforesaid.server.auth import check_shared_keys, keys_path  # noqa: PLC0415

    write_log(log_level)
    announce_new_folder(store)
    settings = load_settings()
    check_shared_keys(settings, store)
    serving = replace(
        settings.server,
        host=settings.server.host if host is None else host,
        port=settings.server.port if port is None else port,
        hosts=(*settings.server.hosts, *(allow_host or ())),
    )
    options = ServerOptions(serving, auth=auth, keys=keys_path(settings, store), settings=settings)

    async def serve_until_stopped() -> None:
        embedder = embedder_of_a_server(settings)
        async with aforesaid.connect(store, profile=profile, settings=settings, embedder=embedder) as memory:
            ready = "Aforesaid is ready: {}\nStop it with Ctrl+C."
            # No markup or wrapping, so that the link can be clicked or copied.
            await until_stopped(memory, options, lambda link: typer.echo(ready.format(link)))
        say("stopped; every acknowledged message is stored")

    run(serve_until_stopped)


def needs_server() -> None:
    try:
        import fastapi  # noqa: F401, PLC0415
        import jinja2  # noqa: F401, PLC0415
        import prometheus_client  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError as error:
        raise InvalidInput(f"the server is not installed; {how_to_install('server')} (missing: {error.name})") from None


def mcp(
    store: Store = None,
    user: UserOption = ME,
    space: Space = DEFAULT_SPACE,
    everybody: Annotated[
        bool, Option("--everybody", help="Let the agent choose the user in every call; --user is ignored.")
    ] = False,
    read_only: Annotated[bool, Option("--read-only", help="Give the agent no tools that change anything.")] = False,
    profile: Profile = None,
) -> None:
    """Serve the memory to an agent over MCP, on standard input and output. Agents start this command themselves.

    Example, for an agent's configuration file:

        {"command": "aforesaid", "args": ["mcp", "--user", "ann"]}
    """
    try:
        import mcp as installed  # noqa: F401, PLC0415
    except ImportError as error:
        raise InvalidInput(f"MCP is not installed; {how_to_install('mcp')} (missing: {error.name})") from None
    write_log("warning")
    if read_only:
        must_exist(store)
    else:
        announce_new_folder(store)

    async def serve_until_closed() -> None:
        from aforesaid.server.auth import Credential  # noqa: PLC0415 - an extra
        from aforesaid.server.mcp import build  # noqa: PLC0415

        whose = None if everybody else user
        who = Credential("mcp", "an agent", "reader" if read_only else "app", space, whose)
        settings = load_settings()
        async with aforesaid.connect(store, profile=profile, settings=settings) as memory:
            await build(memory, lambda _: who, settings.server.mcp_tokens).run_stdio_async()

    anyio.run(serve_until_closed)


commands = typer.Typer(no_args_is_help=True)

MakePlatform: TypeAlias = "Callable[[Settings, tuple[str, ...]], Platform]"
"""Makes a platform from the settings and the names that people call the bot by, other than its account's name."""


@commands.command()
def telegram(store: Store = None, profile: Profile = None, log_level: LogLevel = "warning") -> None:
    """Run a bot on Telegram. The token comes from bots.telegram.token or AFORESAID_BOTS__TELEGRAM__TOKEN.

    Exits with 1 when Telegram refuses the token. Example:

        AFORESAID_BOTS__TELEGRAM__TOKEN=… aforesaid bot telegram
    """
    with needs("telegram", "aiogram"):
        from aforesaid.bots.telegram import Telegram  # noqa: PLC0415 - an extra
    run_bot(lambda settings, called: Telegram(settings.bots.telegram, called=called), store, profile, log_level)


@commands.command()
def mumble(store: Store = None, profile: Profile = None, log_level: LogLevel = "warning") -> None:
    """Run a bot on Mumble, in text and voice. The server comes from bots.mumble.host or AFORESAID_BOTS__MUMBLE__HOST.

    Exits with 1 when the server refuses the bot. Example:

        AFORESAID_BOTS__MUMBLE__HOST=localhost aforesaid bot mumble
    """
    from aforesaid.bots.mumble import Mumble  # noqa: PLC0415 - only this command needs it
    from aforesaid.models.speech import open_speech  # noqa: PLC0415

    def make(settings: Settings, called: tuple[str, ...]) -> Platform:
        speaks = settings.speech.hear or settings.speech.speak
        return Mumble(settings.bots.mumble, open_speech(settings) if speaks else None, called=called)

    run_bot(make, store, profile, log_level)


@commands.command()
def discord(store: Store = None, profile: Profile = None, log_level: LogLevel = "warning") -> None:
    """Run a bot on Discord. The token comes from bots.discord.token or AFORESAID_BOTS__DISCORD__TOKEN.

    Exits with 1 when Discord refuses the token. Example:

        AFORESAID_BOTS__DISCORD__TOKEN=… aforesaid bot discord --profile community
    """
    with needs("discord", "discord"):
        from aforesaid.bots.discord import Discord  # noqa: PLC0415 - an extra
    run_bot(lambda settings, called: Discord(settings.bots.discord, called=called), store, profile, log_level)


def run_bot(make: MakePlatform, store: str | None, profile: str | None, log_level: str) -> None:
    """Run a platform's bot until the process receives SIGINT or SIGTERM."""
    write_log(log_level)
    announce_new_folder(store)
    anyio.run(_run, make, store, profile)


async def _run(make: MakePlatform, store: str | None, profile: str | None) -> None:
    from aforesaid.bots import BotSession, run  # noqa: PLC0415 - only bots need it

    settings = load_settings()
    platform = make(settings, () if settings.bots.name is None else (settings.bots.name,))
    try:
        async with aforesaid.connect(store, profile=profile, settings=settings) as memory:
            session = BotSession(memory, platform, assistant=Assistant(memory, system=settings.bots.system or SYSTEM))
            if memory.models is None or not memory.models.has("chat"):
                say("no model is configured: the bot stores, finds and reminds, but does not write replies of its own")
            ready = "{} is ready. Stop it with Ctrl+C."
            await run(memory, platform, session=session, ready=lambda name: typer.echo(ready.format(name)))
    finally:
        await platform.close()
    say("stopped; every message is stored")


@contextmanager
def needs(extra: str, package: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {package, "aiohttp"}:
            raise
        raise InvalidInput(f"the {extra} bot needs {package}; {how_to_install(extra)}") from None


_SHOWN = 6
"""Number of earlier messages printed at the start."""
_HISTORY_LINES = 200
"""Number of earlier messages that the arrow keys bring back."""


def chat(
    store: Store = None,
    user: UserOption = ME,
    profile: Profile = None,
    system: Annotated[str, Option(help="The system prompt. Example: --system 'You are Rex.'")] = SYSTEM,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
) -> None:
    """Chat in the terminal, with memory. End with /quit or Ctrl+D.

    /help lists the commands. Without a model it notes what you say, and answers questions with what it remembers.
    Example:
        aforesaid chat --user ann
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    announce_new_folder(store)
    anyio.run(_talk, store, profile, system, (user, space, thread, chat, session))


async def _talk(
    store: str | None, profile: str | None, system: str, place: tuple[str, str, str | None, str | None, str | None]
) -> None:
    user, space, thread, chat, session = place
    async with aforesaid.connect(store, profile=profile) as memory:
        ann = memory.user(user, space=space, thread=thread, chat=chat, session=session)
        said = await ann.history(_HISTORY_LINES)
        # The arrow keys bring back earlier messages, where the terminal has a line editor.
        with suppress(ImportError):  # not on every platform
            import readline  # noqa: PLC0415

            for message in said:
                if message.role == "user" and "\n" not in message.text:
                    readline.add_history(message.text)
        for message in said[-_SHOWN:]:
            say(message_line(message))
        say(Text("/help lists the commands, /quit ends the chat.", style="dim"))
        assistant = Assistant(memory, system=system)
        while (text := await anyio.to_thread.run_sync(_read, abandon_on_cancel=True)) is not None:
            if text.strip() in {"/quit", "/exit"}:
                break
            if text.strip():
                try:
                    await _answer(assistant, ann, text)
                except InvalidInput as error:
                    # A line that cannot be stored does not end the chat.
                    complain(str(error))


async def _answer(assistant: Assistant, user: aforesaid.UserMemory, text: str) -> None:
    answer = await assistant.command(user, text)
    if answer is not None:
        say(harmless(answer.text))
        if answer.file is not None:
            say(f"wrote {harmless(str(await anyio.to_thread.run_sync(_save, answer.file)))}")
        if answer.buttons:
            say(Text("  ".join(f"[{button.word}] {button.label}" for button in answer.buttons), style="cyan"))
        return
    out = console()
    async for piece in assistant.reply(user, text):
        out.print(harmless(piece), end="")
        out.file.flush()
    out.print()


def _save(file: File) -> Path:
    """Write a file to the current folder, under a name that is free; return its path."""
    wanted, number = Path(file.name), 1
    path = Path.cwd() / wanted.name
    while path.exists():
        number += 1
        path = path.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
    try:
        # Readable by its owner only, because it contains messages.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(file.content)
    except OSError as error:
        raise InvalidInput(f"the file {path} could not be written: {error.strerror}") from None
    return path


def _read() -> str | None:
    """Read a line; None at the end of the input."""
    if sys.stdin.isatty():
        try:
            return input("> ")
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
