"""`recollect mcp`: the memory for one agent, over standard input and output."""

from __future__ import annotations

from typing import Annotated, Final

import anyio
import typer

import recollect
from recollect.cli.logs import write_log
from recollect.cli.options import ME, Space, Store, User
from recollect.domain.scope import DEFAULT_SPACE
from recollect.errors import InvalidInput
from recollect.settings import load_settings

_INSTALL: Final = "MCP is not installed; install it with: pip install 'recollect[mcp]'"


def mcp(
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    everybody: Annotated[
        bool, typer.Option("--everybody", help="Let the agent name the user; --user is left out of account.")
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Let the agent change nothing.")] = False,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="A built-in profile, or the path of your own.")
    ] = None,
) -> None:
    """Serve the memory to an agent over MCP, on standard input and output. Agents start this themselves.

    Example, for the configuration of an agent:

        {"command": "recollect", "args": ["mcp", "--user", "ann"]}
    """
    try:
        import mcp as installed  # noqa: F401, PLC0415
    except ImportError as error:
        raise InvalidInput(f"{_INSTALL} (missing: {error.name})") from None
    write_log("warning")
    anyio.run(_serve, store, space, None if everybody else user, read_only, profile)


async def _serve(store: str | None, space: str, user: str | None, read_only: bool, profile: str | None) -> None:
    from recollect.server.auth import Credential  # noqa: PLC0415 - an extra
    from recollect.server.mcp import build  # noqa: PLC0415

    who = Credential("mcp", "an agent", "reader" if read_only else "app", space, user)
    settings = load_settings()
    async with recollect.connect(store, profile=profile, settings=settings) as memory:
        await build(memory, lambda _: who).run_stdio_async()
