"""API keys: stored in a file, checked, and their use recorded."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, quoted
from aforesaid.server.auth.credential import ROLES, Credential, Role
from aforesaid.settings import Secret, Settings
from aforesaid.settings.layers import usual_place
from aforesaid.store import sqlite_path
from aforesaid.store.locations import address_of, file_name, postgres_dsn

try:
    import fcntl
except ImportError:  # Windows: two processes that change keys in the same moment are not kept apart there
    fcntl = None  # type: ignore[assignment]

PREFIX: Final = "ak_"
_ID_BYTES: Final = 4
_KEY_BYTES: Final = 32
_MOST_REVOKED: Final = 1_000
"""Maximum revoked keys whose ids are kept, so that a log can say which of them is still in use. The oldest go first."""


@dataclass(frozen=True, slots=True)
class Key:
    """The stored data of a key, which does not contain the key itself."""

    id: str
    name: str
    role: Role
    hash: str
    space: str | None = None
    user: str | None = None
    created_at: str = ""
    expires_at: str | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= now

    @property
    def credential(self) -> Credential:
        return Credential(f"key:{self.id}", self.name, self.role, self.space, self.user)


class Keys:
    """The keys of a server. With a path, they are read again whenever the file has changed."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._keys: tuple[Key, ...] = ()
        self._revoked: dict[str, str] = {}
        self._seen: tuple[int, int, int] | None = None

    def all(self) -> tuple[Key, ...]:
        self._refresh()
        return self._keys

    def find(self, token: str) -> Key | None:
        """Return the key of a token, if there is one and its time is not over."""
        # Tokens are long and random, so a plain hash cannot be reversed, and comparing hashes reveals nothing.
        hashed = hash_of(token)
        return self._valid(key for key in self.all() if key.hash == hashed)

    def describe_refused(self, token: str) -> str | None:
        """Return the id of a token that is not valid any more, and why; None for one that never was, or long ago."""
        hashed = hash_of(token)
        expired = next((key.id for key in self.all() if key.hash == hashed), None)
        if expired is not None:
            return f"key:{expired} (expired)"
        revoked = self._revoked.get(hashed)
        return None if revoked is None else f"key:{revoked} (revoked)"

    def get(self, key_id: str) -> Key | None:
        """Return a key by its id, if its time is not over."""
        return self._valid(key for key in self.all() if key.id == key_id)

    def add(
        self,
        name: str,
        role: str,
        *,
        space: str | None = None,
        user: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[Key, Secret]:
        """Create a key. Return it with its token, which is not stored."""
        if role not in ROLES:
            raise InvalidInput(f"unknown role {quoted(role)}; use one of {', '.join(ROLES)}", "role")
        if user is not None and space is None:
            raise InvalidInput("a key for one user is for one space; name the space", "space")
        if expires_at is not None:
            checks.microseconds(expires_at, "the end of the key", "expires_at")
            if expires_at.replace(microsecond=0) <= datetime.now(UTC):
                raise InvalidInput(f"the key expired at {expires_at.isoformat()}; use a time to come", "expires_at")
        token = Secret(PREFIX + secrets.token_urlsafe(_KEY_BYTES))
        key = Key(
            id=secrets.token_hex(_ID_BYTES),
            name=checks.identifier(name, "the key's name", "name"),
            role=role,
            hash=hash_of(token),
            space=None if space is None else checks.identifier(space, "the space", "space"),
            user=None if user is None else checks.identifier(user, "the user id", "user"),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            expires_at=None if expires_at is None else expires_at.isoformat(timespec="seconds"),
        )
        with self._changing():
            self._write((*self._keys, key))
        return key, token

    def remove(self, key_id: str) -> Key:
        """Revoke a key. Every process refuses it from now on."""
        with self._changing():
            found = next((key for key in self._keys if key.id == key_id), None)
            if found is None:
                raise NotFound(f"there is no key {quoted(key_id)}")
            revoked = {**self._revoked, found.hash: found.id}
            self._revoked = dict(list(revoked.items())[-_MOST_REVOKED:])
            self._write(tuple(key for key in self._keys if key.id != key_id))
        return found

    def _valid(self, keys: Iterator[Key]) -> Key | None:
        found = next(keys, None)
        return None if found is None or found.expired(datetime.now(UTC)) else found

    def _refresh(self) -> None:
        if self._path is None:
            return
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._keys, self._revoked, self._seen = (), {}, None
            return
        seen = found.st_mtime_ns, found.st_size, found.st_ino
        if seen != self._seen:
            self._keys, self._revoked = _read(self._path)
            self._seen = seen

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Lock the file against changes by other processes."""
        if self._path is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._refresh()
            yield
        finally:
            os.close(lock)

    def _write(self, keys: tuple[Key, ...]) -> None:
        if self._path is not None:
            revoked = [{"id": key_id, "hash": hashed} for hashed, key_id in self._revoked.items()]
            content = {"keys": [asdict(key) for key in keys], **({"revoked": revoked} if revoked else {})}
            replace_file(self._path, json.dumps(content, ensure_ascii=False, indent=2))
            self._seen = None
        self._keys = keys


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _read(path: Path) -> tuple[tuple[Key, ...], dict[str, str]]:
    """Return the keys of a file, and the ids of revoked ones by their hash."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        keys = tuple(Key(**key) for key in content["keys"])
        revoked = {each["hash"]: each["id"] for each in content.get("revoked", ())}
        unknown = [key.id for key in keys if key.role not in ROLES or (key.space is None and key.user is not None)]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        # An unreadable file grants no access.
        raise StoreDamaged(f"the keys in {path} cannot be read ({error}); mend the file, or move it away") from error
    if unknown:
        raise StoreDamaged(f"the keys {', '.join(unknown)} in {path} are for nobody; mend the file, or move it away")
    return keys, revoked


def replace_file(path: Path, text: str) -> None:
    """Replace a file atomically, readable by its owner only."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def keys_path(settings: Settings, location: str | os.PathLike[str] | None) -> Path | None:
    """Return where the keys for a store are kept: where the settings say, or beside it. None for a store in memory.

    A database or a store of another package has a file of its own in the folder of the user's configuration.
    """
    if settings.server.keys is not None:
        return Path(settings.server.keys).expanduser()
    where = settings.store if location is None else os.fspath(location)
    if (address := address_of(where)) is not None:
        return _folder() / f"{file_name(address)}.keys.json"
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


def _folder() -> Path:
    return usual_place(os.environ).parent


def _command(name: str, source: Path, target: Path) -> str:
    return f"{name} {shlex.quote(str(source))} {shlex.quote(str(target))}"


_log: Final = logging.getLogger("aforesaid.server")
_WRITE_SECONDS: Final = 60.0
"""Seconds between writes: a key that is in use all the time costs one small file per minute."""


class KeyUse:
    """The time of the last request of each key, in a file next to that of the keys; without a path, in memory.

    A server that is killed loses at most the last minute. Several servers with the same keys keep the newest times.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = None if path is None else path.with_name(f"{path.name}.used")
        self._times: dict[str, datetime] = {}
        self._written = datetime.min.replace(tzinfo=UTC)
        self._changed = False

    def mark(self, key_id: str) -> None:
        self._times[key_id] = datetime.now(UTC)
        self._changed = True

    @property
    def is_due(self) -> bool:
        """Whether there is something to write and the last write is long enough ago."""
        return self._changed and (datetime.now(UTC) - self._written).total_seconds() >= _WRITE_SECONDS

    def all(self) -> dict[str, datetime]:
        self._merge()
        return dict(self._times)

    def write(self) -> None:
        """Write the times to the file. A failure is logged: requests do not depend on it."""
        if not self._changed:
            return
        self._written, self._changed = datetime.now(UTC), False
        if self._path is None:
            return
        self._merge()
        times = {key: at.isoformat(timespec="seconds") for key, at in self._times.items()}
        try:
            replace_file(self._path, json.dumps(times, indent=2))
        except OSError as error:
            _log.warning("the last use of keys could not be written to %s: %s", self._path, error)

    def _merge(self) -> None:
        """Take over newer times of other processes."""
        if self._path is None:
            return
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            times = {str(key): datetime.fromisoformat(at) for key, at in found.items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError) as error:
            # It says nothing about access, so it may be written anew.
            _log.warning("the last use of keys in %s cannot be read: %s", self._path, error)
            return
        for key, at in times.items():
            if key not in self._times or self._times[key] < at:
                self._times[key] = at


COOKIE: Final = "aforesaid_session"
SESSION_SECONDS: Final = 7 * 24 * 60 * 60
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Session:
    credential: Credential
    until: float


class Sessions:
    def __init__(self, keys: Keys, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def open(self, credential: Credential) -> Secret:
        """Sign a browser in. Return the value of its cookie."""
        now = self._clock()
        for name in [name for name, session in self._sessions.items() if session.until <= now]:
            del self._sessions[name]
        while len(self._sessions) >= _MOST:
            del self._sessions[next(iter(self._sessions))]
        cookie = Secret(secrets.token_urlsafe(32))
        signed_in = replace(credential, csrf=secrets.token_urlsafe(24))
        self._sessions[hash_of(cookie)] = _Session(signed_in, self._clock() + SESSION_SECONDS)
        return cookie

    def find(self, cookie: str) -> Credential | None:
        """Return the credential of a cookie; None if its key was revoked."""
        session = self._sessions.get(hash_of(cookie))
        if session is None or session.until <= self._clock():
            return None
        kind, _, number = session.credential.id.partition(":")
        if kind == "key" and self._keys.get(number) is None:
            return None
        return session.credential

    def close(self, cookie: str) -> None:
        """Sign a browser out."""
        self._sessions.pop(hash_of(cookie), None)

    def close_all(self, credential: Credential) -> int:
        """Sign out every browser that signed in with the same credential. Return how many there were."""
        found = [name for name, session in self._sessions.items() if session.credential.id == credential.id]
        for name in found:
            del self._sessions[name]
        return len(found)
