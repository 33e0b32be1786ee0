"""The rule for what is made from messages: the versions that were read must be the newest ones when it is stored."""

from __future__ import annotations

from collections.abc import Iterable

from aforesaid.domain.message import Message
from aforesaid.errors import SourcesChanged


def expect_newest(messages: Iterable[Message]) -> None:
    """Raise SourcesChanged if one of the messages has a newer version or was taken back."""
    for message in messages:
        if message.replaced:
            raise SourcesChanged(f"message {message.seq} was edited or taken back since; read it again")
