"""Which file has the keys of a store."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from aforesaid.errors import InvalidInput
from aforesaid.server.auth.keys import Keys
from aforesaid.settings import Settings
from aforesaid.settings.config_file import usual_place
from aforesaid.store import sqlite_path
from aforesaid.store.locations import postgres_dsn

_USER_INFO: Final = re.compile(r"([^@/]*)@")
_PORT: Final = re.compile(r":(\d*)$")
_SEARCH_PATH: Final = re.compile(r"search_path\s*=\s*((?:\\.|[^\s\\])*)")
_DEFAULT_PORT: Final = "5432"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_VARIABLES: Final = ("host", "hostaddr", "port", "user", "service", "options")
"""Parameters of libpq whose default is in the environment variable PG plus their name."""


def keys_path(settings: Settings, location: str | os.PathLike[str] | None) -> Path | None:
    """Return where the keys for a store are kept: where the settings say, or beside it. None for a store in memory.

    A database has a file of its own in the folder of the user's configuration.
    """
    if settings.server.keys is not None:
        return Path(settings.server.keys).expanduser()
    where = settings.store if location is None else os.fspath(location)
    if (dsn := postgres_dsn(where)) is not None:
        digest = blake2b("\n".join(database_of(dsn, os.environ)).encode(), digest_size=6).hexdigest()
        return _folder() / f"database-{digest}.keys.json"
    path = sqlite_path(where)
    return None if path is None else path.expanduser().with_name(f"{path.name}.keys.json")


def check_shared_keys(settings: Settings, location: str | os.PathLike[str] | None) -> None:
    """Raise InvalidInput if a database has no key file yet, and older versions left one for all databases.

    To read that file would let its keys into every database. To ignore it would lock out all clients without a word.
    """
    path, shared = keys_path(settings, location), shared_keys(settings, location)
    if path is None or shared is None or path.exists() or not Keys(shared).all():
        return
    away = shared.with_name("keys.json.old")
    raise InvalidInput(
        f"the keys in {shared} opened every PostgreSQL database; now each database has a key file of its own. If these "
        f"keys are for this database, run: {copy_command(shared, path)}. When each database has the keys that are "
        f"meant for it, run: {_command('move' if sys.platform == 'win32' else 'mv', shared, away)}"
    )


def shared_keys(settings: Settings, location: str | os.PathLike[str] | None) -> Path | None:
    """Return the file that older versions had for all databases; None for stores that it was not for."""
    where = settings.store if location is None else os.fspath(location)
    if settings.server.keys is not None or postgres_dsn(where) is None:
        return None
    return _folder() / "keys.json"


def copy_command(source: Path, target: Path) -> str:
    """Return the command that copies a file, for a person to run."""
    return _command("copy" if sys.platform == "win32" else "cp", source, target)


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


def _folder() -> Path:
    return usual_place(os.environ).parent


def _command(name: str, source: Path, target: Path) -> str:
    return f"{name} {shlex.quote(str(source))} {shlex.quote(str(target))}"
