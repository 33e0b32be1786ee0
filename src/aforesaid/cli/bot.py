"""`aforesaid bot`: run a bot with memory on a chat platform."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import typer

import aforesaid
from aforesaid.assistant import SYSTEM, Assistant
from aforesaid.cli.log_output import LogLevel, write_log
from aforesaid.cli.options import Profile, Store, announce_new_folder
from aforesaid.cli.output import say
from aforesaid.errors import InvalidInput
from aforesaid.extras import how_to_install
from aforesaid.settings import Settings, load_settings

if TYPE_CHECKING:
    from aforesaid.bots import Platform

commands = typer.Typer(no_args_is_help=True, help="Run a bot with memory on a chat platform. Stop it with Ctrl+C.")


@commands.command()
def telegram(store: Store = None, profile: Profile = None, log_level: LogLevel = "warning") -> None:
    """Run a bot on Telegram. The token comes from bots.telegram.token or AFORESAID_BOTS__TELEGRAM__TOKEN.

    Exits with 1 when Telegram refuses the token. Example:

        AFORESAID_BOTS__TELEGRAM__TOKEN=… aforesaid bot telegram
    """

    def make(settings: Settings) -> Platform:
        with needs("telegram", "aiogram"):
            from aforesaid.bots.telegram import Telegram  # noqa: PLC0415 - an extra

        return Telegram(settings.bots.telegram, called=called(settings))

    run_bot(make, store, profile, log_level)


@commands.command()
def mumble(store: Store = None, profile: Profile = None, log_level: LogLevel = "warning") -> None:
    """Run a bot on Mumble, in text and voice. The server comes from bots.mumble.host or AFORESAID_BOTS__MUMBLE__HOST.

    Exits with 1 when the server refuses the bot. Example:

        AFORESAID_BOTS__MUMBLE__HOST=localhost aforesaid bot mumble
    """

    def make(settings: Settings) -> Platform:
        from aforesaid.bots.mumble import Mumble  # noqa: PLC0415 - only this command needs it
        from aforesaid.models.speech import open_speech  # noqa: PLC0415

        speaks = settings.speech.hear or settings.speech.speak
        return Mumble(settings.bots.mumble, open_speech(settings) if speaks else None, called=called(settings))

    run_bot(make, store, profile, log_level)


@commands.command()
def discord(store: Store = None, profile: Profile = None, log_level: LogLevel = "warning") -> None:
    """Run a bot on Discord. The token comes from bots.discord.token or AFORESAID_BOTS__DISCORD__TOKEN.

    Exits with 1 when Discord refuses the token. Example:

        AFORESAID_BOTS__DISCORD__TOKEN=… aforesaid bot discord --profile community
    """

    def make(settings: Settings) -> Platform:
        with needs("discord", "discord"):
            from aforesaid.bots.discord import Discord  # noqa: PLC0415 - an extra

        return Discord(settings.bots.discord, called=called(settings))

    run_bot(make, store, profile, log_level)


def run_bot(make: Callable[[Settings], Platform], store: str | None, profile: str | None, log_level: str) -> None:
    """Run a platform's bot until the process receives SIGINT or SIGTERM."""
    write_log(log_level)
    announce_new_folder(store)
    anyio.run(_run, make, store, profile)


def called(settings: Settings) -> tuple[str, ...]:
    """Return the names that people call the bot by, other than its account's name."""
    return () if settings.bots.name is None else (settings.bots.name,)


async def _run(make: Callable[[Settings], Platform], store: str | None, profile: str | None) -> None:
    from aforesaid.bots import BotSession, run  # noqa: PLC0415 - only bots need it

    settings = load_settings()
    platform = make(settings)
    try:
        async with aforesaid.connect(store, profile=profile, settings=settings) as memory:
            session = BotSession(memory, platform, assistant=Assistant(memory, system=settings.bots.system or SYSTEM))
            if memory.models is None or not memory.models.has("chat"):
                say("no model is configured: the bot stores, finds and reminds, but does not write replies of its own")
            await run(memory, platform, session=session, ready=_print_ready)
    finally:
        await platform.close()
    say("stopped; every message is stored")


def _print_ready(name: str) -> None:
    sys.stdout.write(f"{name} is ready. Stop it with Ctrl+C.\n")
    sys.stdout.flush()


@contextmanager
def needs(extra: str, package: str) -> Iterator[None]:
    """Say how to install a platform's library when it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {package, "aiohttp"}:
            raise
        raise InvalidInput(f"the {extra} bot needs {package}; {how_to_install(extra)}") from None
