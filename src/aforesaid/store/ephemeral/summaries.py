"""What summaries cover, on the store in memory."""

from __future__ import annotations

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store.ephemeral.state import State, person


def below(state: State, summary: Summary) -> list[Message]:
    """Return the messages below a summary."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.reach == "chunks":
        entries = state.stretch(scope, summary.first, summary.last)
        return [entry.message for entry in entries if entry.message.chunk in summary.chunks]
    if summary.reach == "sources":
        every = {each.seq: each for source in summary.sources for each in below(state, state.summaries[source])}
        return [every[seq] for seq in sorted(every)]
    found = _stretch(state, scope, summary.first, summary.last, here=summary.reach == "thread")
    return [message for message in found if summary.began_at <= message.at <= summary.ended_at]


def above(state: State, scope: Scope, seq: int) -> list[Summary]:
    """Return the summaries that a message lies below."""
    entry = state.log.get(seq)
    if entry is None or entry.owner != person(scope):
        raise NotFound(f"{quoted(scope.user)} has no message with the number {seq}")
    found = [
        summary
        for summary in state.summaries.values()
        if (summary.space, summary.user) == person(scope)
        and not summary.rolled_back
        and not summary.replaced
        and entry.message in below(state, summary)
    ]
    return sorted(found, key=lambda summary: (summary.kind, summary.level, summary.id))


def _stretch(state: State, scope: Scope, first: int, last: int, *, here: bool) -> list[Message]:
    return [
        entry.message for entry in state.stretch(scope, first, last) if not here or entry.message.thread == scope.thread
    ]
