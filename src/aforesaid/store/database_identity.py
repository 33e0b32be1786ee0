"""What tells one database, or store of another package, from another, for files that belong to one of them."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final
from urllib.parse import unquote

_POSTGRES: Final = ("postgresql:", "postgres:")
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
    is_database = address.startswith(_POSTGRES)
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
