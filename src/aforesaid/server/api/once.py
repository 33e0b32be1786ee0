"""Idempotency keys: a repeated request is processed once, also across a crash of the server.

What a request with a key led to is kept with the user whom it is about, in one of a fixed number of places: a client
that tries again finds it, on any server of the same store, and nothing grows. A newer request with another key can take
the same place; keys are for tries that follow one another soon.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeVar

from fastapi import Header, Response
from pydantic import BaseModel

from aforesaid.domain.memory import PutDerived
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, SourcesChanged
from aforesaid.server.auth import Credential
from aforesaid.store import Store, questions

_PLACES: Final = 64
_TRIES: Final = 5
_DEAD_AFTER: Final = timedelta(seconds=60)
"""A request that has not finished after this time counts as failed, and may be repeated."""

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="A request repeated with the same key is not processed again.",
        examples=["6f1c2a"],
    ),
]

M = TypeVar("M", bound=BaseModel)


class Once:
    """A request with an idempotency key, of one credential and one user."""

    def __init__(self, store: Store, who: Credential, scope: Scope, key: str | None, body: BaseModel) -> None:
        self._store = store
        self._scope = scope
        self._key = None if key is None else _digest(who.id, key)
        self._body = _digest(type(body).__name__, body.model_dump_json())
        self._kind = f"once/{0 if self._key is None else int(self._key[:8], 16) % _PLACES}"

    async def carry_out(self, shape: type[M], act: Callable[[], Awaitable[M]], response: Response) -> M:
        """Process the request, or return the stored response of an earlier one."""
        if self._key is None:
            return await act()
        answer = await self._begin()
        if answer is not None:
            response.headers["Idempotency-Replayed"] = "true"
            return shape.model_validate_json(answer)
        try:
            made = await act()
        except BaseException:
            # A failed request may be retried with the same key.
            await self._keep("", "", instead_of=self._key)
            raise
        await self._keep(self._key, self._record(made.model_dump_json()), instead_of=self._key)
        return made

    async def _begin(self) -> str | None:
        """Mark the key as in progress. Return the response if it was processed already."""
        assert self._key is not None  # noqa: S101 - asked for only with a key
        for _ in range(_TRIES):
            kept = await self._store.read(questions.DerivedText(self._scope, self._kind))
            if kept is not None and kept.key == self._key:
                record = json.loads(kept.value)
                if record["body"] != self._body:
                    raise InvalidInput(
                        "this Idempotency-Key was used for another request; take a new one", "Idempotency-Key"
                    )
                if record["answer"] is not None:
                    answer: str = record["answer"]
                    return answer
                if datetime.now(UTC) - kept.at < _DEAD_AFTER:
                    raise SourcesChanged("this very request is being carried out; ask again in a moment")
            try:
                await self._keep(self._key, self._record(None), instead_of="" if kept is None else kept.key)
            except SourcesChanged:
                continue  # another request took the place first
            return None
        raise SourcesChanged("too many requests with keys at once; try again in a moment")

    def _record(self, answer: str | None) -> str:
        return json.dumps({"body": self._body, "answer": answer})

    async def _keep(self, key: str, value: str, *, instead_of: str) -> None:
        await self._store.apply([PutDerived(self._scope, self._kind, key, value, instead_of=instead_of)])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
