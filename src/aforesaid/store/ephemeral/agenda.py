"""How far policies have walked along the log, and what they have to look at, on the store in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from aforesaid.domain.agenda import Backlog, Entry, Passed, Touch
from aforesaid.domain.summary_change import Settle, Walk
from aforesaid.errors import SourcesChanged
from aforesaid.store.ephemeral.state import State, as_microseconds


def unwalked(state: State, policy: str) -> Iterator[Passed]:
    """Return the messages that a policy has not walked past, oldest first."""
    for entry in state.after(state.walks.get(policy, 0)):
        each, at = entry.message, as_microseconds(entry.message.at)
        yield Passed(each.seq, each.space, each.user, each.thread, each.role, at, len(each.text))


def walk(state: State, change: Walk) -> None:
    """Note what messages mean for the agenda, and that they were walked past."""
    if state.walks.get(change.policy, 0) != change.after:
        raise SourcesChanged(f"somebody else has walked past message {change.after}")
    state.walks[change.policy] = change.up_to
    for touch in change.touched:
        state.agenda[touch.subject] = _touched(state.agenda.get(touch.subject), touch)


def settle(state: State, change: Settle) -> None:
    """Note that a subject was looked at."""
    entry = state.agenda.get(change.subject)
    if entry is None:
        return
    if change.error is not None:
        changed = replace(entry, failures=entry.failures + 1, error=change.error, due_at=change.due_at)
    else:
        unchanged = entry.last_seq == change.last_seq
        changed = replace(
            entry,
            failures=0,
            error=None,
            done_at=entry.done_at if change.done_at is None else change.done_at,
            done_seq=entry.done_seq if change.done_at is None else change.last_seq,
            due_at=change.due_at if unchanged or entry.due_at is None else entry.due_at,
            waiting=0 if unchanged else entry.waiting,
        )
    state.agenda[change.subject] = changed


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


def _touched(entry: Entry | None, touch: Touch) -> Entry:
    subject, messages, characters, last_seq, due_at = touch
    if entry is None:
        return Entry(subject, messages, characters, messages, last_seq, due_at)
    return replace(
        entry,
        messages=entry.messages + messages,
        characters=entry.characters + characters,
        waiting=entry.waiting + messages,
        last_seq=last_seq,
        due_at=entry.due_at if entry.failures else min(due_at if entry.due_at is None else entry.due_at, due_at),
    )
