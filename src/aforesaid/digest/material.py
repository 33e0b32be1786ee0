"""Prepares the sources of a summary, for a model and for the rules without one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, tzinfo
from typing import Final, NamedTuple

from aforesaid.domain.checks import to_zone
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.summary import Summary
from aforesaid.models.offline import Spoken, Summarised
from aforesaid.models.prompts import Fenced, Line, enclose, fence, lines_of

LONGEST: Final = 8_000
"""Maximum characters of a message shown to a model."""


class Person(NamedTuple):
    """A participant of a day."""

    user: str
    name: str


class DayTalk(NamedTuple):
    """The messages of a day in a space or a direct chat, and the people to summarise it for."""

    day: date
    people: tuple[Person, ...]
    messages: tuple[Message, ...]


def newest(messages: Sequence[Message]) -> list[Message]:
    """Return the newest versions of messages, by when they were said. Those that were taken back have none."""
    return in_time_order(message for message in messages if not message.replaced)


def shown_numbers(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the sequence numbers of the messages whose texts are shown to what writes a summary."""
    return tuple(message.seq for message in messages if not message.replaced)


def shown(messages: Sequence[Message], zone: tzinfo) -> list[Line]:
    """Return messages as they are shown, in the order of `newest`: names for ids, the time as people read it."""
    return [line._replace(text=line.text[:LONGEST], at=local(line.at, zone)) for line in lines_of(newest(messages))]


def fenced(messages: Sequence[Message], zone: tzinfo) -> Fenced:
    """Return messages for a prompt."""
    return fence(shown(messages, zone))


def spoken(messages: Sequence[Message], zone: tzinfo) -> list[Spoken]:
    """Return messages for the rules without a model."""
    return [Spoken(line.speaker, line.text, line.at, line.role) for line in shown(messages, zone)]


def fenced_summaries(summaries: Sequence[Summary], zone: tzinfo) -> Fenced:
    """Return summaries for a prompt, each with the time that it covers."""
    return enclose(
        "summaries",
        "summary",
        (({"from": _day(each.began_at, zone), "to": _day(each.ended_at, zone)}, each.text) for each in summaries),
    )


def summarised(summaries: Sequence[Summary], zone: tzinfo) -> list[Summarised]:
    """Return summaries for the rules without a model."""
    return [Summarised(each.text, local(each.began_at, zone), local(each.ended_at, zone)) for each in summaries]


def local(at: datetime | None, zone: tzinfo) -> datetime | None:
    """Return a time in a time zone."""
    return None if at is None else to_zone(at, zone)


def _day(at: datetime, zone: tzinfo) -> str:
    return (local(at, zone) or at).date().isoformat()
