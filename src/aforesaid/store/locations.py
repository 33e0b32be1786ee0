"""From a location, as people write it, to an open store; stores of other packages."""

from __future__ import annotations

import getpass
import inspect
import os
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, StoreRefused, quoted
from aforesaid.extras import re
from aforesaid.store.contract import Store
from aforesaid.store.unfinished import remove_abandoned

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from aforesaid.store.attachments import Attachments
    from aforesaid.store.contract import Salvage
    from aforesaid.store.readable import Layout


_SCHEME: Final = re.compile(r"([a-z][a-z0-9+]+):", re.IGNORECASE)
_POSTGRES: Final = ("postgresql://", "postgres://")
MEMORY: Final = ":memory:"
NO_FILES: Final = "only a store in files can be repaired"

Kind: TypeAlias = Literal["sqlite", "json", "files", "memory", "postgres", "outside"]
_ON_DISK: Final[tuple[Kind, ...]] = ("sqlite", "json", "files")


def default_location() -> str | Path:
    """Return where memory is kept when nobody says: AFORESAID_STORE, or the platform's folder for application data."""
    return os.environ.get("AFORESAID_STORE") or data_folder() / "memory.db"


def data_folder() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "aforesaid"


class Location(NamedTuple):
    """A kind of store, and where it is."""

    kind: Kind
    path: Path | None
    """None for a store without files of ours: in memory, in a database, or of another package."""
    address: str = ""
    """Of a database, or of a store of another package."""


def locate(location: str | os.PathLike[str] | None) -> Location:
    """Read a location as people write it.

    A path or `sqlite:PATH` is a SQLite file, `json:PATH` one JSON file, `files:PATH` a folder of account folders,
    `:memory:` a store that is forgotten at the end. Other words before a colon name stores of other packages.
    """
    if location is None:
        location = default_location()
    if not isinstance(location, str | Path):
        raise InvalidInput(f"the location must be a path, a string or a store, not {type(location).__name__}")
    checks.storable(str(location), "the location")
    if isinstance(location, Path):
        return Location("sqlite", location)
    if not location:
        raise InvalidInput("the location is empty")
    if location.startswith(_POSTGRES):
        return Location("postgres", None, location)
    if location in (MEMORY, f"sqlite:{MEMORY}"):
        return Location("memory", None)
    for kind in _ON_DISK:
        if location.startswith(f"{kind}:"):
            path = location.removeprefix(f"{kind}:")
            if not path:
                raise InvalidInput(f"the location {quoted(location)} names no file; write {kind}:PATH")
            # sqlite:///abs/path as other tools write it
            return Location(kind, Path(path.removeprefix("//") if path.startswith("///") else path))
    scheme = _SCHEME.match(location)
    if scheme is None or Path(location).exists():
        return Location("sqlite", Path(location))

    others = outside_stores()
    if scheme[1] in others:
        return Location("outside", None, location)
    known = ", ".join(["sqlite:PATH", "json:PATH", "files:PATH", *(f"{name}:…" for name in others), "postgresql://…"])
    raise InvalidInput(
        f"unknown kind of location {quoted(scheme[0])} in {quoted(location)}; use a path, {known} or {MEMORY}"
    )


async def open_store(location: str | os.PathLike[str] | None) -> Store:
    """Open the store that a location names. Only the code of that kind of store is loaded."""
    kind, path, address = locate(location)
    if kind == "postgres":
        from aforesaid.store.postgres import PostgresStore  # noqa: PLC0415 - loaded only when asked for

        return await PostgresStore.open(address)
    if kind == "outside":
        name, _, rest = address.partition(":")
        return await open_outside(name, rest)
    if path is None:
        from aforesaid.store.sqlite import MemoryStore  # noqa: PLC0415 - loaded only when asked for

        return MemoryStore()
    opened: Store
    if kind == "sqlite":
        from aforesaid.store.sqlite import SqliteStore  # noqa: PLC0415

        opened = await SqliteStore.open(path)
    else:
        opened = await open_layout(Location(kind, path))
    place = path.expanduser().absolute()
    remove_abandoned(place.parent, place.name)
    return opened


async def open_layout(location: Location, first: int = 0) -> Store:
    """Open a store of files. In one that has no messages yet, they are numbered from after `first`."""
    from aforesaid.store.readable import ReadableStore  # noqa: PLC0415

    kind, path, _ = location
    if path is None:
        raise InvalidInput("files need a path")
    if os.environ.get("AFORESAID_KEY") or os.environ.get("AFORESAID_KEY_FILE"):
        raise StoreRefused(f"a key is configured, and {kind}: writes files that can be read without it; use SQLite")
    return await ReadableStore.open_files(_layout(kind, path), first=first)


def attachments_of(location: str | os.PathLike[str] | Store | None, folder: str | None = None) -> Attachments:
    """Return the attachments of a store: in `folder`, beside the store, or in memory like the store."""
    from aforesaid.store.attachments import Attachments, folder_of  # noqa: PLC0415 - only who stores messages needs it

    if os.environ.get("AFORESAID_KEY") or os.environ.get("AFORESAID_KEY_FILE"):
        return Attachments(None, refusal="a key is configured, and attachments would be files that are not encrypted")
    if folder is not None:
        return Attachments(checks.file_path(folder, "the folder of attachments").expanduser().absolute())
    found = Location("outside", None) if isinstance(location, Store) else locate(location)
    if found.kind in ("postgres", "outside"):
        where = "a database" if found.kind == "postgres" else "this store"
        refusal = f"there is no folder for attachments beside {where}; name one with the setting `attachments`"
        return Attachments(None, refusal=refusal)
    return Attachments(None if found.path is None else folder_of(found.path))


def restore_store(backup: Path, location: str | os.PathLike[str] | None, *, replace: bool) -> Path | None:
    """Put a backup in the place of a store. What was there is set aside; its new name is returned."""
    kind, path, _ = locate(location)
    if path is None:
        raise InvalidInput("only a store in files can be restored; name a file, or load an export with `import`")
    from aforesaid.store.attachments import copy_attachments, folder_of  # noqa: PLC0415

    if kind == "sqlite":
        from aforesaid.store.sqlite.backup import restore  # noqa: PLC0415

        aside = restore(backup, path, replace=replace)
    else:
        from aforesaid.store.readable import restore as restore_files  # noqa: PLC0415

        aside = restore_files(_layout(kind, backup), _layout(kind, path), replace=replace)
    copy_attachments(folder_of(backup), folder_of(path))
    return aside


def hides_damage(location: str | os.PathLike[str] | None) -> bool:
    """Tell whether opening a store would silently skip damage. No other process may use it."""
    kind, path, _ = locate(location)
    if path is None or kind != "sqlite":
        return False
    from aforesaid.store.sqlite.verify import log_is_broken  # noqa: PLC0415

    path = path.expanduser().absolute().resolve()
    return log_is_broken(path.with_name(path.name + "-wal"))


def salvage_store(location: str | os.PathLike[str] | None) -> Salvage:
    """Read whatever is whole in a store that nobody uses. It stays as it is."""
    kind, path, _ = locate(location)
    if path is None:
        raise InvalidInput(NO_FILES)
    if kind == "sqlite":
        from aforesaid.store.sqlite.salvaging import salvage  # noqa: PLC0415

        return salvage(path)
    from aforesaid.store.readable.restoring import salvage as salvage_files  # noqa: PLC0415

    return salvage_files(_layout(kind, path))


def _layout(kind: Kind, path: Path) -> Layout:
    from aforesaid.store.readable import AccountFolders, JsonFile  # noqa: PLC0415

    return JsonFile(path) if kind == "json" else AccountFolders(path)


_POSTGRES_SCHEMES: Final = ("postgresql:", "postgres:")
_USER_INFO: Final = re.compile(r"([^@/]*)@")
_PORT: Final = re.compile(r":(\d*)$")
_SEARCH_PATH: Final = re.compile(r"search_path\s*=\s*((?:\\.|[^\s\\])*)")
_DEFAULT_PORT: Final = "5432"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_VARIABLES: Final = ("host", "hostaddr", "port", "user", "service", "options")
"""Parameters of libpq whose default is in the environment variable PG plus their name."""


def file_name(address: str) -> str:
    """Return a file name that stands for a database or a store of another package.

    That of a database stays the same when the user or the password changes.
    """
    is_database = address.startswith(_POSTGRES_SCHEMES)
    parts = database_of(address, os.environ) if is_database else (address,)
    digest = blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()
    return f"{'database' if is_database else 'store'}-{digest}"


def database_of(dsn: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return what tells a database from others: its hosts with ports, its name, its service and its search path.

    User and password do not count, nor how the address is written. Names of the loopback interface are the same.
    """
    found = {name: env.get(f"PG{name.upper()}", "") for name in _VARIABLES} | _parts(dsn)
    user = found["user"] or _account()
    name = found.get("dbname") or env.get("PGDATABASE") or user
    hosts = (found["hostaddr"] or found["host"]).split(",")
    ports = found["port"].split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    # Several hosts are copies of the same database, whatever their order.
    places = sorted({f"{_host(host)}:{port or _DEFAULT_PORT}" for host, port in zip(hosts, ports, strict=False)})
    search_path = _SEARCH_PATH.findall(found["options"])
    return ",".join(places), name, found["service"], search_path[-1] if search_path else ""


def _parts(dsn: str) -> dict[str, str]:
    """Take the address of a database apart as libpq does, which reads the user up to the first @."""
    rest = dsn.partition("://")[2]
    parts = {}
    if info := _USER_INFO.match(rest):
        parts["user"] = unquote(info[1].partition(":")[0])
        rest = rest[info.end() :]
    rest, _, query = rest.partition("?")
    places, _, name = rest.partition("/")
    hosts = [_PORT.sub("", place) for place in places.split(",")]
    ports = [port[1] if (port := _PORT.search(place)) else "" for place in places.split(",")]
    parts |= {"host": unquote(",".join(hosts)), "port": ",".join(ports), "dbname": unquote(name)}
    for parameter in query.split("&"):
        key, _, value = parameter.partition("=")
        parts[unquote(key)] = unquote(value)
    return {key: value for key, value in parts.items() if value.strip(",")}


def _host(host: str) -> str:
    plain = host.strip("[]").lower() if not host.startswith("/") else host
    return "localhost" if plain in _LOOPBACK else plain


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        return ""


GROUP: Final = "aforesaid.stores"
"""The group of entry points in which packages register their stores."""


def outside_stores() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - few locations ask for it

    return {each.name: each for each in entry_points(group=GROUP)}


async def open_outside(name: str, rest: str) -> Store:
    """Open a registered store. It is called with what follows the colon of the location, and may be a coroutine.

    Raises StoreRefused if the package does not give a store.
    """
    entry = outside_stores()[name]
    try:
        opening = entry.load()
    except (ImportError, AttributeError) as error:
        raise StoreRefused(f"the store {quoted(name)} of {entry.value} cannot be loaded: {error}") from error
    made = opening(rest)
    store = await made if inspect.isawaitable(made) else made
    if not isinstance(store, Store):
        raise StoreRefused(f"{entry.value} gave {type(store).__name__} for {quoted(name)}, which is not a store")
    return store
