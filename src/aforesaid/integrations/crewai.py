"""A storage backend for CrewAI's memory.

    crew = Crew(agents=…, tasks=…, memory=Memory(storage=AforesaidStorage(memory)))

CrewAI decides what to remember, and embeds it. Its records belong to one user of the memory, `crewai` by default.
`memory.purge("ann")` erases those of the scopes `/users/ann`, `/user/ann` and below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from crewai.memory.types import MemoryRecord, ScopeInfo

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.integrations.shared import (
    AnyMemory,
    Calls,
    Documents,
    NewDocument,
    named_user,
    packed,
    similarity,
    unpacked,
)
from aforesaid.memory import Memory

_OWN_USER: Final = "crewai"
"""The user whose only messages are records. Nothing is learned from them."""
_COLLECTION: Final = "records"
_RECORD: Final = "record"
_VECTOR: Final = "vector"

Test = Callable[[MemoryRecord], bool]


class AforesaidStorage:
    """The records of CrewAI. Its sync methods need a memory from `aforesaid.open`."""

    def __init__(self, memory: AnyMemory, *, user: str = _OWN_USER, space: str = DEFAULT_SPACE) -> None:
        self._calls = Calls(memory, Memory)
        self._documents = Documents(self._calls.target, user, space, learn=user != _OWN_USER)

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records, all of them or none."""
        self._calls.run(lambda _: self._save(records))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Store records, all of them or none."""
        await self._calls.wait(lambda _: self._save(records))

    def update(self, record: MemoryRecord) -> None:
        """Store a new version of a record. Raises NotFound if there is none with its id."""
        if self.get_record(record.id) is None:
            raise NotFound(f"there is no record {quoted(record.id)}")
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records that are nearest to a vector, with their cosine similarity, best first."""
        wanted = _wanted(scope_prefix, categories, metadata_filter)
        return self._calls.run(lambda _: self._nearest(query_embedding, wanted, limit, min_score))

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records that are nearest to a vector, with their cosine similarity, best first."""
        wanted = _wanted(scope_prefix, categories, metadata_filter)
        return await self._calls.wait(lambda _: self._nearest(query_embedding, wanted, limit, min_score))

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Take back the records that fit; return how many."""
        wanted = _wanted(scope_prefix, categories, metadata_filter, record_ids, older_than)
        return self._calls.run(lambda _: self._delete(wanted))

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Take back the records that fit; return how many."""
        wanted = _wanted(scope_prefix, categories, metadata_filter, record_ids, older_than)
        return await self._calls.wait(lambda _: self._delete(wanted))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record, or None."""
        found = self._calls.run(lambda _: self._documents.collection(_COLLECTION).get(record_id))
        return None if found is None else _record(found.value)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, the newest first."""
        found = sorted(self._within(scope_prefix), key=lambda each: _aware(each.created_at), reverse=True)
        return found[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what is in a scope and below it."""
        found = self._within(scope)
        times = sorted((each.created_at for each in found), key=_aware)
        return ScopeInfo(
            path=scope.rstrip("/") or "/",
            record_count=len(found),
            categories=sorted({name for each in found for name in each.categories}),
            oldest_record=times[0] if times else None,
            newest_record=times[-1] if times else None,
            child_scopes=_children(found, scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes directly below another one."""
        return _children(self._within(parent), parent)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the number of records of each category."""
        return dict(Counter(name for each in self._within(scope_prefix) for name in each.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records in a scope and below it."""
        return len(self._within(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Take back all records in a scope and below it."""
        self.delete(scope_prefix=scope_prefix)

    def close(self) -> None:
        """Do nothing: whoever opened the memory closes it."""

    def _within(self, scope: str | None) -> list[MemoryRecord]:
        wanted = _wanted(scope)
        return [each for each, _ in self._calls.run(lambda _: self._all()) if wanted(each)]

    async def _save(self, records: Sequence[MemoryRecord]) -> None:
        if records:
            new: dict[str, NewDocument] = {}
            for each in records:
                value: dict[str, Any] = {_RECORD: each.model_dump(mode="json")}
                if each.embedding:
                    value[_VECTOR] = packed(each.embedding)
                # By its scope (`/users/ann`), a record is about a user.
                about = named_user(each.scope.strip("/").split("/"))
                new[each.id] = NewDocument(each.id, value, each.content, about)
            await self._documents.put(_COLLECTION, list(new.values()))

    async def _all(self) -> list[tuple[MemoryRecord, str | None]]:
        found = await self._documents.collection(_COLLECTION).all()
        return [(_record(each.value), each.value.get(_VECTOR)) for each in found]

    async def _nearest(
        self, query: Sequence[float], wanted: Test, limit: int, least: float
    ) -> list[tuple[MemoryRecord, float]]:
        found = []
        for record, vector in await self._all():
            if vector is not None and wanted(record):
                if len(record.embedding or ()) != len(query):
                    raise InvalidInput(
                        f"records have vectors of {len(record.embedding or ())} numbers, the query has {len(query)}; "
                        "use the embedder that they were saved with, or reset the memory",
                        "query_embedding",
                    )
                if (near := similarity(query, [vector])) >= least:
                    found.append((record, near))
        return sorted(found, key=lambda each: each[1], reverse=True)[:limit]

    async def _delete(self, wanted: Test) -> int:
        records = self._documents.collection(_COLLECTION)
        gone = [record.id for record, _ in await self._all() if wanted(record)]
        for each in gone:
            await records.delete(each)
        return len(gone)


def _wanted(
    scope: str | None = None,
    categories: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    ids: Sequence[str] | None = None,
    older_than: datetime | None = None,
) -> Test:
    """Return what tells whether a record fits all conditions."""
    top = "/" + (scope or "").strip("/")

    def fits(record: MemoryRecord) -> bool:
        return (
            (top in {"/", record.scope} or record.scope.startswith(f"{top}/"))
            and (not categories or any(name in record.categories for name in categories))
            and all(record.metadata.get(name) == value for name, value in (metadata or {}).items())
            and (ids is None or record.id in ids)
            and (older_than is None or _aware(record.created_at) < _aware(older_than))
        )

    return fits


def _children(records: Sequence[MemoryRecord], parent: str) -> list[str]:
    above = f"/{parent.strip('/')}/" if parent.strip("/") else "/"
    below = {each.scope.removeprefix(above).partition("/")[0] for each in records if each.scope.startswith(above)}
    return sorted(above + name for name in below if name)


def _aware(moment: datetime) -> datetime:
    """Return a time that can be compared: CrewAI's have no zone, and are UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _record(value: Mapping[str, Any]) -> MemoryRecord:
    vector = value.get(_VECTOR)
    return MemoryRecord.model_validate({**value[_RECORD], "embedding": None if vector is None else unpacked(vector)})
