"""Options, output and checks that several commands share."""

from __future__ import annotations

import inspect
import json
import logging
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_type_hints

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from typer import Option
from typer.models import ArgumentInfo

import aforesaid
from aforesaid.domain import checks
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.domain.report import User
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.settings import load_settings
from aforesaid.store import Progress as ProgressCall
from aforesaid.store import locate

if TYPE_CHECKING:
    from aforesaid import SyncMemory, SyncUserMemory


_ALLOWED_CONTROLS: Final = "\n\t"


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The reader closed the pipe, as `head` does: not a failure.
        sys.stdout = None
        raise SystemExit(0)


def console(*, stderr: bool = False) -> Console:
    """Return a console on the current standard output or error. Text is never interpreted as markup."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(*parts: RenderableType) -> None:
    console().print(*parts, sep="")


def draw(what: RenderableType) -> None:
    """Print something that wraps itself to the terminal's width."""
    console().print(what, soft_wrap=False)


def inform(text: str) -> None:
    """Print a note to standard error, so that scripts do not read it as output."""
    console(stderr=True).print(harmless(text))


def complain(text: str) -> None:
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


def show(value: object, lines: Iterable[RenderableType], *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        for line in lines:
            say(line)


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:  # noqa: ANN401 - takes apart whatever it is given
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
    from rich.progress import (  # noqa: PLC0415 - few commands have one
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

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


T = TypeVar("T")

Store = Annotated[
    str | None,
    Option(
        "--store",
        "-s",
        metavar="LOCATION",
        envvar="AFORESAID_STORE",
        help="Where the memory is stored: a path, sqlite:PATH, json:PATH, files:PATH, postgresql://… or :memory:. "
        "Default: `store` in aforesaid.toml, or memory.db in the platform's data folder. Example: --store memory.db",
    ),
]
UserOption = Annotated[
    str, Option("--user", "-u", envvar="AFORESAID_USER", help="The user's id. Example: --user ann", show_default=True)
]
Space = Annotated[str, Option(help="The space (tenant) the user belongs to. Example: --space my-guild")]
Thread = Annotated[
    str | None,
    Option(
        "--thread", "-t", help="A channel that users share. Default: the user's direct chat. Example: --thread general"
    ),
]
Chat = Annotated[
    str | None,
    Option(help="One of the user's private chats, by its id. Default: the user's direct chat. Example: --chat c1"),
]
Session = Annotated[str | None, Option(help="A session id. Default: the session is found by time. Example: s-3")]
Within = Annotated[str, Option(help="What to read: the user's messages, the thread's, or the session's.")]
Profile = Annotated[
    str | None,
    Option(
        "--profile",
        "-p",
        help="A built-in profile, or the path of a profile file. Default: `profile` in aforesaid.toml, or default. "
        "Example: --profile archive",
    ),
]
Archived = Annotated[bool, Option(help="Include archived messages, which a summary replaces in contexts.")]
Yes = Annotated[bool, Option("--yes", help="Do not ask for confirmation. Default: ask.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of text, for scripts.")]

ME = "me"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Options of a command that prints something of a store."""

    store: Store = None
    as_json: AsJson = False

    @property
    def location(self) -> str | None:
        return load_settings().store if self.store is None else self.store

    def read(self, **options: Any) -> SyncMemory:  # noqa: ANN401 - as `aforesaid.open` takes them
        """Open a store that exists."""
        must_exist(self.store)
        return aforesaid.open(self.store, **options)

    def write(self, **options: Any) -> SyncMemory:  # noqa: ANN401 - as `aforesaid.open` takes them
        """Open a store, and create it if it does not exist."""
        announce_new_folder(self.store)
        return aforesaid.open(self.store, **options)

    def progress(self, label: str) -> AbstractContextManager[ProgressCall]:
        return progress_bar(label, hidden=self.as_json)

    def show(self, value: object, lines: Iterable[RenderableType]) -> None:
        show(value, lines, as_json=self.as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person(Stored):
    user: UserOption = ME
    space: Space = DEFAULT_SPACE

    def of(self, memory: SyncMemory, **options: Any) -> SyncUserMemory:  # noqa: ANN401 - as `memory.user` takes them
        """Return the user of a memory, in the thread, chat and session that the command has options for."""
        place = {name: getattr(self, name) for name in ("thread", "chat", "session") if hasattr(self, name)}
        return memory.user(self.user, space=self.space, **place, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonInChat(Person):
    thread: Thread = None
    chat: Chat = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonInSession(PersonInChat):
    session: Session = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Options that select messages."""

    role: Annotated[
        str | None, Option(help="Only messages of this role: user, assistant, system or tool. Default: all.")
    ] = None
    author: Annotated[
        str | None, Option(help="Only messages that this id wrote. Default: all. Example: --author bob")
    ] = None
    since: Annotated[
        str | None, Option(help="Only messages said at this time or later. Default: all. Example: 2026-03-01")
    ] = None
    until: Annotated[
        str | None, Option(help="Only messages said before this time. Default: all. Example: 2026-04-01")
    ] = None
    metadata: Annotated[
        str | None,
        Option(
            metavar="JSON",
            help="Only messages whose metadata has these keys with equal values. Default: all. "
            """Example: --metadata '{"topic": "home"}'""",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Return the filters as methods of a user take them. Raises InvalidInput for what is no time or no JSON."""
        return {
            "role": self.role,
            "author": self.author,
            "since": moment(self.since),
            "until": moment(self.until),
            "metadata": json_object(self.metadata, "--metadata"),
        }


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is one of the classes above by its options.

    The help lists arguments, --store and --user first, --json last, and the others as the signature does.
    """
    own: list[inspect.Parameter] = []
    groups: dict[str, type[Stored | Filters]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if not isinstance(kind := parameter.annotation, type) or not issubclass(kind, Stored | Filters):
            own.append(parameter)
            continue
        groups[parameter.name] = kind
        options = get_type_hints(kind, include_extras=True)
        own += [
            parameter.replace(name=each.name, annotation=options[each.name], default=each.default)
            for each in fields(kind)
        ]

    @wraps(function)
    def run(**given: Any) -> None:  # noqa: ANN401 - as typer parses them
        for name, kind in groups.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        function(**given)

    def rank(parameter: inspect.Parameter) -> int:
        if isinstance(parameter.annotation.__metadata__[0], ArgumentInfo):
            return 0
        return {"store": 1, "user": 2, "as_json": 4}.get(parameter.name, 3)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in sorted(own, key=rank)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}  # typer reads the signature, where names are resolved already
    return run


def must_exist(store: str | None, advice: str = "check --store and AFORESAID_STORE, or add a message first") -> None:
    """Refuse to read a store that does not exist: opening it would create it, and the name is probably mistyped."""
    path = store_path(store)
    if path is not None and not path.exists():
        raise InvalidInput(f"there is no store at {path}, and this command does not create one; {advice}")


def note_pending_work(memory: SyncMemory) -> None:
    """Say on standard error that messages wait for background work. A command that only reads does not do it."""
    health = memory.health()
    learned = dict(health.component("memories").facts).get("waiting", "0 users") == "0 users"
    if health.component("embedder").waiting or not learned:
        inform("new messages wait for background work (search by meaning, memories, summaries); run: aforesaid upkeep")


def announce_new_folder(store: str | None) -> None:
    """Say on standard error that a command which writes will create the folder of its store."""
    path = store_path(store)
    if path is not None and not path.parent.exists():
        inform(f"creating the folder {path.parent} for a new store")


def store_path(store: str | None) -> Path | None:
    """Return the file or folder of a store; None when it has none (PostgreSQL, :memory:)."""
    path = locate(Stored(store=store).location).path
    return None if path is None else path.expanduser()


def by_id(call: Callable[[str], T], given: str) -> T:
    """Call a function with the id of a message; where there is none with the id 12, with `#12`. Raises NotFound."""
    try:
        return call(given)
    except NotFound as error:
        if given.isascii() and given.isdecimal():
            with suppress(NotFound):
                return call(f"#{given}")
        raise NotFound(f"{error}; `aforesaid history` shows the ids. In a shell, write '#2' in quotes, or 2") from None


def json_object(text: str | None, option: str) -> dict[str, Any] | None:
    found = None if text is None else checks.json_object(text)
    if text is not None and found is None:
        raise InvalidInput(f"""{option} must be a JSON object, such as '{{"topic": "home"}}'""")
    return found


def moment(text: str | None) -> datetime | None:
    """Parse an ISO 8601 time. A time without a zone is in this machine's zone."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{quoted(text)} is not a time; write it like 2026-03-01T09:30 or 2026-03-01T09:30+02:00"
        ) from None
    try:
        return read.astimezone() if read.tzinfo is None else read
    except (OverflowError, ValueError):
        raise InvalidInput(f"the time {quoted(text)} is outside the calendar (years 1 to 9999)") from None


def data_of(memory: SyncMemory, user: str) -> dict[str, User]:
    """Return the spaces in which a user has data, with the counts of each."""
    known = memory.known_ids.spelled(user)
    return {each.space: each for each in memory.users() if each.id == known}


def unknown_user(memory: SyncMemory, user: str, space: str) -> str | None:
    """Return what to say about a user who has no data in a space; None for one who has."""
    found = data_of(memory, user)
    if memory.known_ids.spelled(space) in found:
        return None
    where = "" if space == DEFAULT_SPACE else f" in the space {quoted(space)}"
    told = f"there is no user {quoted(user)}{where}"
    if found:
        spaces = f"the {'space' if len(found) == 1 else 'spaces'} {', '.join(found)}"
        return f"{told}; this user has data in {spaces}: pass --space"
    return f"{told}; run: aforesaid users"


def must_know(memory: SyncMemory, user: str, space: str) -> None:
    """Raise NotFound for a user who has no data in a space."""
    if (told := unknown_user(memory, user, space)) is not None:
        raise NotFound(told)


LogLevel = Annotated[str, Option("--log-level", help="The least severe level to print: debug, info, warning or error.")]
_LEVELS: Final = ("debug", "info", "warning", "error")


def write_log(level: str) -> None:
    """Write log records of this level and above to standard error, with secrets removed."""
    from aforesaid.models.client import SecretFilter  # noqa: PLC0415 - only long-running commands write a log

    if level not in _LEVELS:
        raise InvalidInput(f"unknown log level {quoted(level)}; use one of {', '.join(_LEVELS)}")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(SecretFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
