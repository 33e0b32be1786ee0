"""`aforesaid chat`: a conversation with memory, in the terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import anyio
import typer
from rich.text import Text

import aforesaid
from aforesaid.assistant import Assistant, File
from aforesaid.assistant.brain import SYSTEM
from aforesaid.cli.options import ME, Chat, Profile, Session, Space, Store, Thread, User, announce_new_folder
from aforesaid.cli.output import complain, console, harmless, message_line, say
from aforesaid.domain.message import Message
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput

_SHOWN = 6
"""Number of earlier messages printed at the start."""
_HISTORY_LINES = 200
"""Number of earlier messages that the arrow keys bring back."""


def chat(
    store: Store = None,
    user: User = ME,
    profile: Profile = None,
    system: Annotated[
        str, typer.Option("--system", help="The system prompt. Example: --system 'You are Rex.'")
    ] = SYSTEM,
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
        _recall_lines(said)
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
    """Answer a line."""
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


def _recall_lines(said: Sequence[Message]) -> None:
    """Fill the line editor's history with the user's earlier messages, where the terminal has one."""
    try:
        import readline  # noqa: PLC0415 - not on every platform
    except ImportError:
        return
    for message in said:
        if message.role == "user" and "\n" not in message.text:
            readline.add_history(message.text)


def _read() -> str | None:
    """Read a line; None at the end of the input."""
    if sys.stdin.isatty():
        try:
            return input("> ")
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
