"""Messages in OpenAI's format: JSON Lines or a list, of single messages or whole conversations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, get_args

from aforesaid.domain.literals import Role
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import ImportedMessage, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_lines import numbered_lines, parsed
from aforesaid.portability.reader_helpers import Ids, any_moment, name_of, objects, opened, parts_text, told

_TIMES = ("at", "timestamp", "created_at", "created", "create_time", "time", "date")
_ROLES: tuple[Role, ...] = get_args(Role)


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield messages. Those without a conversation belong to the user's direct chat."""
    ids = Ids("openai")
    for name in source.names[:1]:
        is_list = source.head(name).lstrip()[:1] == b"["
        with source.open(name) as stream:
            found = objects(opened(stream), "entry") if is_list else _entries(stream)
            yield from told(_all(found, ids, reading))


def _entries(stream: IO[bytes]) -> Iterator[tuple[str, Fields | Problem]]:
    for number, line in numbered_lines(stream):
        if line is not None and not line.strip():
            continue
        where = f"line {number}"
        try:
            yield where, Fields(parsed(line))
        except InvalidInput as error:
            yield where, Problem(where, str(error))


def _all(entries: Iterator[tuple[str, Fields | Problem]], ids: Ids, reading: ReadOptions) -> Iterator[Item]:
    for number, (where, found) in enumerate(entries, 1):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            if not found.has("messages"):
                yield _message(found, where, _talk(found), ids, reading)
                continue
            inner, talk = found.items("messages"), _talk(found) or f"openai:{number}"
        except InvalidInput as error:
            yield Problem(where, str(error))
            continue
        for place, entry in enumerate(inner, 1):
            try:
                yield _message(Fields(entry, "the message"), f"{where}, message {place}", talk, ids, reading)
            except InvalidInput as error:
                yield Problem(f"{where}, message {place}", str(error))


def _talk(found: Fields) -> str | None:
    return name_of(found, "thread", "thread_id", "conversation_id", "conversation", "session_id")


def _message(found: Fields, where: str, talk: str | None, ids: Ids, reading: ReadOptions) -> Item:
    given = found.raw("role")
    role = found.word("role", _ROLES) if given not in ("developer", "function", "human") else "system"
    if given == "human":
        role = "user"
    text = parts_text(found.raw("content")) or parts_text(found.raw("text"))
    if not text.strip():
        return Skipped("messages without text")
    at = next((any_moment(found.raw(name), name, reading.zone) for name in _TIMES if found.has(name)), None)
    user = name_of(found, "user", "user_id")
    number = name_of(found, "id") or ids.of(at, talk, role, user, text)
    thread = talk or f"direct:{reading.user}"
    name = name_of(found, "name")
    author = user if role == "user" else None
    return ImportedMessage(where, thread, role, text, at, number, author, name, answers=user)
