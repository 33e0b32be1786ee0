"""The API for receipts of contexts: what was sent to a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from aforesaid.domain import checks
from aforesaid.domain.context_receipt import ContextReceipt, SentKind, SentSource
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.front.handle import IN_METHOD, UserHandle, at_once, public
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.context import Context
else:
    Context = object  # checked in the method, which loads it


class UserReceipts(UserHandle):
    """The receipts of one user's contexts."""

    @public(unaudited="the receipt itself names the caller")
    async def sent(
        self,
        context: Context,
        *,
        reply: Message | None = None,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> ContextReceipt:
        """Record that a context was sent to a model, and return its receipt: which messages and memories it showed.

        `reply` is the stored message that it led to. The tokens are those that the provider counted. A second call for
        the same context replaces its receipt. With the setting `receipts.days = 0` nothing is stored.
        """
        from aforesaid.context import Context as Made  # noqa: PLC0415 - loaded when it is needed

        if not isinstance(context, Made):
            raise InvalidInput(f"context must be what `context` returned, not {type(context).__name__[:80]}", "context")
        keeper = self._services.receipts
        receipt = keeper.receipt_of(self.scope, self._who, context)
        if reply is not None and (reply.space, reply.user) != self.scope[:2]:
            raise NotFound(f"the reply {quoted(reply.id)} is not a message of {quoted(self.scope.user)}")
        receipt = replace(
            receipt,
            reply=None if reply is None else reply.seq,
            model=receipt.model if model is None else checks.storable(model, "the model", "model"),
            input_tokens=_tokens(input_tokens, "input_tokens"),
            output_tokens=_tokens(output_tokens, "output_tokens"),
        )
        await keeper.keep(receipt)
        return receipt

    @public(audit=("receipts.read", "receipts"))
    async def receipts(
        self,
        limit: int = 50,
        *,
        since: datetime | None = None,
        before: str | None = None,
        replies: Sequence[Message] | None = None,
    ) -> list[ContextReceipt]:
        """Return receipts of contexts that were sent to models, newest first.

        With `before`, only those that are older than the receipt of this id; with `replies`, those that led to these
        messages.
        """
        question = questions.Receipts(
            self.scope,
            at_once(limit),
            since=None if since is None else checks.microseconds(since, "since"),
            before=before,
            replies=None if replies is None else [message.seq for message in replies],
        )
        await self._services.receipts.settled()
        return await self._services.store.read(question)

    @public(audit=("receipts.read", "receipt {receipt}"))
    async def receipt(self, receipt: str) -> ContextReceipt:
        """Return one receipt. Raises NotFound for an id that the user does not have."""
        await self._services.receipts.settled()
        found = await self._services.store.read(questions.Receipts(self.scope, 1, ids=[receipt]))
        if not found:
            raise NotFound(
                f"{quoted(self.scope.user)} has no receipt {quoted(receipt)}; it may have been deleted by age"
            )
        return found[0]

    @public(audit=IN_METHOD)
    async def receipt_sources(self, receipt: ContextReceipt) -> dict[tuple[SentKind, int], SentSource]:
        """Return the messages, memories and summaries that a receipt names, as they are now, by kind and id.

        What was erased or taken back since is missing. An audit row says that they were read.
        """
        store, scope = self._services.store, self.scope
        found: dict[tuple[SentKind, int], SentSource] = {}
        for message in await self._messages(receipt):
            found["message", message.seq] = message
        if numbers := set(receipt.ids("memory")):
            for memory in await store.read(questions.Memories(scope, active=None)):
                if memory.id in numbers:
                    found["memory", memory.id] = memory
        if numbers := set(receipt.ids("summary")):
            for summary in await store.read(questions.Summaries(scope, active=None)):
                if summary.id in numbers:
                    found["summary", summary.id] = summary
        await self._record_view("receipts.read", f"sources of receipt {receipt.id}")
        return found

    async def _messages(self, receipt: ContextReceipt) -> list[Message]:
        """Return the messages that a receipt names: the user's own, and those of others in the same shared thread."""
        store, scope = self._services.store, self.scope._replace(thread=receipt.thread)
        wanted = receipt.ids("message")
        if not wanted:
            return []
        found = await store.read(questions.MessagesByNumber(scope, wanted))
        missing = set(wanted) - {message.seq for message in found}
        if missing and not is_direct(receipt.thread):
            found += await store.read(questions.MessagesByNumber(scope, sorted(missing), within="thread"))
        gone = await self._taken_back(message for message in found if message.replaced)
        return [message for message in found if message.seq not in gone]

    async def _taken_back(self, replaced: Iterable[Message]) -> set[int]:
        """Return those of the messages whose newest version is a tombstone."""
        by_owner: dict[str, list[int]] = defaultdict(list)
        for message in replaced:
            by_owner[message.user].append(message.seq)
        gone: set[int] = set()
        for user, seqs in by_owner.items():
            versions = await self._services.store.read(questions.VersionsOf(Scope.of(user, self.scope.space), seqs))
            later = {version.replaces: version for version in versions}
            for seq in seqs:
                newest = later.get(seq)
                while newest is not None and newest.seq in later:
                    newest = later[newest.seq]
                if newest is not None and newest.taken_back:
                    gone.add(seq)
        return gone


def _tokens(value: int | None, name: str) -> int | None:
    return None if value is None else checks.at_least(value, 0, f"the {name.replace('_', ' ')}", name)
