"""Tell people when their messages are not stored durably or not at all, and when that is over: once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

from aforesaid.assistant import NOT_DURABLE, Answer
from aforesaid.bots.contract import Address
from aforesaid.domain.receipt import Receipt

_MOST_PEOPLE: Final = 10_000
"""Maximum number of people whose notices are remembered."""


class StorageNotices:
    """The notices about storing that people got."""

    def __init__(self, say: Callable[[Address, Answer], None]) -> None:
        self._say = say
        self._sent: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(_MOST_PEOPLE)
        """The notices of each person's last receipt."""
        self._failed: LRUCache[Address, bool] = LRUCache(_MOST_PEOPLE)
        """Addresses that got a notice about a failed write, and no notice yet that writing works again; True if a
        message was lost."""

    @property
    def failing(self) -> bool:
        """Whether somebody waits for the notice that writing works again."""
        return bool(self._failed)

    def stored(self, to: Address, receipt: Receipt) -> None:
        """Send the notices of a receipt that are new, and say when messages are stored durably again."""
        notices = frozenset((*receipt.notices, *(() if receipt.durable else (NOT_DURABLE,))))
        key = (to.space, to.user)
        before = self._sent.get(key, frozenset())
        if notices == before:
            return
        self._sent[key] = notices
        for notice in sorted(notices - before):
            self._say(to, Answer(f"({notice})"))
        if NOT_DURABLE in before - notices:
            self._say(to, Answer("(What you say is stored durably again, and so is what you said in between.)"))

    def knows_failure(self, to: Address) -> bool:
        """Return whether somebody was told that a message could not be stored, and not yet that storing works again."""
        return to in self._failed

    def store_failed(self, to: Address, *, lost: bool) -> None:
        """Note that a message of somebody could not be stored. It is `lost` if it is not delivered again."""
        self._failed[to] = lost or self._failed.get(to, False)

    def store_works(self) -> None:
        """Tell everybody whose message could not be stored that storing works again."""
        while self._failed:
            to, lost = self._failed.popitem()
            again = " What I could not store is lost to me: send it again." if lost else ""
            self._say(to, Answer(f"(I can store messages again.{again})"))
