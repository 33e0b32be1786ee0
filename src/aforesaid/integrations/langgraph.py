"""A LangGraph store whose items are kept in a memory.

    store = AforesaidStore(memory)
    graph = builder.compile(store=store)
    store.put(("users", "ann"), "home", {"text": "Ann lives in Bern"})
    store.search(("users",), query="Where does Ann live?")

Without an `index`, a search uses the words and the meaning of all texts in an item, with Aforesaid's own embedder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
    validate_op_namespace,
)

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput, quoted
from aforesaid.integrations import shared
from aforesaid.integrations.shared import (
    AnyMemory,
    Calls,
    Document,
    Documents,
    NewDocument,
    named_user,
    packed,
    readable,
    similarity,
)
from aforesaid.memory import Memory

Namespace = tuple[str, ...]
Vectors = Mapping[str, Sequence[float]]
"""The vectors of texts: those of queries and those of items."""

_OWN_USER: Final = "langgraph"
"""The user whose only messages are items. Nothing is learned from them."""
_WHOLE: Final = "$"
"""The path of a whole item."""
_QUOTES: Final = frozenset("'\"`")
_VALUE: Final = "value"
_VECTORS: Final = "vectors"


class AforesaidStore(BaseStore):
    """A store of JSON values under namespaces. Its items belong to one user of the memory, `langgraph` by default.

    `index` is LangGraph's: with `embed`, items are searched by the vectors of that embedder; with `fields` alone,
    Aforesaid searches the texts at these paths.

    `user_of` returns the user whom an item is about, from its namespace and key: `memory.purge` of that user erases the
    item. By default, that is `ann` for `("users", "ann")`, `("memories", "ann")`, `("ann", "memories")` and what is
    below, and for the key `ann` in `("users",)`.
    """

    supports_ttl = False

    def __init__(
        self,
        memory: AnyMemory,
        *,
        user: str = _OWN_USER,
        space: str = DEFAULT_SPACE,
        index: IndexConfig | None = None,
        user_of: Callable[[Namespace, str], str | None] = named_user,
    ) -> None:
        self._calls = Calls(memory, Memory)
        self._documents = Documents(self._calls.target, user, space, learn=user != _OWN_USER)
        self._user_of = user_of
        self.index_config = index
        self.embeddings = ensure_embeddings(index["embed"]) if index and index.get("embed") else None
        self._fields: list[str] = list((index or {}).get("fields") or [_WHOLE])

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations. All reads come before the writes; of two writes of one item the last counts."""
        asked = _checked(ops)
        queries, texts = self._to_embed(asked)
        vectors: dict[str, Sequence[float]] = {}
        if self.embeddings is not None:
            vectors = {f"?{query}": self.embeddings.embed_query(query) for query in queries}
            vectors |= zip(texts, self.embeddings.embed_documents(texts), strict=True) if texts else ()
        return self._calls.run(lambda _: self._execute(asked, vectors))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations as `batch` does."""
        asked = _checked(ops)
        queries, texts = self._to_embed(asked)
        vectors: dict[str, Sequence[float]] = {}
        if self.embeddings is not None:
            vectors = {f"?{query}": await self.embeddings.aembed_query(query) for query in queries}
            vectors |= zip(texts, await self.embeddings.aembed_documents(texts), strict=True) if texts else ()
        return await self._calls.wait(lambda _: self._execute(asked, vectors))

    def _to_embed(self, ops: Sequence[Op]) -> tuple[list[str], list[str]]:
        """Return the queries and the texts of items that need vectors."""
        queries = {op.query for op in ops if isinstance(op, SearchOp) and op.query}
        texts = {text for op in ops if isinstance(op, PutOp) for text in self._texts(op)}
        return sorted(queries), sorted(texts)

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts at the indexed paths of an item."""
        if op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else op.index
        if self.embeddings is None and list(paths) == [_WHOLE]:
            return [readable(op.value)]
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    async def _execute(self, ops: Sequence[Op], vectors: Vectors) -> list[Result]:
        namespaces = None
        if any(isinstance(op, SearchOp | ListNamespacesOp) for op in ops):
            paths = [(name, _namespace(name)) for name in await self._documents.collections()]
            namespaces = {name: path for name, path in paths if path}
        results: list[Result] = []
        for op in ops:
            if isinstance(op, GetOp):
                found = await self._documents.collection(_collection(op.namespace)).get(op.key)
                results.append(None if found is None else Item(**_fields(found)))
            elif isinstance(op, SearchOp):
                results.append(await self._search(op, namespaces or {}, vectors))
            elif isinstance(op, ListNamespacesOp):
                conditions, named = op.match_conditions or (), (namespaces or {}).values()
                names = {name[: op.max_depth] for name in named if all(_matches(each, name) for each in conditions)}
                results.append(sorted(names)[op.offset : op.offset + op.limit])
            else:
                results.append(None)
        await self._write({(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values(), vectors)
        return results

    async def _write(self, ops: Iterable[PutOp], vectors: Vectors) -> None:
        new: dict[str, list[NewDocument]] = {}
        for op in ops:
            name = _collection(op.namespace)
            if op.value is None:
                await self._documents.collection(name).delete(op.key)
                continue
            texts = self._texts(op)
            stored: dict[str, Any] = {_VALUE: op.value}
            if self.embeddings is not None and texts:
                stored[_VECTORS] = [packed(vectors[text]) for text in texts]
            about = self._user_of((*op.namespace,), op.key)
            new.setdefault(name, []).append(NewDocument(op.key, stored, "\n".join(texts), about))
        for name, documents in new.items():
            await self._documents.put(name, documents)

    async def _search(self, op: SearchOp, namespaces: Mapping[str, Namespace], vectors: Vectors) -> list[SearchItem]:
        depth = len(op.namespace_prefix)
        within = [name for name, path in namespaces.items() if path[:depth] == tuple(op.namespace_prefix)]
        if not within:
            return []
        fits = [each for each in await self._documents.all(within) if _fits(_value(each), op.filter or {})]
        fits.sort(key=lambda each: (each.updated_at, each.seq), reverse=True)
        scores: dict[tuple[str, str], float] = {}
        if op.query and self.embeddings is not None:
            # That of the nearest vector of each item that has some.
            near, placed = vectors[f"?{op.query}"], [each for each in fits if each.value.get(_VECTORS)]
            scores = {(each.collection, each.key): similarity(near, each.value[_VECTORS]) for each in placed}
        elif op.query:
            hits = await self._documents.search(within, op.query)
            scores = {(each.collection, each.key): score for score, each in hits}
        # Those that were not found come last, as in LangGraph's own store.
        fits.sort(key=lambda each: scores.get((each.collection, each.key), -2.0), reverse=True)
        page = fits[op.offset : op.offset + op.limit]
        return [SearchItem(**_fields(each), score=scores.get((each.collection, each.key))) for each in page]


def _checked(ops: Iterable[Op]) -> list[Op]:
    asked = list(ops)
    for op in asked:
        if not isinstance(op, GetOp | PutOp | SearchOp | ListNamespacesOp):
            raise InvalidInput(f"unknown operation {type(op).__name__}")
        validate_op_namespace(op)
        if isinstance(op, SearchOp):
            _check_filter(op.filter)
    return asked


def _check_filter(wanted: object) -> None:
    """Raise InvalidInput for a filter with a quotation mark in a key, as LangGraph's own SQL stores raise ValueError.

    Such a key is an attempt to inject SQL rather than a name. It would do no harm here: it would find nothing.
    """
    if isinstance(wanted, Mapping):
        for name, value in wanted.items():
            if _QUOTES.intersection(str(name)):
                raise InvalidInput(f"Invalid filter key {quoted(name)}: keys have no quotation marks", "filter")
            _check_filter(value)


def _collection(namespace: Namespace) -> str:
    """Return the thread of a namespace: its labels as JSON, because a thread's name must be printable."""
    return json.dumps(list(namespace), separators=(",", ":"))


def _namespace(thread: str) -> Namespace:
    """Return the namespace of a thread; an empty one for a thread that holds no items, such as a chat of the user."""
    return tuple(shared.labels(thread))


def _value(document: Document) -> dict[str, Any]:
    return dict(document.value[_VALUE])


def _fields(document: Document) -> dict[str, Any]:
    return {
        "namespace": _namespace(document.collection),
        "key": document.key,
        "value": _value(document),
        "created_at": document.created_at,
        "updated_at": document.updated_at,
    }


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _fits(value: object, wanted: object) -> bool:
    """Return whether a value fits a filter: equal, or compared by operators such as `$gt`, at each key."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compared(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_fits(_at(value, name), other) for name, other in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_fits(item, other) for item, other in zip(value, wanted, strict=True))
        )
    return value == wanted


def _at(value: Mapping[str, Any], name: str) -> object:
    """Return the value of a key, or of a path of keys with dots between them; None if there is none."""
    if name in value:
        return value[name]
    first, dot, rest = name.partition(".")
    inner = value.get(first)
    return _at(inner, rest) if dot and isinstance(inner, Mapping) else None


_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": lambda value, other: value > other,
    "$gte": lambda value, other: value >= other,
    "$lt": lambda value, other: value < other,
    "$lte": lambda value, other: value <= other,
}


def _compared(value: object, operator: str, other: object) -> bool:
    if operator in {"$eq", "$ne"}:
        return (value == other) is (operator == "$eq")
    if operator not in _OPERATORS:
        raise InvalidInput(f"unknown operator {quoted(operator)}; use $eq, $ne, $gt, $gte, $lt or $lte", "filter")
    if not isinstance(value, int | float) or not isinstance(other, int | float):
        return False
    return _OPERATORS[operator](value, other)
