"""What people have elsewhere: every format is recognised, and times, speakers and order are kept."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import aforesaid
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput
from aforesaid.portability.formats.base import ReadOptions
from aforesaid.portability.importing import ImportOptions, Loaded, Loader
from aforesaid.portability.json_stream import CHUNK, Damaged, JsonStream
from aforesaid.store import Store, open_store
from aforesaid.store.memories import Memories
from aforesaid.store.messages import Messages
from aforesaid.store.people import Users

BERLIN = ZoneInfo("Europe/Berlin")


async def load(path: Path, **options: Any) -> tuple[Loaded, Store]:  # noqa: ANN401
    store = await open_store(":memory:")
    options.setdefault("reading", ReadOptions(zone=BERLIN))
    taking = ImportOptions(**options)
    report = await Loader(store, taking).load(path)
    again = await Loader(store, taking).load(path)
    assert not {kind: count for kind, count in again.new.items() if count}, "loading twice stored something twice"
    return report, store


async def said(store: Store, user: str, thread: str) -> list[tuple[str, str, str | None, str]]:
    """Return who said what in a thread, in order."""
    messages = await store.read(Messages(Scope.of(user, thread=thread), within="thread", limit=1_000))
    return [(message.role, message.author, message.name, message.text) for message in messages]


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def packed(path: Path, **files: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            text = value if isinstance(value, str) else json.dumps(value)
            archive.writestr(name.replace("__", "/").replace("_DOT_", "."), text)
    return path


def node(name: str, parent: str | None, role: str, text: str, at: float | None) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "create_time": at, "content": content}
    return {"id": name, "parent": parent, "message": message, "children": []}


CHATGPT = [
    {
        "title": "Tea",
        "conversation_id": "c1",
        "current_node": "a2",
        "mapping": {
            "root": {"id": "root", "parent": None, "message": None, "children": ["s"]},
            "s": node("s", "root", "system", "", None),
            "q": node("q", "s", "user", "Which tea?", 1_700_000_000.5),
            "a1": node("a1", "q", "assistant", "Black.", 1_700_000_001.0),
            "a2": node("a2", "q", "assistant", "Green.", 1_700_000_002.25),
        },
    },
    {"title": "broken", "conversation_id": "c2", "mapping": 7},
    {"title": "next", "conversation_id": "c3", "mapping": {"x": node("x", None, "user", "Still here?", 1.7e9)}},
]


@pytest.mark.parametrize("archive", [False, True])
async def test_chatgpt(tmp_path: Path, *, archive: bool) -> None:
    source = (
        packed(tmp_path / "export.zip", conversations_DOT_json=CHATGPT, user_DOT_json={"id": "u"})
        if archive
        else written(tmp_path / "conversations.json", CHATGPT)
    )
    report, store = await load(source, user="ann")
    assert (report.format, report.found["message"], report.problems) == ("chatgpt", 3, 1)
    assert report.examples[0].where == "conversation 2"
    assert await said(store, "ann", "chatgpt:c1") == [
        ("user", "ann", None, "Which tea?"),
        ("assistant", "assistant", None, "Green."),
    ]
    (first, *_) = await store.read(Messages(Scope.of("ann", thread="chatgpt:c1"), within="thread"))
    assert first.at == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)


async def test_claude(tmp_path: Path) -> None:
    messages = [
        {"uuid": "m1", "sender": "human", "text": "Hi", "created_at": "2026-03-01T10:00:00.000000Z"},
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "",
            "content": [{"type": "text", "text": "Hello"}],
            "created_at": "2026-03-01T10:00:01Z",
        },
        {"uuid": "m3", "sender": "martian", "text": "?", "created_at": "2026-03-01T10:00:02Z"},
        {"uuid": "m4", "sender": "human", "text": "", "attachments": [{"file_name": "tax.pdf"}], "created_at": None},
    ]
    source = written(tmp_path / "conversations.json", [{"uuid": "t", "name": "x", "chat_messages": messages}])
    report, store = await load(source)
    assert (report.format, report.problems) == ("claude", 1)
    assert report.examples[0].where == "conversation 1, message 3"
    assert [text for *_, text in await said(store, "me", "claude:t")] == ["Hi", "Hello", ""]


TELEGRAM = {
    "name": "Family",
    "type": "private_group",
    "id": 4711,
    "messages": [
        {"id": 1, "type": "service", "date": "2026-03-01T10:00:00", "action": "create_group", "text": ""},
        {
            "id": 2,
            "type": "message",
            "date": "2026-03-01T11:00:00",
            "date_unixtime": "1772359200",
            "from": "Ann",
            "from_id": "user1",
            "text": ["Look: ", {"type": "link", "text": "example.org"}, "!"],
        },
        {"id": 3, "type": "message", "date": "2026-03-01T12:00:00", "from": "Bob", "from_id": "user2", "text": "ok"},
        {"id": 4, "type": "message", "date": "nonsense", "from": "Bob", "from_id": "user2", "text": "when?"},
        {"id": 5, "type": "message", "date": "2026-03-01T12:00:00", "from": "Bob", "from_id": "user2", "text": "ok"},
        {
            "id": 6,
            "type": "message",
            "date": "2026-03-01T12:01:00",
            "from": "Ann",
            "from_id": "user1",
            "text": "",
            "photo": "photos/1.jpg",
        },
    ],
}


@pytest.mark.parametrize("everything", [False, True])
async def test_telegram(tmp_path: Path, *, everything: bool) -> None:
    value = {"about": "x", "chats": {"about": "y", "list": [TELEGRAM]}} if everything else TELEGRAM
    report, store = await load(written(tmp_path / "result.json", value))
    assert (report.format, report.found["message"], report.problems) == ("telegram", 4, 1)
    assert report.examples[0].where.endswith("message 4")
    assert await said(store, "user1", "telegram:4711") == [
        ("user", "user1", "Ann", "Look: example.org!"),
        ("user", "user2", "Bob", "ok"),
        ("user", "user2", "Bob", "ok"),
        ("user", "user1", "Ann", ""),
    ]
    times = [message.at for message in await store.read(Messages(Scope.of("user2")))]
    assert times == [datetime(2026, 3, 1, 11, 0, tzinfo=UTC)] * 2


async def test_a_chat_among_people_can_become_one_persons_memory(tmp_path: Path) -> None:
    _, store = await load(written(tmp_path / "result.json", TELEGRAM), user="ann")
    assert [user.id for user in await store.read(Users())] == ["ann"]
    assert {message.author for message in await store.read(Messages(Scope.of("ann")))} == {"user1", "user2"}


async def test_discord(tmp_path: Path) -> None:
    def entry(number: str, author: dict[str, Any], text: str, **more: object) -> dict[str, Any]:
        stamp = f"2026-03-01T10:00:0{number}.5+00:00"
        return {"id": number, "type": "Default", "timestamp": stamp, "content": text, "author": author, **more}

    ann, bot = {"id": "1", "name": "ann", "nickname": "Annie", "isBot": False}, {"id": "9", "name": "b", "isBot": True}
    value = {
        "guild": {"id": "10", "name": "Home"},
        "channel": {"id": "77", "name": "general"},
        "messages": [
            entry("1", ann, "hello bot"),
            entry("2", bot, "hello Annie"),
            entry("3", ann, "", attachments=[{"fileName": "cat.png"}]),
            entry("4", ann, "joined", type="GuildMemberJoin"),
            {"id": "5", "type": "Default", "timestamp": "2026-03-01T10:00:05+00:00", "content": "no author"},
        ],
        "messageCount": 5,
    }
    report, store = await load(written(tmp_path / "general.json", value))
    assert (report.format, report.problems, sum(report.skipped.values())) == ("discord", 1, 1)
    assert await said(store, "1", "discord:77") == [
        ("user", "1", "Annie", "hello bot"),
        ("assistant", "9", "b", "hello Annie"),
        ("user", "1", "Annie", ""),
    ]
    assert [user.id for user in await store.read(Users())] == ["1"], "the answer belongs to whom it was given"


WHATSAPP = {
    "us android": ("3/1/26, 9:05 PM - Ann: tea?\n3/14/26, 9:06 PM - Bob: yes\nplease\n", (3, 1, 21, 5)),
    "de android": ("01.03.26, 21:05 - Ann: tea?\n14.03.26, 21:06 - Bob: yes\nplease\n", (3, 1, 21, 5)),
    "gb android": ("01/03/2026, 21:05 - Ann: tea?\n14/03/2026, 21:06 - Bob: yes\nplease\n", (3, 1, 21, 5)),
    "de iphone": ("\ufeff[01.03.26, 21:05:09] Ann: tea?\n\u200e[14.03.26, 21:06:00] Bob: yes\nplease\n", (3, 1, 21, 5)),
    "us iphone": ("[3/1/26, 9:05:09\u202fPM] Ann: tea?\n[3/14/26, 9:06:00\u202fPM] Bob: yes\nplease\n", (3, 1, 21, 5)),
    "nl android": ("01-03-2026 21:05 - Ann: tea?\n14-03-2026 21:06 - Bob: yes\nplease\n", (3, 1, 21, 5)),
    "es android": ("1/3/26, 9:05 p. m. - Ann: tea?\n14/3/26, 9:06 p. m. - Bob: yes\nplease\n", (3, 1, 21, 5)),
    "iso": ("2026-03-01, 21:05 - Ann: tea?\n2026-03-14, 21:06 - Bob: yes\nplease\n", (3, 1, 21, 5)),
    "cn iphone": ("[2026/3/1 下午9:05:09] Ann: tea?\n[2026/3/14 下午9:06:00] Bob: yes\nplease\n", (3, 1, 21, 5)),
    "short days first": ("05/03/26, 21:05 - Ann: tea?\n01/04/26, 21:06 - Bob: yes\nplease\n", (3, 5, 21, 5)),
}


@pytest.mark.parametrize("kind", WHATSAPP)
async def test_whatsapp(tmp_path: Path, kind: str) -> None:
    text, (month, day, hour, minute) = WHATSAPP[kind]
    path = tmp_path / "WhatsApp Chat with Bob.txt"
    path.write_text(text, "utf-8")
    report, store = await load(path)
    assert (report.format, report.found, report.problems) == ("whatsapp", {"message": 2}, 0)
    assert await said(store, "Ann", "whatsapp:Bob") == [
        ("user", "Ann", "Ann", "tea?"),
        ("user", "Bob", "Bob", "yes\nplease"),
    ]
    (first,) = await store.read(Messages(Scope.of("Ann")))
    local = first.at.astimezone(BERLIN)
    assert (local.month, local.day, local.hour, local.minute) == (month, day, hour, minute)


async def test_whatsapp_keeps_equal_messages_apart_and_leaves_notes_out(tmp_path: Path) -> None:
    lines = ["1/3/26, 21:05 - Messages are end-to-end encrypted.", *["1/3/26, 21:05 - Ann: ok"] * 3]
    path = tmp_path / "_chat.txt"
    path.write_text("\n".join(lines), "utf-8")
    report, store = await load(path)
    assert (report.found["message"], sum(report.skipped.values())) == (3, 1)
    assert len(await store.read(Messages(Scope.of("Ann")))) == 3


@pytest.mark.parametrize("archive", [False, True])
async def test_slack(tmp_path: Path, *, archive: bool) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"display_name": "Annie"}}, {"id": "U2", "name": "bob"}]
    first = [
        {"type": "message", "user": "U1", "text": "hi <@U2>", "ts": "1772359200.000100"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "text": "joined", "ts": "1772359201.000100"},
        {"type": "message", "bot_id": "B1", "text": "beep", "ts": "1772359202.000100", "subtype": "bot_message"},
    ]
    second = [{"type": "message", "user": "U2", "text": "yes", "ts": "1772445600.000100"}, 17]
    files = {
        "users.json": users,
        "channels.json": [],
        "general/2026-03-02.json": second,
        "general/2026-03-01.json": first,
    }
    if archive:
        source = tmp_path / "slack.zip"
        with zipfile.ZipFile(source, "w") as out:
            for name, value in files.items():
                out.writestr(name, json.dumps(value))
    else:
        source = tmp_path / "slack"
        for name, value in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            written(source / name, value)
    report, store = await load(source)
    assert (report.format, report.problems) == ("slack", 1)
    assert report.examples[0].where == "general/2026-03-02.json, message 2"
    assert await said(store, "U1", "slack:general") == [
        ("user", "U1", "Annie", "hi @bob"),
        ("assistant", "B1", None, "beep"),
        ("user", "U2", "bob", "yes"),
    ]


async def test_openai_lines_and_lists(tmp_path: Path) -> None:
    single = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}], "timestamp": "2026-03-01T10:00:00+00:00"},
        {"role": "assistant", "content": "Hello", "timestamp": 1_772_359_200},
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join([*map(json.dumps, single), "{broken", "", '{"role": "alien", "content": "x"}']), "utf-8")
    report, store = await load(path, user="ann")
    assert (report.format, report.found["message"], report.problems) == ("openai", 3, 2)
    assert [problem.where for problem in report.examples] == ["line 4", "line 6"]
    assert [text for *_, text in await said(store, "ann", "direct:ann")] == ["Be kind.", "Hi", "Hello"]
    talks = written(tmp_path / "talks.json", [{"messages": single}, {"messages": single}])
    report, store = await load(talks)
    assert (report.format, report.found["message"]) == ("openai", 6)
    threads = {message.thread for message in await store.read(Messages(Scope.of("me")))}
    assert [len(await said(store, "me", thread)) for thread in threads] == [3, 3]


async def test_each_openai_conversation_has_a_thread_of_its_own_in_every_file(tmp_path: Path) -> None:
    def talk(name: str, *texts: str) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"messages": [{"role": "user", "content": text} for text in texts]}), "utf-8")
        return path

    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        start = ("one", "two", "three", "four")
        for file in (talk("a.jsonl", *start), talk("b.jsonl", "another"), talk("c.jsonl", *start, "five")):
            await memory.load(file, user="me")
        found = await memory.user("me").threads()
        assert sorted(thread.messages for thread in found) == [1, 5], "c.jsonl is a.jsonl, continued"


@pytest.mark.parametrize("lines", [False, True])
async def test_mem0(tmp_path: Path, *, lines: bool) -> None:
    memories = [
        {"id": "a", "memory": "likes tea", "user_id": "ann", "created_at": "2026-03-01T10:00:00-07:00"},
        {
            "id": "b",
            "memory": "Dentist on Monday",
            "user_id": "ann",
            "created_at": "2026-03-02T10:00:00-07:00",
            "metadata": {"category": "schedule"},
        },
        {"id": "c", "memory": "no time", "user_id": "ann"},
    ]
    path = tmp_path / "mem0.json"
    if lines:
        path.write_text("\n".join(map(json.dumps, memories)), "utf-8")
    else:
        written(path, {"results": memories})
    report, store = await load(path)
    assert (report.format, report.found, report.problems) == ("mem0", {"memory": 2}, 1)
    found = sorted(await store.read(Memories(Scope.of("ann"))), key=lambda memory: memory.id)
    assert [(memory.text, memory.category, memory.extractor) for memory in found] == [
        ("likes tea", "other", "mem0"),
        ("Dentist on Monday", "schedule", "mem0"),
    ]
    assert found[0].created_at == datetime(2026, 3, 1, 17, 0, tzinfo=UTC)


async def test_archive_bombs_encrypted_and_broken_archives_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("conversations.json", "[" + " " * (80 * 1024 * 1024) + "]")
    with pytest.raises(InvalidInput, match="archive bomb"):
        await load(bomb)
    whole = packed(tmp_path / "whole.zip", conversations_DOT_json=CHATGPT).read_bytes()
    broken = tmp_path / "broken.zip"
    broken.write_bytes(whole[:60] + b"\xff" * 40 + whole[100:])
    with pytest.raises(InvalidInput, match="cannot be unpacked"):
        await load(broken)
    secret = bytearray(whole)
    secret[6] |= 1
    secret[whole.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "secret.zip").write_bytes(secret)
    with pytest.raises(InvalidInput, match="is encrypted"):
        await load(tmp_path / "secret.zip")


async def test_deep_nesting_and_a_torn_file_cost_only_what_is_damaged(tmp_path: Path) -> None:
    good = json.dumps(TELEGRAM["messages"][1])  # type: ignore[index]
    deep = '{"id": 9, "type": "message", "x": ' + "[" * 50_000 + "]" * 50_000 + "}"
    path = tmp_path / "result.json"
    path.write_text(f'{{"name": "x", "type": "t", "id": 1, "messages": [{deep}, {good}, {{"id": "unfinished', "utf-8")
    report, _ = await load(path)
    assert report.found == {"message": 1}
    assert [problem.where for problem in report.examples] == ["message 1", "the rest"]
    assert "nested too deeply" in report.examples[0].why


def test_json_of_any_size_is_read_in_pieces() -> None:
    text = 'quote " and \\ and ü'
    values = [{"n": number, "text": text * (number % 50), "list": [1.5, None, True]} for number in range(9_000)]
    whole = json.dumps(values)
    assert len(whole) > 3 * CHUNK
    stream = JsonStream(io.BytesIO(whole.encode()))
    assert [stream.value() for _ in stream.elements()] == values
    skipped = JsonStream(io.BytesIO(whole.encode()))
    assert sum(1 for _ in skipped.elements()) == len(values)


def test_a_value_that_is_too_large_is_passed_over() -> None:
    whole = json.dumps([1, "x" * (3 * CHUNK), {"y": "\\" * 5_000_000}, 2])
    stream = JsonStream(io.BytesIO(whole.encode()), largest=1_000)
    found: list[object] = []
    for _ in stream.elements():
        try:
            found.append(stream.value())
        except Damaged as error:
            found.append(str(error))
    assert found == [1, "it has more than 1,000 characters", "it has more than 1,000 characters", 2]


def walk(text: str) -> None:
    stream = JsonStream(io.BytesIO(text.encode()))
    for _ in stream.members() if text.startswith("{") else stream.elements():
        stream.value()


@pytest.mark.parametrize("text", ["", "[", "[1", "[1,", "[,]", '{"a"', '{"a":}', '{"a":1', "[1 2]", "{1:2}", "nope"])
def test_broken_json_is_told_and_never_loops(text: str) -> None:
    with pytest.raises(InvalidInput):
        walk(text)
