"""Answers about the users of a store in memory, and their names."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from aforesaid.domain.report import ListedUser, SpaceTotals, User
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.store import questions
from aforesaid.store.ephemeral.reader import Reader


def users(reader: Reader, question: questions.Users) -> list[User]:
    """Return the users who own something."""
    found = []
    names = reader.names.of(reader.state)
    for (where, name), created_at in sorted(reader.state.owners.items()):
        if question.space in (None, where):
            mine = [entry.message for entry in reader.state.inside(Scope(where, name, ""), "user")]
            last = max((message.at for message in mine), default=None)
            archived = sum(not message.active for message in mine)
            found.append(User(where, name, len(mine), archived, created_at, last, names.get((where, name))))
    return found


def users_page(reader: Reader, question: questions.UsersPage) -> list[ListedUser]:
    """Return a page of the users of a space, last active first."""
    found = [user for user in users(reader, questions.Users(question.space)) if user.id != EVERYBODY]
    if question.users is not None or question.id_part is not None:
        part = question.id_part
        found = [
            user
            for user in found
            if user.id in (question.users or ()) or (part is not None and part.lower() in user.id.lower())
        ]
    found.sort(key=lambda user: (user.last_activity or user.created_at, user.id), reverse=True)
    memories = reader.state.memories.values()
    active = Counter(memory.user for memory in memories if memory.active and memory.space == question.space)
    return [
        ListedUser(user, _first_said(reader, Scope(question.space, user.id, "")), active[user.id])
        for user in found[question.skip : question.skip + question.limit]
    ]


def _first_said(reader: Reader, scope: Scope) -> datetime | None:
    said = (entry.message.at for entry in reader.state.inside(scope, "user") if not entry.message.replaced)
    return min(said, default=None)


def spaces(reader: Reader, _: questions.TotalsOfSpaces) -> list[SpaceTotals]:
    """Return the counts of each space that has users."""
    by_space: dict[str, list[User]] = {}
    for user in users(reader, questions.Users()):
        if user.id != EVERYBODY:
            by_space.setdefault(user.space, []).append(user)
    found = [
        SpaceTotals(
            space,
            len(there),
            sum(user.messages for user in there),
            sum(user.archived for user in there),
            max(user.last_activity or user.created_at for user in there),
        )
        for space, there in by_space.items()
    ]
    return sorted(found, key=lambda each: (-each.last_activity.timestamp(), each.space))


def names(reader: Reader, question: questions.DisplayNames) -> dict[str, str]:
    """Return the display names of a space by user id."""
    every = reader.names.of(reader.state)
    if question.users is not None:
        return {user: every[question.space, user] for user in question.users if (question.space, user) in every}
    return {user: name for (where, user), name in every.items() if where == question.space}
