"""Rows of an export as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import date, datetime, timedelta
from typing import Any, Final, cast, get_args

from aforesaid.domain.checks import Role, storable
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt, receipt_details
from aforesaid.domain.details import canonical_details
from aforesaid.domain.memory import (
    CATEGORIES,
    KINDS,
    STATES,
    TRUSTS,
    Event,
    Facts,
    MemoryRecord,
    MemoryVersion,
    about_in,
    check_kind,
    check_weights,
    kind_of,
)
from aforesaid.domain.message import Message, message_id, sequence_number
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Quality, Reach, Summary, summary_text
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SummaryRow,
    UserRow,
    VectorOf,
    draft_of,
)
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.json_stream import Fields
from aforesaid.portability.row_importer import NAMES


def somebody(user: str, space: str, thread: str) -> Scope:
    """Return the scope of an imported message. Raises InvalidInput for a reserved user id."""
    if user == EVERYBODY:
        raise InvalidInput(f"{EVERYBODY!r} cannot be a user id: it means all users of a space")
    return Scope.of(user, space, thread)


_REACHES: Final[tuple[Reach, ...]] = get_args(Reach)
_ROLES: Final[tuple[Role, ...]] = get_args(Role)


def encode(row: Row) -> dict[str, Any]:
    """Return a row as JSON values, its kind first."""
    kind = NAMES[type(row)]
    match row:
        case SessionRow(session, automatic):
            body = {**asdict(session), "automatic": automatic}
        case SummaryRow(summary, messages):
            body = {("summary_kind" if name == "kind" else name): value for name, value in asdict(summary).items()}
            body["archived"] = messages
        case MemoryRow(memory, versions):
            body = {**_memory_as_dict(memory), "versions": [_version_as_dict(each) for each in versions]}
        case SettingRow(space, user, setting):
            body = {"space": space, "user": user, **asdict(setting)}
        case Message():
            body = {each.name: getattr(row, each.name) for each in fields(row) if each.name != "details"}
            if row.details is not None:
                body["details"] = json.loads(row.details)
        case ContextReceipt():
            names = {"id": row.id, "space": row.space, "user": row.user, "at": row.at, "reply": row.reply}
            body = {**names, **receipt_details(row)}
        case Facts() | AuditEntry():
            body = {each.name: getattr(row, each.name) for each in fields(row)}
        case _:
            body = cast("Any", row)._asdict()
    return {"kind": kind, **{name: _plain(value) for name, value in body.items()}}


def decode(entry: object) -> Row:
    """Return the row in a JSON object. Raises InvalidInput."""
    found = Fields(entry)
    kind = found.needed("kind")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvalidInput(f"unknown kind {quoted(kind)}; this version knows {', '.join(_READERS)}")
    return reader(found)


def _memory_as_dict(memory: MemoryRecord) -> dict[str, Any]:
    names = {"kind": "memory_kind"}  # `kind` is the kind of the row
    body = {names.get(each.name, each.name): getattr(memory, each.name) for each in fields(memory)}
    event = memory.event
    body["event"] = None if event is None else event._asdict()
    return body


def _version_as_dict(version: MemoryVersion) -> dict[str, Any]:
    before = _memory_as_dict(version.before)
    return {"before": before, "action": version.action, "actor": version.actor, "at": version.at}


def _plain(value: Any) -> Any:  # noqa: ANN401 - takes apart whatever it is given
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _message(found: Fields) -> Message:
    seq, given = found.number("seq", 1), found.name("id")
    if sequence_number(given) is not None and given != message_id(seq, None):
        raise InvalidInput(f"the id {quoted(given)} does not fit the number {seq}")
    text, details = found.text("text"), canonical_details(found.raw("details"))
    if not text and details is None:
        raise InvalidInput("text is empty")
    message = Message(
        seq=seq,
        id=given,
        space=found.name("space"),
        user=found.name("user"),
        thread=found.name("thread"),
        session=found.name("session"),
        role=found.word("role", _ROLES),
        author=found.name("author"),
        name=found.text("name") if found.has("name") else None,
        text=text,
        at=found.moment("at"),
        stored_at=found.moment("stored_at"),
        active=found.flag("active"),
        chunk=found.number("chunk", 1) if found.has("chunk") else None,
        hash=found.blob("hash"),
        replaces=found.number("replaces", 1) if found.has("replaces") else None,
        replaced=found.has("replaced") and found.flag("replaced"),
        details=details,
    )
    somebody(message.user, message.space, message.thread)
    if draft_of(message).hash != message.hash:
        raise InvalidInput("its hash does not match: it is not what was stored")
    return message


def _session(found: Fields) -> SessionRow:
    session = Session(
        id=found.name("id"),
        space=found.name("space"),
        thread=found.name("thread"),
        user=found.name("user"),
        started_at=found.moment("started_at"),
        last_activity=found.moment("last_activity"),
        messages=found.number("messages"),
        timeout=found.seconds("timeout"),
    )
    return SessionRow(session, found.flag("automatic"))


def _summary(found: Fields) -> SummaryRow:
    details = found.raw("details")
    summary = Summary(
        id=found.number("id", 1),
        space=found.name("space"),
        user=found.name("user"),
        thread=found.name("thread"),
        kind=found.name("summary_kind"),
        level=found.number("level", 1),
        text=summary_text(found.text("text")),
        chunks=found.numbers("chunks"),
        sources=found.numbers("sources"),
        first=found.number("first"),
        last=found.number("last"),
        messages=found.number("messages"),
        model=found.text("model") if found.has("model") else None,
        prompt=found.text("prompt"),
        created_at=found.moment("created_at"),
        active=found.flag("active"),
        rolled_back=found.flag("rolled_back"),
        began_at=found.moment("began_at"),
        ended_at=found.moment("ended_at"),
        reach=found.word("reach", _REACHES),
        fresh=found.number("fresh"),
        day=found.day("day") if found.has("day") else None,
        version=found.number("version", 1),
        replaces=found.number("replaces", 1) if found.has("replaces") else None,
        replaced=found.flag("replaced"),
        edited_by=found.text("edited_by") if found.has("edited_by") else None,
        details=Fields(details, "details").values if details is not None else None,
        quality=_quality(found),
        rows=found.number("rows") if found.has("rows") else None,
    )
    if summary.reach == "chunks" and summary.level == 1 and len(summary.chunks) != 1:
        raise InvalidInput("a summary of messages needs exactly one archive")
    if (summary.replaces is None) != (summary.version == 1):
        raise InvalidInput("a version after the first needs the version that it replaces")
    return SummaryRow(summary, found.numbers("archived"))


def _quality(found: Fields) -> Quality | None:
    if not found.has("quality"):
        return None
    inner = Fields(found.raw("quality"), "quality")
    coverage = inner.real("coverage") if inner.has("coverage") else None
    return Quality(inner.real("compression"), coverage, inner.real("grounded"), inner.texts("invented"))


def _memory(found: Fields) -> MemoryRow:
    versions = []
    for each in found.items("versions"):
        version = Fields(each, "a version")
        before = _one_memory(Fields(version.needed("before"), "a version"))
        versions.append(MemoryVersion(before, version.text("action"), version.text("actor"), version.moment("at")))
    return MemoryRow(_one_memory(found), tuple(versions))


def _one_memory(found: Fields) -> MemoryRecord:
    state = found.word("state", STATES)
    importance, priority = found.number("importance"), found.number("priority")
    check_weights(importance, priority)
    event = None
    if found.has("event"):
        inner = Fields(found.raw("event"), "the event")
        event = Event(inner.moment("start"), inner.moment("end"), inner.flag("timed"))
    text = found.text("text")
    if not text:
        raise InvalidInput("text is empty")
    category, tags, subject = (
        found.word("category", CATEGORIES),
        found.texts("tags"),
        found.text("subject") if found.has("subject") else None,
    )
    memory = MemoryRecord(
        id=found.number("id", 1),
        space=found.name("space"),
        user=found.name("user"),
        category=category,
        text=text,
        importance=importance,
        tags=tags,
        sources=found.numbers("sources"),
        created_at=found.moment("created_at"),
        active=state == "active",
        state=state,
        priority=priority,
        speaker=found.name("speaker"),
        subject=subject,
        event=event,
        remind_at=found.moment("remind_at") if found.has("remind_at") else None,
        delivered_at=found.moment("delivered_at") if found.has("delivered_at") else None,
        expires_at=found.moment("expires_at") if found.has("expires_at") else None,
        valid_from=found.moment("valid_from"),
        valid_to=found.moment("valid_to") if found.has("valid_to") else None,
        superseded_by=found.number("superseded_by", 1) if found.has("superseded_by") else None,
        extractor=found.text("extractor"),
        trust=found.word("trust", TRUSTS),
        reason=found.text("reason"),
        times=found.number("times", 1),
        seen_at=found.moment("seen_at"),
        revision=found.number("revision", 1),
        kind=found.word("memory_kind", KINDS) if found.has("memory_kind") else kind_of(category, tags, event, subject),
        about=found.name("about") if found.has("about") else about_in(tags),
        said_at=found.moment("said_at" if found.has("said_at") else "valid_from"),
        language=found.name("language") if found.has("language") else None,
        confidence=found.real("confidence") if found.has("confidence") else None,
    )
    check_kind(memory.kind, memory.about, memory.language, memory.confidence)
    return memory


def _facts(found: Fields) -> Facts:
    return Facts(
        found.name("space"),
        found.name("user"),
        found.text("text"),
        found.number("version", 1),
        found.moment("updated_at"),
        found.text("cause"),
    )


def _setting(found: Fields) -> SettingRow:
    value = found.needed("value")
    if not isinstance(value, str | int | float | bool):
        raise InvalidInput("value must be a text, a number, true or false")
    if isinstance(value, str):
        storable(value, "value")
    setting = Setting(found.name("key"), value, found.moment("updated_at"))
    return SettingRow(found.name("space"), found.name("user"), setting)


def _user(found: Fields) -> UserRow:
    names = (found.name("space"), found.name("user"), found.moment("created_at"))
    return UserRow(*names, found.number("last_chunk"), found.number("extracted"), found.number("looked_through"))


def _day(found: Fields) -> DayRow:
    names = (found.name("policy"), found.name("space"), found.day("day").isoformat())
    return DayRow(*names, found.number("done_at"), found.number("done_seq"))


def _spending(found: Fields) -> SpendingRow:
    return SpendingRow(found.day("day"), found.text("space"), found.text("user"), found.number("tokens"))


def _audit(found: Fields) -> AuditEntry:
    names = (found.text("space"), found.text("user"), found.text("actor"), found.text("action"), found.text("subject"))
    return AuditEntry(found.number("id"), found.moment("at"), *names)


def _receipt(found: Fields) -> ContextReceipt:
    reply = None if found.raw("reply") is None else found.number("reply", 1)
    names = (found.text("id"), found.name("space"), found.name("user"), found.moment("at"))
    return read_receipt(*names, reply, found.values)


def _vector(found: Fields) -> VectorOf:
    return VectorOf(found.name("embedder"), found.name("space"), found.number("seq", 1), found.blob("value"))


def _forgotten(found: Fields) -> ForgottenRow:
    return ForgottenRow(found.name("space"), found.name("user"), found.text("words"), found.number("up_to"))


_READERS: Final[dict[str, Callable[[Fields], Row]]] = {
    "message": _message,
    "session": _session,
    "summary": _summary,
    "memory": _memory,
    "facts": _facts,
    "forgotten": _forgotten,
    "setting": _setting,
    "user": _user,
    "day": _day,
    "spending": _spending,
    "receipt": _receipt,
    "audit": _audit,
    "vector": _vector,
}
