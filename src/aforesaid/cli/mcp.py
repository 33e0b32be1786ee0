"""`aforesaid mcp`: serve one agent over MCP, on standard input and output."""

from __future__ import annotations

from typing import Annotated, Final

import anyio
import typer

import aforesaid
from aforesaid.cli.log_output import write_log
from aforesaid.cli.options import ME, Profile, Space, Store, User, announce_new_folder, must_exist
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.extras import how_to_install
from aforesaid.settings import load_settings

_INSTALL: Final = f"MCP is not installed; {how_to_install('mcp')}"


def mcp(
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    everybody: Annotated[
        bool, typer.Option("--everybody", help="Let the agent choose the user in every call; --user is ignored.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Give the agent no tools that change anything.")
    ] = False,
    profile: Profile = None,
) -> None:
    """Serve the memory to an agent over MCP, on standard input and output. Agents start this command themselves.

    Example, for an agent's configuration file:

        {"command": "aforesaid", "args": ["mcp", "--user", "ann"]}
    """
    try:
        import mcp as installed  # noqa: F401, PLC0415
    except ImportError as error:
        raise InvalidInput(f"{_INSTALL} (missing: {error.name})") from None
    write_log("warning")
    if read_only:
        must_exist(store)
    else:
        announce_new_folder(store)
    anyio.run(_serve, store, space, None if everybody else user, read_only, profile)


async def _serve(store: str | None, space: str, user: str | None, read_only: bool, profile: str | None) -> None:
    from aforesaid.server.auth import Credential  # noqa: PLC0415 - an extra
    from aforesaid.server.mcp import build  # noqa: PLC0415

    who = Credential("mcp", "an agent", "reader" if read_only else "app", space, user)
    settings = load_settings()
    async with aforesaid.connect(store, profile=profile, settings=settings) as memory:
        await build(memory, lambda _: who, settings.server.mcp_tokens).run_stdio_async()
