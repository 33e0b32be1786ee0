"""Output for people and for scripts."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.store import Progress as ProgressCall

_ALLOWED_CONTROLS: Final = "\n\t"


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The reader closed the pipe, as `head` does: not a failure.
        sys.stdout = None
        raise SystemExit(0)


def console(*, stderr: bool = False) -> Console:
    """Return a console on the current standard output or error. Text is never interpreted as markup."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(*parts: str | Text | Table) -> None:
    """Print a line to standard output."""
    console().print(*parts, sep="")


def draw(what: RenderableType) -> None:
    """Print something that wraps itself to the terminal's width."""
    console().print(what, soft_wrap=False)


def inform(text: str) -> None:
    """Print a note to standard error, so that scripts do not read it as output."""
    console(stderr=True).print(harmless(text))


def complain(text: str) -> None:
    """Print an error to standard error."""
    console(stderr=True).print(Text.assemble(("aforesaid: ", "bold red"), harmless(text)))


def harmless(text: str) -> str:
    """Return the text with control characters made visible, so that they cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character in _ALLOWED_CONTROLS or unicodedata.category(character) not in {"Cc", "Cf"}
        else f"<U+{ord(character):04X}>"
        for character in text
    )


def local_time(at: datetime) -> str:
    """Format a time in this machine's time zone."""
    try:
        return at.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):  # the first and the last day of the calendar
        return at.strftime("%Y-%m-%d %H:%M")


def message_line(message: Message, *, id_width: int = 0) -> Text:
    """Format a message as a line: time, author, text; with a width, its id comes first."""
    shown_id = f"{harmless(message.id):<{id_width}}  " if id_width else ""
    when = local_time(message.at)
    who = harmless(message.name or message.author)
    style = "cyan" if message.role == "user" else "green"
    text = harmless(message.shown_text), "" if message.active else "dim"
    return Text.assemble((shown_id, "magenta"), (f"{when}  ", "dim"), (who, style), ": ", text)


def hit_line(hit: Hit, *, with_id: bool = False) -> Text:
    """Format a search hit as a line; the id of a message comes first if wanted."""
    if hit.message is not None:
        line = message_line(hit.message, id_width=1 if with_id and hit.kind == "message" else 0)
        return line if hit.kind == "message" else Text.assemble((f"session {harmless(hit.id)}  ", "magenta"), line)
    return Text.assemble(
        (f"{local_time(hit.at)}  ", "dim"), (f"{hit.kind} {hit.id}", "magenta"), ": ", harmless(hit.text)
    )


def explained(hit: Hit) -> Table:
    """Return a table of the reasons why something was found, with what each added, largest first."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(justify="right", style="dim")
    table.add_column(style="dim")
    for reason, value in hit.reasons():
        table.add_row(f"        {value:+.2f}", reason)
    if hit.terms:
        table.add_row("words", harmless(", ".join(hit.terms)))
    if hit.similarity is not None:
        table.add_row("similarity", f"{hit.similarity:.2f}")
    return table


def print_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:  # noqa: ANN401 - takes apart whatever it is given
    """Convert a value to types that JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


@contextmanager
def progress_bar(label: str, *, hidden: bool) -> Iterator[ProgressCall]:
    """Show a progress bar on standard error, if that is a terminal."""
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
        disable=hidden or not sys.stderr.isatty(),
    )
    with bars:
        task = bars.add_task(label, total=None)

        def update(what: str, done: int, total: int) -> None:
            bars.update(task, description=f"{label}: {what}", completed=done, total=total)

        yield update
