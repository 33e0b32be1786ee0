"""`aforesaid serve`: serve the memory over HTTP."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Final

import typer

import aforesaid
from aforesaid.cli.log_output import LogLevel, write_log
from aforesaid.cli.options import Profile, Store, announce_new_folder
from aforesaid.cli.output import say
from aforesaid.errors import InvalidInput
from aforesaid.extras import how_to_install
from aforesaid.models.embed import embedder_of_a_server
from aforesaid.settings import Settings, load_settings

_INSTALL: Final = f"the server is not installed; {how_to_install('server')}"


def serve(
    store: Store = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on. Default: 127.0.0.1 (this machine only).")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="The port; 0 picks a free one. Default: 5002.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            help="A Host header to accept besides loopback names; repeatable. Example: --allow-host memory.example.org",
        ),
    ] = None,
    profile: Profile = None,
    auth: Annotated[
        bool, typer.Option("--auth/--no-auth", help="Require a key. --no-auth works on loopback only.")
    ] = True,
    log_level: LogLevel = "warning",
) -> None:
    """Serve the memory over HTTP: control panel, REST API, OpenAI-compatible proxy, MCP. Stop it with Ctrl+C.

    Prints a link that opens the control panel. Programs need a key: `aforesaid key add`. Example:

        aforesaid serve --port 5002
    """
    needs_server()
    from aforesaid.server import ServerOptions  # noqa: PLC0415 - an extra
    from aforesaid.server.auth import check_shared_keys, keys_path  # noqa: PLC0415
    from aforesaid.server.serve import run  # noqa: PLC0415

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
    run(_serve, store, profile, options, settings)


async def _serve(store: str | None, profile: str | None, options: object, settings: Settings) -> None:
    from aforesaid.server import ServerOptions  # noqa: PLC0415
    from aforesaid.server.serve import serve as until_stopped  # noqa: PLC0415

    assert isinstance(options, ServerOptions)  # noqa: S101 - the class can be imported only with the extra installed
    embedder = embedder_of_a_server(settings)
    async with aforesaid.connect(store, profile=profile, settings=settings, embedder=embedder) as memory:
        await until_stopped(memory, options, _print_link)
    say("stopped; every acknowledged message is stored")


def _print_link(link: str) -> None:
    # No markup or wrapping, so that the link can be clicked or copied.
    sys.stdout.write(f"Aforesaid is ready: {link}\nStop it with Ctrl+C.\n")
    sys.stdout.flush()


def needs_server() -> None:
    """Say how to install the server when it is missing."""
    try:
        import fastapi  # noqa: F401, PLC0415
        import jinja2  # noqa: F401, PLC0415
        import prometheus_client  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError as error:
        raise InvalidInput(f"{_INSTALL} (missing: {error.name})") from None
