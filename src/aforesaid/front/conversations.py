"""The API for batches of messages and for threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from datetime import datetime
from itertools import islice
from typing import Any, Final, cast

from aforesaid.background import collector_paused
from aforesaid.domain import checks
from aforesaid.domain.change import AddMessages
from aforesaid.domain.checks import Role, Within
from aforesaid.domain.hit import message_filter
from aforesaid.domain.message import BATCH_BYTES, MOST_IN_BATCH, Draft, NewMessage, draft_of_new, plain_drafts
from aforesaid.domain.receipt import BatchReceipt, Repeated, Stored
from aforesaid.domain.thread import Thread
from aforesaid.errors import InvalidInput, TooLarge
from aforesaid.front.handle import UserHandle, at_once, public
from aforesaid.store import Progress, questions

_SLICE: Final = 1_000
"""Messages checked before other tasks of the event loop get a turn."""
_BULK: Final = 200
"""Messages of a batch that gives way to searches: an import, not a conversation."""


class UserConversations(UserHandle):
    """Batches of messages, and the threads of one user."""

    @public(unaudited="the log itself shows what was stored", unbounded=True, loose=("messages",))
    async def add_many(
        self, messages: Iterable[NewMessage | Mapping[str, Any]], *, progress: Progress | None = None
    ) -> BatchReceipt:
        """Store many messages at once: all of them, or none. When this returns, they are on disk and can be found.

        Each is a `NewMessage`, or a mapping with the arguments of `add`, such as `{"role": "user", "text": "hello"}`;
        `content` may stand for `text`, as in the messages of OpenAI-style programs.
        They are stored in their order, in the handle's thread, with one commit. In SQLite, a batch of 200 messages or
        more is indexed after that, in the background; a search of the user waits for it, some seconds after 100,000.
        A message that is not valid refuses the whole batch; the error has its index. Duplicates are recognised as by
        `add`, among the batch too.

        A batch has at most 100,000 messages and 256 MB of text, because all of it is in memory until it is stored;
        pass more in several batches. `progress` is called with `prepared` or `stored`, the number of messages so far,
        and the number of all; it may be called from another thread, and nothing is stored if it raises. Cancelling
        this call before the messages are handed to the store stores nothing; afterwards all of them are stored.
        """
        # An iterator of the caller may wait for something.
        with collector_paused() if isinstance(messages, list | tuple) else nullcontext():
            drafts = await self._drafts(messages)
        if not drafts:
            return BatchReceipt(durable=True, results=())
        silence = await self._services.effective.silence(self.scope.space)
        if len(drafts) >= _BULK:
            await self._services.recall_queue.give_way()
        receipt = await self._services.store.apply(AddMessages(drafts, silence), progress)
        self._services.upkeep.nudge()
        self._services.watch.start()
        self._services.sessions.record(receipt)
        notices = (*receipt.notices, *self._services.upkeep.notices(self.scope))
        return BatchReceipt(receipt.durable, cast("tuple[Stored | Repeated, ...]", receipt.results), notices)

    @public(audit=("messages.read", "threads"))
    async def threads(self, limit: int = 50, *, before: Thread | str | int | None = None) -> list[Thread]:
        """Return the threads that the user has messages in, the one with the newest message first.

        To page on, pass the last one as `before`: a thread or its id. A thread may have been cleared or continued
        since; an id raises NotFound if the user has no messages in that thread any more.
        """
        after = (
            before
            if before is None or isinstance(before, Thread)
            else self._services.ids.spelled(checks.identifier(before, "the thread id", "before"))
        )
        return await self._services.store.read(questions.Threads(self.scope, limit=at_once(limit), before=after))

    @public(unaudited="counts alone")
    async def count(
        self,
        *,
        role: Role | None = None,
        author: str | int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        within: Within = "user",
        archived: bool = True,
    ) -> int:
        """Return the number of messages. The arguments are those of `history`."""
        where = message_filter(role=role, author=author, since=since, until=until, metadata=metadata)
        return await self._services.store.read(
            questions.MessageCount(self.scope, within=within, archived=archived, where=where)
        )

    async def _drafts(self, messages: Iterable[object]) -> list[Draft]:
        """Check the messages of a batch. Raises InvalidInput with the index of the first one that is not valid."""
        limit = self._services.profile.message_bytes
        drafts: list[Draft] = []
        characters = last_at = 0
        waiting = iter(messages)
        while some := [*islice(waiting, min(_SLICE, MOST_IN_BATCH + 1 - len(drafts)))]:
            if len(drafts) + len(some) > MOST_IN_BATCH:
                raise TooLarge(
                    f"a batch has at most {MOST_IN_BATCH:,} messages; pass more in several batches", "messages"
                )
            stored_at = max(checks.now(), last_at + 1)
            made = plain_drafts(self.scope, some, limit, stored_at) or self._one_by_one(some, len(drafts), stored_at)
            last_at = made[-1].stored_at
            characters += sum(len(draft.text) for draft in made)
            if characters > BATCH_BYTES:
                raise TooLarge(
                    f"the texts of a batch have at most {BATCH_BYTES:,} characters; pass more in several batches",
                    "messages",
                )
            drafts += made
            await asyncio.sleep(0)
        return drafts

    def _one_by_one(self, messages: Iterable[object], first: int, stored_at: int) -> list[Draft]:
        """Check messages of a batch, whose indexes begin with `first`."""
        limit, ids = self._services.profile.message_bytes, self._services.ids
        drafts = []
        for place, new in enumerate(messages):
            try:
                draft = draft_of_new(self.scope, new, ids, limit)
            except InvalidInput as error:
                index = first + place
                error.args = (f"message {index} of the batch, counted from 0: {error}",)
                error.field = f"messages.{index}" if error.field is None else f"messages.{index}.{error.field}"
                raise
            # As in `plain_drafts`: no two messages have the same moment.
            now = stored_at + place
            drafts.append(draft._replace(at=draft.at if draft.at_given else now, stored_at=now))
        return drafts
