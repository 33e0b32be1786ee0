"""Who may do what: credentials, API keys in a file, the use of keys, and the sessions of browsers."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from cachetools import TTLCache

from aforesaid.domain import checks
from aforesaid.domain.details import regular
from aforesaid.domain.scope import DEFAULT_SPACE, is_direct
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, quoted
from aforesaid.memory import Memory, UserMemory
from aforesaid.settings import Secret, Settings
from aforesaid.settings.layers import usual_place
from aforesaid.store import locate
from aforesaid.store.locations import file_name
from aforesaid.store.unfinished import write_new

if TYPE_CHECKING:
    from starlette.requests import Request  # wrapped clients need no web server

try:
    import fcntl
except ImportError:  # Windows: two processes that change keys in the same moment are not kept apart there
    fcntl = None  # type: ignore[assignment]

Role: TypeAlias = Literal["reader", "app", "admin"]
"""Reads; reads and writes; also settings, keys, audit, export and deletion. Each includes the ones before it."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)
LINK: Final = "link"
"""The id of the credential that the sign-in link gives."""


@dataclass(frozen=True, slots=True)
class Credential:
    id: str
    """`key:…` or `link`: its id in the audit log and in rate limits."""
    name: str
    role: Role
    space: str | None = None
    """The space it is limited to; None for all."""
    user: str | None = None
    """The user it is limited to; None for all users of the space."""
    default_user: str | None = None
    """The user of proxy requests that name nobody; None: they get no memory, because many people may use the key."""
    csrf: str | None = None
    """The CSRF token that a browser must send with changes; None without a cookie."""
    refreshing: bool = False
    """Whether an open page fetches itself again, which is not audited: opening it was."""

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def space_of(self, wanted: str | None) -> str:
        """Return the space that a request is about. Another one than the credential's own looks like none at all."""
        if self.space is None:
            return DEFAULT_SPACE if wanted is None else checks.identifier(wanted, "the space", "space")
        if wanted is not None and regular(wanted) != regular(self.space):
            raise NotFound(f"there is no space {quoted(wanted)} for this key")
        return self.space

    def user_of(self, wanted: str | None) -> str | None:
        """Return the user that a request is about: the credential's own, where it has one."""
        if self.user is None:
            return None if wanted is None else checks.identifier(wanted, "the user id", "user")
        if wanted is not None and regular(wanted) != regular(self.user):
            raise NotFound(f"there is no user {quoted(wanted)} for this key")
        return self.user

    def person(
        self,
        memory: Memory,
        user: str,
        *,
        space: str | None = None,
        thread: str | None = None,
        chat: str | None = None,
        session: str | None = None,
        audited: bool = True,
    ) -> UserMemory:
        """Return the memory of a user whom the credential may reach. What is seen and changed is audited under it.

        If it is not, whoever asks for it writes down what is seen.
        """
        whose = self.user_of(user) or user
        # A shared thread contains messages of others, so a key for one user can only use its own threads. Answers have
        # the whole name, which is accepted too.
        own = f"{whose}/"
        if self.user is not None and thread is not None and not is_direct(thread) and not thread.startswith(own):
            thread = f"{own}{thread}"
        actor = self.viewer if audited else None
        return memory.user(whose, space=self.space_of(space), thread=thread, chat=chat, session=session, actor=actor)

    @property
    def actor(self) -> str:
        """Its name in the audit log. Several keys can have the same name; there is only one link."""
        if self.id == LINK:
            return self.name
        return f"{self.id} {self.name}"[: checks.IDENTIFIER_CHARACTERS]

    @property
    def viewer(self) -> str | None:
        """Its name in the audit log for what it views; None for a page that refreshes itself."""
        return None if self.refreshing else self.actor

    @property
    def everywhere(self) -> bool:
        return self.space is None and self.user is None


REFRESH_HEADER: Final = "x-aforesaid-live"
"""The header that `live.js` sends when it fetches its own page again."""
PAGE_VIEW_SECONDS: Final = 24 * 60 * 60
"""How long after a view a page may refresh itself without an audit row. A page that stays open has a row a day."""
_MOST_VIEWS: Final = 10_000
_NO_PAGES: Final = ("/api", "/v1", "/mcp", "/live")


class PageViews:
    """The pages that browsers opened lately.

    The header alone proves nothing: everybody can send it. So a refresh counts as one only if the same session has
    opened the same address before, which has left its audit rows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._opened: TTLCache[tuple[str, str], bool] = TTLCache(_MOST_VIEWS, PAGE_VIEW_SECONDS, clock)

    def is_refresh(self, request: Request, who: Credential) -> bool:
        """Return whether a page refreshes itself. Any other request for a page is noted as a view of it."""
        if request.method != "GET" or request.url.path.startswith(_NO_PAGES):
            return False
        page = (who.csrf or who.id, f"{request.url.path}?{request.url.query}")
        if REFRESH_HEADER in request.headers and page in self._opened:
            return True
        self._opened[page] = True
        return False


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
        hashed, now = hash_of(token), datetime.now(UTC)
        return next((key for key in self.all() if key.hash == hashed and not key.expired(now)), None)

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
        now = datetime.now(UTC)
        return next((key for key in self.all() if key.id == key_id and not key.expired(now)), None)

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
            write_new(self._path, json.dumps(content, ensure_ascii=False, indent=2).encode())
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


def keys_path(settings: Settings, location: str | os.PathLike[str] | None) -> Path | None:
    """Return where the keys for a store are kept: where the settings say, or beside it. None for a store in memory.

    A database or a store of another package has a file of its own in the folder of the user's configuration.
    """
    if settings.server.keys is not None:
        return Path(settings.server.keys).expanduser()
    where = settings.store if location is None else os.fspath(location)
    _, path, address = locate(where)
    if address:
        return usual_place(os.environ).parent / f"{file_name(address)}.keys.json"
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
    if settings.server.keys is not None or locate(where).kind != "postgres":
        return None
    return usual_place(os.environ).parent / "keys.json"


def copy_command(source: Path, target: Path) -> str:
    """Return the command that copies a file, for a person to run."""
    return _command("copy" if sys.platform == "win32" else "cp", source, target)


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
            write_new(self._path, json.dumps(times, indent=2).encode())
        except OSError as error:
            _log.warning("the last use of keys could not be written to %s: %s", self._path, error)

    def _merge(self) -> None:
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
_MOST_SESSIONS: Final = 10_000


class Sessions:
    def __init__(self, keys: Keys, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._sessions: dict[str, tuple[Credential, float]] = {}
        """Credentials by the hash of their cookie, and until when they hold; the oldest first."""

    def open(self, credential: Credential) -> Secret:
        """Sign a browser in. Return the value of its cookie."""
        now = self._clock()
        self._sessions = {name: each for name, each in self._sessions.items() if each[1] > now}
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie = Secret(secrets.token_urlsafe(32))
        signed_in = replace(credential, csrf=secrets.token_urlsafe(24))
        self._sessions[hash_of(cookie)] = signed_in, now + SESSION_SECONDS
        return cookie

    def find(self, cookie: str) -> Credential | None:
        """Return the credential of a cookie; None if its key was revoked."""
        credential, until = self._sessions.get(hash_of(cookie), (None, 0.0))
        if credential is None or until <= self._clock():
            return None
        kind, _, number = credential.id.partition(":")
        return None if kind == "key" and self._keys.get(number) is None else credential

    def close(self, cookie: str) -> None:
        """Sign a browser out."""
        self._sessions.pop(hash_of(cookie), None)

    def close_all(self, credential: Credential) -> int:
        """Sign out every browser that signed in with the same credential. Return how many there were."""
        kept = {name: each for name, each in self._sessions.items() if each[0].id != credential.id}
        gone, self._sessions = len(self._sessions) - len(kept), kept
        return gone
