"""Formats values as texts for a chat."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Final

from aforesaid.assistant.phrases import Phrases
from aforesaid.domain.checks import to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import MemoryStatus
from aforesaid.errors import (
    AforesaidError,
    InvalidInput,
    ModelError,
    NoModel,
    NotFound,
    SourcesChanged,
    SpendingLimit,
    TooLarge,
)
from aforesaid.extras import re
from aforesaid.store.failover import IN_MEMORY, ON_DISK

if TYPE_CHECKING:
    from aforesaid.context import Context
    from aforesaid.facts import ForgetResult, RememberResult
    from aforesaid.facts.describing import KnownPerson
    from aforesaid.profiles.recipe import SectionName

_SHOWN: Final = 20
_FORGOTTEN: Final = 5
"""Maximum forgotten statements that are listed."""
_FOR_MODELS: Final[frozenset[SectionName]] = frozenset({"system", "rules", "persona", "habits", "date"})
"""Context sections with instructions for the model. `/context` shows how long they are, and not their text."""
_LINE: Final = 80
"""Maximum characters of an item in a list of what a model would be sent."""
_STORAGES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_FAILURES: Final[Sequence[tuple[type[AforesaidError], str]]] = (
    (TooLarge, "error.too_long"),
    (InvalidInput, "error.invalid"),
    (NotFound, "error.not_found"),
    (SourcesChanged, "error.changed"),
    (SpendingLimit, "error.spent"),
    (NoModel, "error.no_model"),
    (ModelError, "error.model"),
)
NOT_DURABLE: Final = "bot.not_durable"
_STORED_ELSEWHERE: Final = {ON_DISK: "bot.on_disk", IN_MEMORY: "bot.until_restart"}
"""The text for each notice of a receipt about the store. All other notices say that a summary failed."""
_log: Final = logging.getLogger("aforesaid.assistant")


def failure(error: AforesaidError, say: Phrases) -> str:
    """Return the message about an error for a person, safe in public channels; the details go to the log."""
    _log.warning("a failure was reported in a chat: %s", error)
    if isinstance(error, TooLarge) and error.most is not None:
        return say("error.too_many_bytes", most=error.most)
    return say(next((key for kind, key in _FAILURES if isinstance(error, kind)), "error.memory"))


def notices(receipt: Receipt) -> frozenset[str]:
    """Return the keys of the texts that tell somebody about problems in storing a message; details go to the log."""
    for notice in receipt.notices:
        _log.warning("a notice was given in a chat: %s", notice)
    found = {_STORED_ELSEWHERE.get(notice, "bot.summary_failed") for notice in receipt.notices}
    return frozenset(found if receipt.durable else found | {NOT_DURABLE})


def example(name: str, say: Phrases) -> str:
    """Return a command with what is missing after it: "Remember what? Like this: /remember I like tea"."""
    return say("like_this", question=say(f"ask.{name}"), example=say(f"example.{name}"))


def storage(backend: str, say: Phrases) -> str:
    kind = backend.partition(" ")[0]
    return say(f"storage.{kind}") if f"storage.{kind}" in say else _STORAGES.get(kind, backend)


def rhythm(found: MemoryStatus, say: Phrases) -> str:
    return say(f"rhythm.{found.policy}", threshold=found.threshold)


def status(found: MemoryStatus, say: Phrases, *, group: bool = False) -> str:
    threshold = say("status.threshold", count=found.threshold) if found.threshold else None
    if threshold and group:
        # The messages of each member are counted by themselves.
        threshold = say("status.threshold_each", threshold=threshold)
    return "\n".join(
        [
            say("status.enabled" if found.enabled else "status.disabled"),
            say("status.storage", storage=storage(found.storage, say)),
            threshold or say("status.rhythm", rhythm=rhythm(found, say)),
            say("status.since", number=found.since_last),
            say("status.messages", number=found.messages, archived=found.archived),
            say("status.active", number=found.active_summaries),
            say("status.level", number=found.highest_level),
        ]
    )


def remembered(found: RememberResult, say: Phrases) -> str:
    return say(f"remember.{found.outcome}")


def forgotten(found: ForgetResult, what: str, say: Phrases, said: Sequence[str] = ()) -> str:
    """Return the outcome of forgetting: what is gone, not what was asked for; `said` are sentences that are gone."""
    gone = list(dict.fromkeys([*said, *found.sentences, *map(told, found.memories)]))
    if not gone:
        return say("forget.nothing", what=what)
    shown = gone[:_FORGOTTEN]
    if len(gone) > _FORGOTTEN:
        shown.append(say("forget.more", count=len(gone) - _FORGOTTEN))
    return say("forget.done", what="; ".join(shown))


def told(memory: MemoryRecord) -> str:
    """Return the text of a memory without the speaker's name: "Lives in Porto" for "Ann: Lives in Porto"."""
    return memory.text.partition(": ")[2] or memory.text if memory.value is not None else memory.text


def forget_everything(say: Phrases, name: str | None = None) -> str:
    """Say how everything is erased. A request in a few words does not do it: it may be a slip, or misunderstood."""
    return say("forget.everything") if name is None else say("forget.everything_other", name=name)


def memories(found: Sequence[MemoryRecord], say: Phrases) -> str:
    if not found:
        return say("known.no_memories")
    lines = [
        f"[{say(f'category.{memory.category}').upper()}] {quoted(memory.text, say)} ({memory.importance}/10)"
        for memory in found[:_SHOWN]
    ]
    more = len(found) - _SHOWN
    return "\n".join([*lines, *([say("more", count=more)] if more > 0 else [])])


def coming_up(planned: Sequence[MemoryRecord], reminders: Sequence[MemoryRecord], now: datetime, say: Phrases) -> str:
    """Return events and reminders that are still to come, one per line, soonest first."""
    dated = [(each.happened.start, each) for each in planned if each.happened is not None]
    dated += [(each.remind_at, each) for each in reminders if each.remind_at is not None]
    lines = {}
    for at, each in sorted(dated, key=lambda pair: (pair[0], pair[1].id)):
        local = to_zone(at, now.tzinfo)
        timed = each.remind_at is not None or (each.happened is not None and each.happened.timed)
        lines[each.id] = f"{say.moment_in_list(local) if timed else say.day(local)}  {each.text}"
    return "\n".join(list(lines.values())[:_SHOWN]) or say("small.nothing_planned")


def timeline(found: Sequence[MemoryRecord], zone: tzinfo, say: Phrases) -> str:
    """Return what happened, one event per line; of many, the last ones."""
    if not found:
        return say("known.no_events")
    lines = [say("earlier", count=len(found) - _SHOWN)] if len(found) > _SHOWN else []
    for memory in found[-_SHOWN:]:
        happened = memory.happened
        day = "" if happened is None else f"{to_zone(happened.start, zone):%Y-%m-%d}  "
        lines.append(f"{day}{memory.text}")
    return "\n".join(lines)


def people(found: Sequence[KnownPerson], asked: str, say: Phrases) -> str:
    """Return people, one per line; what is known about one person, if one was asked for."""
    if not found:
        return say("known.nobody", name=asked) if asked else say("known.no_people")
    if not asked:
        return "\n".join(_named(person, say) for person in found[:_SHOWN])
    blocks = []
    for person in found[:_SHOWN]:
        first, last = f"{person.first_mentioned:%Y-%m-%d}", f"{person.last_mentioned:%Y-%m-%d}"
        seen = say("known.mentioned", first=first, last=last)
        blocks.append("\n".join([_named(person, say), *(memory.text for memory in person.memories[:_SHOWN]), seen]))
    return "\n\n".join(blocks)


def _named(person: KnownPerson, say: Phrases) -> str:
    key = f"relation.{person.relation}"
    relation = say(key) if key in say else person.relation
    if person.relation == person.name:
        return relation or person.name
    return person.name if relation is None else say("known.relation", name=person.name, relation=relation)


_LABEL: Final = re.compile(r"^((?:\d\d:\d\d )?)(User|[Aa]ssistant)(?= \(\d{4}-|: )", re.MULTILINE)
"""How a line of a summary or a context begins that was said by the bot, or by somebody without a name."""
_ASKS: Final = re.compile(r'([^\n:"]+) asks: (?=")')


def quoted(text: str, say: Phrases) -> str:
    """Return a summary, a portrait or a memory with the words that Aforesaid adds in the person's language."""
    text = _LABEL.sub(lambda found: found[1] + say(f"speaker.{found[2].lower()}"), text)
    return _ASKS.sub(lambda found: f"{say('known.asks', name=found[1])} ", text)


def context(found: Context, say: Phrases) -> str:
    """Return what a model would be sent, section by section."""
    lines = [say("context.used", count=found.tokens, budget=found.budget)]
    for part in found.sections:
        if part.items:
            lines.append("\n" + say("context.part", name=say(f"context.{part.name}"), count=part.tokens))
            items = (item for item in found.items if item.section == part.name and item.section not in _FOR_MODELS)
            lines += [f"  {_brief(quoted(item.text, say))}" for item in items]
    return "\n".join(lines)


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def hits(found: Sequence[Hit], say: Phrases, *, explained: bool = False) -> str:
    if not found:
        return say("nothing_found")
    lines = []
    for hit in found:
        speaker = "" if hit.message is None else f"{_speaker(hit.message, say)}: "
        kind = "" if hit.kind == "message" else f"{say(f'known.{hit.kind}', number=str(hit.id))}: "
        lines.append(f"{hit.at:%Y-%m-%d}  {kind}{speaker}{quoted(hit.text, say)}")
        if explained:
            lines.append(f"    {hit.explain(lambda words: say(f'explain.{words}'))}")
    return "\n".join(lines)


def _speaker(message: Message, say: Phrases) -> str:
    return say("speaker.assistant") if message.role == "assistant" else message.name or message.author
