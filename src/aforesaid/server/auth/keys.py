"""Keys: created and shown once, stored as hashes in a file of each store (see `key_files`).

They are no part of the store: a backup or an export of memories hands nobody access, and a key can be added or taken
away while a server runs, also where the store lets only one process in.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, quoted
from aforesaid.server.auth.credential import ROLES, Credential, Role
from aforesaid.settings import Secret

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
        """Return whether it has expired."""
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= now

    @property
    def credential(self) -> Credential:
        """The credential of requests with this key."""
        return Credential(f"key:{self.id}", self.name, self.role, self.space, self.user)


class Keys:
    """The keys of a server. With a path, they are read again whenever the file has changed."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._keys: tuple[Key, ...] = ()
        self._revoked: dict[str, str] = {}
        self._seen: tuple[int, int, int] | None = None

    def all(self) -> tuple[Key, ...]:
        """Return all keys, oldest first."""
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
    """Return the hash of a token, which is stored instead of the token."""
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
