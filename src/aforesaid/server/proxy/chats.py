"""What is done to a chat before it is sent on: by the proxy, and by wrapped clients (`integrations.clients`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.server.auth import Credential
from aforesaid.server.proxy.app_prompts import is_task
from aforesaid.server.proxy.caller import NoMemory, caller_of
from aforesaid.server.proxy.conversations import text_of
from aforesaid.server.proxy.insertion import NO_TEXT
from aforesaid.server.proxy.protocols import Protocol
from aforesaid.server.proxy.proxy_memory import MemoryOutcome, ProxyMemory, Work

MEMORY: Final = "x-aforesaid-memory"
_NOT_WANTED: Final = NoMemory("the request asks for none")
_APP_TASK: Final = NoMemory("a task of the app, such as a title")


async def remembered(
    protocol: Protocol,
    memory: ProxyMemory,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    who: Credential,
    model: str | None,
    finish: Callable[[Work], None],
    *,
    chat: str | None = None,
) -> MemoryOutcome | NoMemory:
    """Begin to store what is new in a chat, and return what is remembered for it, or why nothing is.

    `headers` have names in lower case. `chat` is the chat of a request that names none. Raises InvalidInput for names
    that cannot be used, NotFound for a user whom the credential may not reach.
    """
    wish = headers.get(MEMORY, "on").lower()
    if wish not in {"on", "off"}:
        raise InvalidInput(f"{MEMORY} must be on or off, not {quoted(wish)}", MEMORY)
    if wish == "off":
        return _NOT_WANTED
    messages = protocol.messages(body)
    if isinstance(messages, NoMemory):
        return messages
    if is_task(_texts(messages, "user"), "\n".join(_texts(messages, "system"))):
        return _APP_TASK
    caller = caller_of(
        headers,
        body,
        who,
        memory.memory,
        user_fields=protocol.user_fields,
        chat_field=protocol.chat_field,
        own_chat=chat,
    )
    if isinstance(caller, NoMemory):
        return caller
    limits, previous = protocol.limits(body), protocol.previous(body)
    return await memory.before(caller, messages, model, finish, limits=limits, previous=previous)


def _texts(messages: Sequence[object], role: str) -> list[str]:
    return [text_of(each.get("content")) for each in messages if isinstance(each, dict) and each.get("role") == role]


REFUSED: Final = frozenset({400, 422, 500})
"""Statuses of requests that a chat template cannot take, or that are too long. llama.cpp answers 500 where a template
fails."""
_ABOUT_ROLES: Final = re.compile(rb"\brole|system message|system prompt|alternat", re.IGNORECASE)
"""What the errors of chat templates say that accept a system message at the beginning alone, or none at all."""


def dumped(body: Mapping[str, Any]) -> bytes:
    """Return a JSON object as bytes. Half of a surrogate pair, which has none, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


class Attempt(NamedTuple):
    body: bytes
    is_last: bool
    """Whether the answer goes to the client, whatever it is."""
    in_question: bool = False
    """Whether the model gets the memories in the question, because it refused them elsewhere."""


def attempts(
    protocol: Protocol, body: Mapping[str, Any], plain: bytes, outcome: MemoryOutcome | None, *, strict: bool
) -> Generator[Attempt, bytes, None]:
    """Yield what to send for a chat, one after the other, as long as it is refused.

    The generator gets the content of each answer with a status of `REFUSED`, and ends if nothing else can be tried.
    `plain` is the request without memories, `body` the same as an object. `strict` says whether the model is known to
    refuse a system message in the middle of a chat.
    """
    text = None if outcome is None else outcome.text
    if outcome is not None and text is not None and (text.stable or text.for_question):
        write = protocol.insert_in_question if strict else protocol.insert
        try:
            with_memory = dumped(write(body, text))
        except RecursionError:  # it is nested so deep that it can be read and not written
            pass
        else:
            refusal = yield Attempt(with_memory, is_last=False)
            if not protocol.too_long.search(refusal):
                if not strict and _ABOUT_ROLES.search(refusal):
                    yield Attempt(dumped(protocol.insert_in_question(body, text)), is_last=True, in_question=True)
                return
        outcome.text = None
        if outcome.receipt is not None:
            outcome.receipt.text = NO_TEXT
    yield Attempt(plain, is_last=True)


def headers_of(memory: MemoryOutcome | NoMemory | None) -> dict[str, str]:
    """Return the headers that say what the memory did, and why it did nothing."""
    if memory is None:
        return {}
    if isinstance(memory, NoMemory):
        return {"X-Aforesaid-Memory": "off", "X-Aforesaid-Reason": memory.reason}
    tokens = 0 if memory.text is None else memory.text.tokens
    headers = {"X-Aforesaid-Memory": memory.state, "X-Aforesaid-Tokens": str(tokens)}
    if memory.receipt is not None:
        headers["X-Aforesaid-Receipt"] = memory.receipt.id
    if memory.reason:
        headers["X-Aforesaid-Reason"] = memory.reason
    return headers
