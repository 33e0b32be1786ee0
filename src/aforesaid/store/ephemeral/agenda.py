"""How far policies have walked along the log, and what they have to look at, on the store in memory."""

from __future__ import annotations

from collections.abc import Iterator

from aforesaid.domain.agenda import Backlog, Entry, Passed
from aforesaid.store.ephemeral.state import State, as_microseconds


def unwalked(state: State, policy: str) -> Iterator[Passed]:
    """Return the messages that a policy has not walked past, oldest first."""
    for entry in state.after(state.walks.get(policy, 0)):
        each, at = entry.message, as_microseconds(entry.message.at)
        yield Passed(each.seq, each.space, each.user, each.thread, each.role, at, len(each.text))


def entries(state: State, policy: str, due_by: int, *, failing: bool) -> list[Entry]:
    """Return what is due, longest waiting first; with `failing` also what is to be tried again later."""
    mine = sorted(_scheduled(state, policy), key=lambda pair: (pair[0], pair[1].subject))
    due = [entry for at, entry in mine if at <= due_by]
    return due + [entry for at, entry in mine if failing and at > due_by and entry.failures]


def backlog(state: State, policy: str, due_by: int) -> Backlog:
    """Return how much is due."""
    due = entries(state, policy, due_by, failing=False)
    failing = sorted((at, entry.subject, entry) for at, entry in _scheduled(state, policy) if entry.failures)
    error = failing[-1][2].error if failing else None
    return Backlog(len(due), sum(entry.waiting for entry in due), len(failing), error)


def _scheduled(state: State, policy: str) -> list[tuple[int, Entry]]:
    return [
        (entry.due_at, entry)
        for entry in state.agenda.values()
        if entry.subject.policy == policy and entry.due_at is not None
    ]
