"""Deciding whose memory a chat request is about. No other module reads names out of requests.

The names come from Aforesaid's own headers, the headers of Open WebUI and LibreChat, the field of the request that the
protocol has for it (`user` in OpenAI's), or the key. A key that many people use, with a request that names nobody, gets
no memory: sharing one memory between people would show one of them what another said.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from aforesaid.domain import checks
from aforesaid.domain.scope import chat_thread, is_direct
from aforesaid.errors import NotFound, quoted
from aforesaid.extras import re
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential

USER: Final = "x-aforesaid-user"
THREAD: Final = "x-aforesaid-thread"
SPACE: Final = "x-aforesaid-space"
_USERS: Final = (USER, "x-openwebui-user-id", "x-librechat-user-id")
_NAMES: Final = ("x-openwebui-user-name", "x-librechat-user-name")
_CHATS: Final = ("x-openwebui-chat-id", "x-librechat-conversation-id")
USER_FIELDS: Final = ("user", "safety_identifier")
"""Fields of OpenAI's requests that name the user."""
PRIVATE_HEADERS: Final = ("x-aforesaid-", "x-openwebui-", "x-librechat-")
"""Prefixes of the headers that say who somebody is. They do not go to the provider."""
_NO_CHAT: Final = frozenset({"new", "null", "none", "undefined"})
"""What apps send as the id of a chat that has none yet."""
_TEMPORARY: Final = frozenset({"temporary", "local"})
"""Open WebUI calls temporary chats, which it does not store either, `temporary:…`, and formerly `local:…`."""
_INSTALLATION: Final = re.compile(r'user_[0-9a-f]{16,}_account_|\{\s*"')
"""How the user ids of Claude Code begin. They name an installation and a session of it, not a person."""


@dataclass(frozen=True, slots=True)
class Caller:
    memory: Memory
    credential: Credential
    user: str
    space: str | None = None
    thread: str | None = None
    """The thread that the request names; None if its conversation has to be recognised."""
    sends_history: bool = False
    """Whether the client is known to send the whole chat with each request. An edited first question can be told
    from a further message only then."""
    provider_has_history: bool = False
    """Whether the request names a chat that the provider stores, and so need not repeat its messages."""
    name: str | None = None
    _people: dict[str | None, UserMemory] = field(default_factory=dict, repr=False, compare=False)
    """The person's memory by thread. One request asks for the same one many times."""

    def person(self, thread: str | None) -> UserMemory:
        """Return the person's memory with a thread to store messages in. Access through it is not audited."""
        person = self._people.get(thread)
        if person is None:
            person = self.credential.person(self.memory, self.user, space=self.space, thread=thread, audited=False)
            self._people[thread] = person
        return person

    @property
    def reads(self) -> UserMemory:
        """The memory that a context is made from: all chats of the person, or the shared thread that is named."""
        shared = self.thread is not None and not is_direct(self.thread)
        return self.person(self.thread if shared else None)


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Why a request is passed on without memory."""

    reason: str


NOBODY_NAMED: Final = NoMemory(
    "no user: this key is used by many people and the request names nobody; send the field user or X-Aforesaid-User"
)
TEMPORARY_CHAT: Final = NoMemory("temporary chat")


def caller_of(
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    credential: Credential,
    memory: Memory,
    *,
    user_fields: Iterable[str] = USER_FIELDS,
    chat_field: str | None = None,
    own_chat: str | None = None,
) -> Caller | NoMemory:
    """Return whose memory a request is about, or why it is about nobody's.

    `user_fields` are the fields of the body that name the user. `chat_field` is the one that names a chat of which the
    provider has the history, `own_chat` the chat of a request that names none. Raises NotFound if the key is for one
    person and the request names another, InvalidInput if a name cannot be used.
    """
    named = _first(headers.get(name) for name in _USERS) or _first(
        _person(value_at(body, field)) for field in user_fields
    )
    user = named or credential.user or credential.default_user
    if user is None:
        return NOBODY_NAMED
    user = memory.known_ids.spelled(user)
    if credential.user not in (None, user):
        raise NotFound(
            f"this key is for {quoted(credential.user)}, and the request names {quoted(user)}; use a key that "
            "many people may use (aforesaid key add NAME --people many)"
        )
    chat = _first(headers.get(name) for name in _CHATS)
    if chat is not None and chat.partition(":")[0] in _TEMPORARY:
        return TEMPORARY_CHAT
    thread = _first((headers.get(THREAD),))
    by_app = thread is None and chat is not None and chat.lower() not in _NO_CHAT
    if by_app:
        thread = chat_thread(checks.identifier(user, "the user id"), str(chat))
    at_provider = None if chat_field is None else _stored_chat(user, value_at(body, chat_field))
    if thread is None and own_chat is not None:
        thread = chat_thread(checks.identifier(user, "the user id"), own_chat)
    thread = thread or at_provider
    name = _first(headers.get(name) for name in _NAMES)
    space = _first((headers.get(SPACE),))
    # Open WebUI quotes a display name as in an address.
    named = None if name is None else unquote(name).replace("\0", "")[: checks.IDENTIFIER_CHARACTERS]
    caller = Caller(memory, credential, user, space, thread, by_app, at_provider is not None, named)
    caller.person(thread)  # Names that cannot be used are refused before anything is done.
    return caller


def value_at(body: Mapping[str, Any], field: str) -> object:
    """Return the value of a field; a dot in its name leads into an object. None if there is none."""
    if "." not in field:
        return body.get(field)
    outer, _, inner = field.partition(".")
    value = body.get(outer)
    return value.get(inner) if isinstance(value, Mapping) else None


def _person(value: object) -> object:
    """Return the name of a user; None for one that names an installation of a program."""
    return None if isinstance(value, str) and _INSTALLATION.match(value) else value


def _stored_chat(user: str, chat: object) -> str | None:
    """Return the thread of a chat that the provider stores: its id, or an object with the id."""
    name = _first((chat.get("id") if isinstance(chat, Mapping) else chat,))
    return None if name is None else chat_thread(checks.identifier(user, "the user id"), name)


def _first(values: Iterable[object]) -> str | None:
    for value in values:
        text = _decoded(value.strip()) if isinstance(value, str) else ""
        # A placeholder that an app did not fill in would be one and the same name for everybody.
        if text and not (text.startswith("{{") and text.endswith("}}")):
            return text
    return None


def _decoded(value: str) -> str:
    """Decode `b64:…`, as LibreChat writes header values that are not ASCII."""
    if not value.startswith("b64:"):
        return value
    try:
        return b64decode(value.removeprefix("b64:"), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return value
