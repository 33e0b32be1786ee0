"""The scope of a call: space, user, thread and session. Every read and write has one."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple, Self

from aforesaid.domain.checks import identifier
from aforesaid.errors import InvalidInput, quoted

DEFAULT_SPACE = "default"
_DIRECT = "direct:"
_CHAT = "direct@"
_OWNER_BYTES = 6


class Scope(NamedTuple):
    """A user in a space, with the current thread and optionally the session."""

    space: str
    user: str
    thread: str
    session: str | None = None

    @classmethod
    def of(
        cls,
        user: object,
        space: object = DEFAULT_SPACE,
        thread: object = None,
        session: object = None,
        chat: object = None,
    ) -> Self:
        """Return a scope with validated names: of a thread, of a private chat, or else of the user's direct chat."""
        owner = identifier(user, "the user id", "user")
        if chat is not None:
            if thread is not None:
                raise InvalidInput(
                    "both a chat and a thread are given; name one: a chat is private, a thread is shared", "chat"
                )
            name = chat_thread(owner, identifier(chat, "the chat id", "chat"))
        elif thread is None:
            name = direct_thread(owner)
        else:
            name = identifier(thread, "the thread id", "thread")
            if is_direct(name) and name != direct_thread(owner) and not name.startswith(_chats_of(owner)):
                raise InvalidInput(
                    f"the thread {quoted(name)} is another user's direct chat, not {quoted(owner)}'s", "thread"
                )
        return cls(
            space=identifier(space, "the space", "space"),
            user=owner,
            thread=name,
            session=None if session is None else identifier(session, "the session id", "session"),
        )

    def named_session(self) -> str:
        """Return the session. Raises InvalidInput if the scope has none."""
        if self.session is None:
            raise InvalidInput("within='session' needs a session; name one: memory.user(…, session=…)", "session")
        return self.session


def direct_thread(user: str) -> str:
    """Return the thread of a user's direct chat."""
    return f"{_DIRECT}{user}"


def chat_thread(user: str, chat: str) -> str:
    """Name the thread of one of several chats that a user has with the assistant alone.

    The name holds a hash of the user id, so that two users whose apps number their chats 1, 2, 3 share no thread.
    """
    return f"{_chats_of(user)}{chat}"


def chat_name(thread: str) -> str:
    """Return the name of a chat from that of its thread; other threads unchanged."""
    return thread.partition("/")[2] if thread.startswith(_CHAT) else thread


def is_chat(thread: str) -> bool:
    """Return whether a thread is one of several private chats of a user, not the direct chat."""
    return thread.startswith(_CHAT)


def is_direct(thread: str) -> bool:
    """Return whether a thread is a direct chat, which belongs to one user."""
    return thread.startswith((_DIRECT, _CHAT))


def _chats_of(user: str) -> str:
    return f"{_CHAT}{blake2b(user.encode(), digest_size=_OWNER_BYTES).hexdigest()}/"
