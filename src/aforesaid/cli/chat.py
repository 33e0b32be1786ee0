"""`aforesaid chat`: a talk with a memory, in the terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Annotated

import anyio
import typer
from rich.text import Text

import aforesaid
from aforesaid.assistant import Assistant
from aforesaid.assistant.brain import SYSTEM
from aforesaid.cli.context import budget_table
from aforesaid.cli.options import ME, Session, Space, Store, Thread, User
from aforesaid.cli.show import complain, console, harmless, message_line, say
from aforesaid.domain.message import Message
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput

_SHOWN = 6
_KEPT_LINES = 200
"""So many earlier messages can be brought back with the arrow keys."""


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

        aforesaid chat --user ann
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    anyio.run(_talk, store, profile, system, (user, space, thread, session))


async def _talk(
    store: str | None, profile: str | None, system: str, place: tuple[str, str, str | None, str | None]
) -> None:
    user, space, thread, session = place
    async with aforesaid.connect(store, profile=profile) as memory:
        ann = memory.user(user, space=space, thread=thread, session=session)
        said = await ann.history(_KEPT_LINES)
        _recall_lines(said)
        for message in said[-_SHOWN:]:
            say(message_line(message))
        say(Text("/help lists the commands, /quit ends.", style="dim"))
        alone = memory.models is None or not memory.models.has("chat")
        assistant = Assistant(memory, system=system)
        while (text := await anyio.to_thread.run_sync(_read, abandon_on_cancel=True)) is not None:
            if text.strip() in {"/quit", "/exit"}:
                break
            if text.strip():
                try:
                    await _answer(assistant, ann, text, system if alone else None)
                except InvalidInput as error:
                    # One line that cannot be stored does not end the talk.
                    complain(str(error))


async def _answer(assistant: Assistant, user: aforesaid.UserMemory, text: str, alone: str | None) -> None:
    """Answer a line. Where there is no model, show what it would have been sent, with `alone` for a system prompt."""
    answer = await assistant.command(user, text)
    if answer is not None:
        say(harmless(answer.text))
        if answer.buttons:
            say(Text("  ".join(f"[{button.word}] {button.label}" for button in answer.buttons), style="cyan"))
        return
    would_be_sent = None if alone is None else await user.context(text, system=alone)
    out = console()
    async for piece in assistant.reply(user, text):
        out.print(harmless(piece), end="")
        out.file.flush()
    out.print()
    if would_be_sent is not None:
        say(Text("A model would be sent this (/context shows each item):", style="dim"))
        say(budget_table(would_be_sent))


def _recall_lines(said: Sequence[Message]) -> None:
    """Let the arrow keys bring back what the user said before, where the terminal can edit lines."""
    try:
        import readline  # noqa: PLC0415 - not on every platform
    except ImportError:
        return
    for message in said:
        if message.role == "user" and "\n" not in message.text:
            readline.add_history(message.text)


def _read() -> str | None:
    """Read a line; None at the end."""
    if sys.stdin.isatty():
        try:
            return input("> ")
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
