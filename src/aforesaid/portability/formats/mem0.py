"""A dump of mem0's memories: what `get_all` or an export returns, as JSON or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from aforesaid.portability.formats.base import Entry, Format, line_objects, metadata_tags, objects
from aforesaid.portability.import_items import Item, Skipped
from aforesaid.portability.json_stream import Fields, JsonStream


class Mem0(Format):
    """Memories without a user are stored for the requested user."""

    app = "mem0"
    endings = (".json", ".jsonl")

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        first = self.source.head(name).lstrip().partition(b"\n")[0].strip()
        if first.startswith(b"{") and first.endswith(b"}") and b'"results"' not in first:
            yield from line_objects(stream)
            return
        whole = JsonStream(stream)
        if whole.peek() == "[":
            yield from objects(whole, "memory")
            return
        for key in whole.members():
            if key in ("results", "memories") and whole.peek() == "[":
                yield from objects(whole, "memory")
            elif key == "relations" and whole.peek() == "[":
                yield from (("relation", {}) for _ in whole.elements())

    def record(self, found: Fields, where: str) -> Item:
        if where == "relation":
            return Skipped("relations of the graph: their words are in the memories")
        text = found.words("memory", "data", "text")
        if text is None:
            return Skipped("entries without text")
        origin = ((name, found.words(name)) for name in ("agent_id", "app_id", "run_id"))
        return self.memory(
            where,
            text,
            self.moment(found.raw("created_at") or found.raw("updated_at"), "created_at"),
            [
                *found.items("categories"),
                found.raw("category"),
                *metadata_tags(found.raw("metadata")),
                *(f"{name}={value}" for name, value in origin if value and found.has("user_id")),
            ],
            user=found.words("user_id", "agent_id", "run_id"),
            seen_at=self.moment(found.raw("updated_at"), "updated_at"),
            expires_at=self.moment(found.raw("expiration_date"), "expiration_date"),
        )
