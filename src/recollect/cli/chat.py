"""`recollect chat`: a talk with a memory, in the terminal."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import anyio
import typer
from rich.text import Text

import recollect
from recollect.assistant import Assistant
from recollect.assistant.brain import SYSTEM
from recollect.cli.options import ME, Session, Space, Store, Thread, User
from recollect.cli.show import complain, console, harmless, message_line, say
from recollect.domain.scope import DEFAULT_SPACE
from recollect.errors import InvalidInput

_SHOWN = 6


def chat(
    store: Store = None,
    user: User = ME,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="A built-in profile, or the path of your own.")
    ] = None,
    system: Annotated[str, typer.Option("--system", help="What the model is told first.")] = SYSTEM,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    session: Session = None,
) -> None:
    """Talk with a memory. Ends with /quit, or Ctrl+D.

    /help lists the commands. Without a model nobody answers, but everything is stored, found and summarised. Example:

        recollect chat --user ann
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    anyio.run(_talk, store, profile, system, (user, space, thread, session))


async def _talk(
    store: str | None, profile: str | None, system: str, place: tuple[str, str, str | None, str | None]
) -> None:
    user, space, thread, session = place
    async with recollect.connect(store, profile=profile) as memory:
        ann = memory.user(user, space=space, thread=thread, session=session)
        for message in await ann.history(_SHOWN):
            say(message_line(message))
        say(Text("/help lists the commands, /quit ends.", style="dim"))
        assistant = Assistant(memory, system=system)
        while (text := await anyio.to_thread.run_sync(_read, abandon_on_cancel=True)) is not None:
            if text.strip() in {"/quit", "/exit"}:
                break
            if text.strip():
                try:
                    await _answer(assistant, ann, text)
                except InvalidInput as error:
                    # One line that cannot be stored does not end the talk.
                    complain(str(error))


async def _answer(assistant: Assistant, user: recollect.UserMemory, text: str) -> None:
    answer = await assistant.command(user, text)
    if answer is not None:
        say(harmless(answer.text))
        if answer.buttons:
            say(Text("  ".join(f"[{button.word}] {button.label}" for button in answer.buttons), style="cyan"))
        return
    out = console()
    async for piece in assistant.reply(user, text):
        out.print(harmless(piece), end="")
        out.file.flush()
    out.print()


def _read() -> str | None:
    """Read a line; None at the end."""
    if sys.stdin.isatty():
        sys.stdout.write("> ")
        sys.stdout.flush()
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
