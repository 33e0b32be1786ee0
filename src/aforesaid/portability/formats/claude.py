"""Claude's export format: `conversations.json`, alone or in its zip archive."""

from __future__ import annotations

from collections.abc import Iterator

from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import ImportedMessage, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import any_moment, name_of, objects, opened, parts_text, told


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all conversations."""
    files = [name for name in source.named(".json") if name.rpartition("/")[2].startswith("conversations")]
    for name in files or source.names[:1]:
        with source.open(name) as stream:
            yield from told(_conversations(opened(stream), reading))


def _conversations(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    for where, found in objects(stream, "conversation"):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            thread = f"claude:{found.text('uuid')}"
            entries = found.items("chat_messages")
        except InvalidInput as error:
            yield Problem(where, str(error))
            continue
        for number, entry in enumerate(entries, 1):
            place = f"{where}, message {number}"
            try:
                yield _message(Fields(entry, "the message"), place, thread, reading)
            except InvalidInput as error:
                yield Problem(place, str(error))


def _message(found: Fields, where: str, thread: str, reading: ReadOptions) -> Item:
    text = name_of(found, "text") or parts_text(found.raw("content"))
    files = [Fields(each, "an attachment") for each in (*found.items("attachments"), *found.items("files"))]
    names = [f"[{name}]" for each in files if (name := name_of(each, "file_name"))]
    whole = "\n".join([text, *names] if text.strip() else names)
    if not whole:
        return Skipped("messages without text")
    role = found.word("sender", ("human", "assistant"))
    at = any_moment(found.raw("created_at"), "created_at", reading.zone)
    return ImportedMessage(where, thread, "user" if role == "human" else "assistant", whole, at, found.text("uuid"))
