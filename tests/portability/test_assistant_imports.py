"""Conversations with assistants, and the memories of agents."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.store import Store
from aforesaid.store.memories import Memories
from portability.imported import history, lines, load, load_into, packed, said, users, written

pytestmark = pytest.mark.defect("N4")


async def memories(store: Store, user: str) -> list[MemoryRecord]:
    return sorted(await store.read(Memories(Scope.of(user))), key=lambda memory: memory.text)


def chatgpt(*messages: dict[str, Any], title: str = "Tea", number: str = "c1", at: float = 1.7e9) -> dict[str, Any]:
    """Return a conversation in which each message answers the one before."""
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None, "children": []}}
    parent = "root"
    for place, message in enumerate(messages):
        name = f"{number}-{place}"
        content = {"content_type": "text", "parts": [message.pop("text", "")]}
        whole = {
            "id": name,
            "create_time": at + place,
            "content": content,
            "recipient": "all",
            "metadata": {},
            **message,
        }
        mapping[name] = {"id": name, "parent": parent, "children": [], "message": whole}
        parent = name
    return {"title": title, "create_time": at, "conversation_id": number, "current_node": parent, "mapping": mapping}


def by(role: str, text: str = "", **more: object) -> dict[str, Any]:
    return {"author": {"role": role}, "text": text, **more}


async def test_a_picture_that_is_not_in_the_export_of_chatgpt_keeps_its_name(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-AbC", "size_bytes": 5}
    talk = chatgpt(
        by(
            "user",
            content={"content_type": "multimodal_text", "parts": [picture, "Which tea is this?"]},
            metadata={"attachments": [{"id": "file-AbC", "name": "my tea.jpg", "mimeType": "image/jpeg"}]},
        )
    )
    _, store = await load(packed(tmp_path / "export.zip", {"conversations.json": [talk]}))
    ((part,),) = [message.parts for message in await history(store, "me", "chatgpt:c1")]
    assert (part.type, part.name, part.media_type) == ("image", "my tea.jpg", "image/jpeg")


async def test_chatgpt_keeps_pictures_titles_and_sources(tmp_path: Path) -> None:
    code = "\ue200cite\ue202turn0search0\ue201"
    entity = '\ue200entity\ue202["book","The Book of Tea","1906"]\ue201'
    source = {
        "matched_text": code,
        "type": "grouped_webpages",
        "items": [{"title": "Tea Times", "url": "https://example.org/t"}],
    }
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-AbC", "size_bytes": 5}
    drawn = {**picture, "asset_pointer": "sediment://file_00xyz", "metadata": {"dalle": {"prompt": "a teapot"}}}
    talk = chatgpt(
        by("user", content={"content_type": "multimodal_text", "parts": [picture, "Which tea is this?"]}),
        by("assistant", f"Green.{code} Read {entity}【4†source】\ue204", metadata={"content_references": [source]}),
        by("assistant", content={"content_type": "thoughts", "thoughts": []}),
        by("assistant", content={"content_type": "code", "text": "print(1)"}, recipient="python"),
        by("tool", content={"content_type": "execution_output", "text": "1"}),
        by("tool", content={"content_type": "multimodal_text", "parts": [drawn]}),
        by("user", "secret", metadata={"is_visually_hidden_from_conversation": True}),
        by(
            "user",
            "and this file?",
            metadata={"attachments": [{"name": "tea.pdf", "mime_type": "application/pdf", "size": 3}]},
        ),
    )
    archive = packed(tmp_path / "export.zip", {"conversations.json": [talk], "file-AbC-tea.png": b"png"})
    report, store = await load(archive)
    found = await history(store, "me", "chatgpt:c1")
    assert [(message.role, message.text) for message in found] == [
        ("user", "Which tea is this?"),
        ("assistant", "Green. (Tea Times (https://example.org/t)) Read The Book of Tea"),
        ("assistant", ""),
        ("tool", "1"),
        ("tool", "a teapot"),
        ("user", "and this file?"),
    ]
    assert {message.metadata["title"] for message in found} == {"Tea"}
    image = found[0].parts[0]
    assert (image.type, image.name, image.media_type, image.size) == ("image", "file-AbC-tea.png", "image/png", 5)
    assert [(call.name, call.arguments) for call in found[2].tool_calls] == [("python", "print(1)")]
    assert (found[4].parts[0].url, found[4].kind) == ("sediment://file_00xyz", "image")
    assert found[5].parts[0].name == "tea.pdf"
    assert (report.problems, sum(report.skipped.values())) == (0, 2)


async def test_chatgpt_keeps_custom_instructions_once(tmp_path: Path) -> None:
    instructions = by(
        "user",
        content={
            "content_type": "user_editable_context",
            "user_profile": "The user provided this about themselves.\nUser profile:\n```I am a nurse in Berlin.```",
            "user_instructions": "The user provided this.\n```Be brief.```",
        },
        metadata={"is_visually_hidden_from_conversation": True},
    )
    talks = [
        chatgpt(dict(instructions), by("user", "hi"), number="new", at=1.7e9 + 1_000),
        chatgpt(dict(instructions), by("user", "hello"), number="old", at=1.7e9),
    ]
    _, store = await load(written(tmp_path / "conversations.json", talks))
    assert await said(store, "me", "chatgpt:instructions") == ["I am a nurse in Berlin.", "Be brief."]
    assert {message.kind for message in await history(store, "me", "chatgpt:instructions")} == {"instructions"}


async def test_the_oldest_conversation_is_stored_first(tmp_path: Path) -> None:
    talks = [
        chatgpt(by("user", "new"), number="new", at=1.7e9 + 1_000),
        chatgpt(by("user", "old"), number="old", at=1.7e9),
    ]
    _, store = await load(written(tmp_path / "conversations.json", talks))
    assert [message.text for message in sorted(await history(store, "me"), key=lambda each: each.seq)] == ["old", "new"]


def claude(number: str, sender: str, text: str, parent: str | None = None, **more: object) -> dict[str, Any]:
    found: dict[str, Any] = {
        "uuid": number,
        "sender": sender,
        "text": text,
        "created_at": f"2026-03-01T10:00:0{number[1:]}Z",
    }
    return {**found, **({} if parent is None else {"parent_message_uuid": parent}), **more}


async def test_claude_keeps_attachments_titles_and_tools(tmp_path: Path) -> None:
    pasted = {"file_name": "", "file_size": 20, "file_type": "txt", "extracted_content": "the pasted recipe"}
    tool = {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "tea"}}
    thinking = {"type": "thinking", "thinking": "hmm"}
    talk = {
        "uuid": "t",
        "name": "Tea",
        "chat_messages": [
            claude("m1", "human", "What is it?", attachments=[pasted], files=[{"file_name": "cup.jpg"}]),
            claude("m2", "assistant", "Tea.", content=[thinking, tool, {"type": "text", "text": "Tea."}]),
        ],
    }
    _, store = await load(written(tmp_path / "conversations.json", [talk]))
    question, answer = await history(store, "me", "claude:t")
    assert [(part.type, part.name, part.text, part.size) for part in question.parts] == [
        ("file", "pasted text", "the pasted recipe", 20),
        ("image", "cup.jpg", None, None),
    ]
    assert (question.text, question.metadata["title"], answer.text) == ("What is it?", "Tea", "Tea.")
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("web_search", '{"query": "tea"}')]


@pytest.mark.defect("I5")
async def test_what_claude_remembers_becomes_memories(tmp_path: Path) -> None:
    remembered = {
        "conversations_memory": "**Personal context**\n\nAnn lives in Bern.\n\nShe has a tortoise.\n",
        "project_memories": {"p-1": "**Purpose**\n\n- Ann plans a garden."},
        "account_uuid": "a",
    }
    talk = {"uuid": "t", "name": "Tea", "chat_messages": [claude("m1", "human", "tea?")]}
    files = {"conversations.json": [talk], "memories.json": [remembered], "projects.json": [{"uuid": "p-1"}]}
    report, store = await load(packed(tmp_path / "export.zip", files))
    assert [(each.text, each.tags) for each in await memories(store, "me")] == [
        ("Ann lives in Bern.", ("claude",)),
        ("Ann plans a garden.", ("project",)),
        ("She has a tortoise.", ("claude",)),
    ]
    assert report.skipped == {"projects and their documents": 1}
    alone, _ = await load(written(tmp_path / "memories.json", [remembered]))
    assert alone.problems == 1


async def test_claude_imports_the_branch_that_was_shown_last(tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    messages = [
        claude("m1", "human", "tea?", root),
        claude("m2", "assistant", "black", "m1"),
        claude("m3", "assistant", "green", "m1"),
    ]
    report, store = await load(written(tmp_path / "conversations.json", [{"uuid": "t", "chat_messages": messages}]))
    assert await said(store, "me", "claude:t") == ["tea?", "green"]
    assert sum(report.skipped.values()) == 1


def gemini(minute: int, title: str, html: str | None = None, **more: object) -> dict[str, Any]:
    stamp = f"2026-03-01T10:{minute:02}:00.123Z"
    found: dict[str, Any] = {
        "header": "Gemini Apps",
        "title": title,
        "time": stamp,
        "products": ["Gemini Apps"],
        **more,
    }
    return found if html is None else {**found, "safeHtmlItem": [{"html": html}]}


async def test_gemini_from_takeout(tmp_path: Path) -> None:
    link = [{"name": "x", "url": "https://gemini.google.com/app/aaaaaaaaaaaaaaaa"}]
    activity = [
        gemini(9, "Created a gem"),
        gemini(3, "Prompted And milk?", "<p>No.</p>", details=link, attachedFiles=["milk.png"]),
        gemini(
            1,
            "Prompted Which tea?",
            "<p>Try <b>green</b> &amp; <a href='https://example.org/t'>this</a>:</p><ul><li>Sencha</li></ul>",
        ),
    ]
    archive = packed(tmp_path / "takeout.zip", {"Takeout/My Activity/Gemini Apps/MyActivity.json": activity})
    report, store = await load(archive, user="ann")
    assert (report.format, report.problems, sum(report.skipped.values())) == ("gemini", 0, 1)
    assert [(message.role, message.text) for message in await history(store, "ann")] == [
        ("user", "Which tea?"),
        ("assistant", "Try green & this (https://example.org/t):\n\n- Sencha"),
        ("user", "And milk?"),
        ("assistant", "No."),
    ]
    assert await said(store, "ann", "gemini:aaaaaaaaaaaaaaaa") == ["And milk?", "No."]


async def test_gemini_as_a_page(tmp_path: Path) -> None:
    def cell(question: str, stamp: str, answer: str) -> str:
        body = f"Prompted&nbsp;{question}<br>{stamp}<br>{answer}"
        content = "content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1"
        return (
            '<div class="outer-cell mdl-cell mdl-shadow--2dp"><div class="mdl-grid">'
            '<div class="header-cell mdl-cell"><p class="mdl-typography--title">Gemini Apps<br></p></div>'
            f'<div class="{content}">{body}</div><div class="{content} mdl-typography--text-right"></div>'
            '<div class="content-cell mdl-cell mdl-typography--caption"><b>Products:</b><br>Gemini</div>'
            "</div></div>"
        )

    page = (
        "<html><head><style>.x{}</style></head><body><div class='mdl-grid'>"
        + cell("And milk?", "Mar 1, 2026, 11:03:00\u202fAM CET", "<p>No.</p>")
        + cell("Which tea?", "Mar 1, 2026, 11:01:00\u202fAM CET", "<div><p>Green.</p></div>")
        + "</div></body></html>"
    )
    report, store = await load(written(tmp_path / "MyActivity.html", page))
    assert (report.format, report.problems) == ("gemini", 0)
    found = await history(store, "me")
    assert [message.text for message in found] == ["Which tea?", "Green.", "And milk?", "No."]
    assert found[0].at == datetime(2026, 3, 1, 10, 1, tzinfo=UTC)


async def test_openai_keeps_tool_calls_results_and_pictures(tmp_path: Path) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Berlin"}'}}
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://x/cup.png"}},
    ]
    talk = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": content},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"type": "function_call", "call_id": "call_2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_2", "output": "done"},
    ]
    report, store = await load(lines(tmp_path / "talk.jsonl", *talk))
    found = await history(store, "me")
    assert [(message.role, message.text) for message in found] == [
        ("system", "Be kind."),
        ("user", "What is this?"),
        ("assistant", ""),
        ("tool", "rain"),
        ("assistant", ""),
        ("tool", "done"),
    ]
    assert (found[1].parts[0].url, found[1].parts[0].media_type) == ("https://x/cup.png", "image/png")
    assert [(each.id, each.name, each.arguments) for each in found[2].tool_calls] == [
        ("call_1", "weather", '{"city":"Berlin"}')
    ]
    assert [message.tool_call_id for message in found] == [None, None, None, "call_1", None, "call_2"]
    assert report.problems == 0


async def test_a_single_conversation_on_many_lines(tmp_path: Path) -> None:
    talk = {"messages": [{"role": "user", "content": "tea?"}, {"role": "assistant", "content": "green"}]}
    report, store = await load(written(tmp_path / "talk.json", json.dumps(talk, indent=2)))
    assert (report.problems, await said(store, "me")) == (0, ["tea?", "green"])


LANGCHAIN = [
    {"type": "human", "data": {"content": "tea?", "type": "human", "id": "m1"}},
    {
        "type": "ai",
        "data": {
            "content": "",
            "type": "ai",
            "id": "m2",
            "tool_calls": [{"name": "brew", "args": {"kind": "green"}, "id": "c1"}],
        },
    },
    {"type": "tool", "data": {"content": "done", "type": "tool", "tool_call_id": "c1", "id": "m3"}},
]


async def test_a_langchain_history(tmp_path: Path) -> None:
    report, store = await load(written(tmp_path / "kitchen.json", LANGCHAIN))
    assert (report.format, report.problems) == ("langchain", 0)
    found = await history(store, "me", "langchain:kitchen")
    assert [(message.role, message.text, message.tool_call_id) for message in found] == [
        ("user", "tea?", None),
        ("assistant", "", None),
        ("tool", "done", "c1"),
    ]
    assert [(call.name, json.loads(call.arguments)) for call in found[1].tool_calls] == [("brew", {"kind": "green"})]


@pytest.mark.parametrize(
    "entry",
    [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "HumanMessage"],
            "kwargs": {"content": "tea?"},
        },
        {"type": "human", "content": "tea?", "id": "m1"},
        {"values": {"messages": [{"type": "human", "content": "tea?"}]}},
        {"messages": [{"type": "human", "content": "tea?"}]},
    ],
)
async def test_other_forms_of_langchains_messages(tmp_path: Path, entry: dict[str, Any]) -> None:
    report, store = await load(written(tmp_path / "kitchen.json", [entry]))
    assert (report.format, await said(store, "me")) == ("langchain", ["tea?"])


async def test_langchains_and_langgraphs_databases(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        connection.execute("INSERT INTO message_store VALUES (1, 's1', ?)", (json.dumps(LANGCHAIN[0]),))
        connection.execute("INSERT INTO message_store VALUES (2, 's1', '{broken')")
        connection.execute(
            "CREATE TABLE store (prefix TEXT, key TEXT, value TEXT, created_at TIMESTAMP, updated_at TIMESTAMP)"
        )
        value = json.dumps({"kind": "Memory", "content": {"content": "likes tea"}, "topic": "food"})
        connection.execute(
            "INSERT INTO store VALUES ('memories.ann', 'k1', ?, '2026-03-01 10:00:00', '2026-03-02 10:00:00')", (value,)
        )
    connection.close()
    report, store = await load(path)
    assert (report.format, report.found, report.problems) == ("langchain", {"message": 1, "memory": 1}, 1)
    assert report.examples[0].where == "row 2 of message_store"
    assert await said(store, "me", "langchain:s1") == ["tea?"]
    (memory,) = await memories(store, "ann")
    assert (memory.text, memory.tags, memory.created_at) == (
        "likes tea",
        ("memories", "topic=food"),
        datetime(2026, 3, 1, 10, tzinfo=UTC),
    )


async def test_the_items_of_a_langgraph_store(tmp_path: Path) -> None:
    times = {"created_at": "2026-03-01T10:00:00+00:00", "updated_at": "2026-03-01T10:00:00+00:00"}
    item = {"namespace": ["users", "ann", "facts"], "key": "k", "value": {"text": "lives in Berlin"}, **times}
    report, store = await load(written(tmp_path / "items.json", [item]))
    (memory,) = await memories(store, "ann")
    assert (report.format, memory.text, memory.category) == ("langchain", "lives in Berlin", "fact")


async def test_mem0_keeps_categories_and_metadata(tmp_path: Path) -> None:
    entry = {
        "id": "a",
        "memory": "likes green tea",
        "user_id": "ann",
        "agent_id": "barista",
        "categories": ["user_preferences", "food"],
        "metadata": {"place": "Berlin", "cups": 2, "nested": {"x": 1}},
        "created_at": "2026-03-01T10:00:00-07:00",
    }
    report, store = await load(written(tmp_path / "mem0.json", {"results": [entry], "relations": [{"source": "ann"}]}))
    (memory,) = await memories(store, "ann")
    assert (memory.category, memory.tags) == (
        "preference",
        ("user_preferences", "food", "place=Berlin", "cups=2", "agent_id=barista"),
    )
    assert sum(report.skipped.values()) == 1


async def test_memories_can_become_those_of_one_user(tmp_path: Path) -> None:
    entry = {"id": "a", "memory": "likes tea", "user_id": "u-123", "created_at": "2026-03-01T10:00:00Z"}
    _, store = await load(written(tmp_path / "mem0.json", [entry]), user="ann")
    assert [memory.text for memory in await memories(store, "ann")] == ["likes tea"]


def send(text: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "send_message", "arguments": json.dumps({"message": text})},
        }
    ]


def letta(number: int, role: str, text: str, **more: object) -> dict[str, Any]:
    stamp = f"2026-03-01T10:00:0{number}+00:00"
    return {"role": role, "content": [{"type": "text", "text": text}], "created_at": stamp, **more}


LETTA_MESSAGES = [
    letta(0, "system", "You are Letta."),
    letta(1, "user", json.dumps({"type": "login", "last_login": "never"})),
    letta(2, "user", json.dumps({"type": "user_message", "message": "I like tea", "time": "x"})),
    letta(3, "assistant", "The user likes tea. I should answer.", tool_calls=send("Noted!")),
    letta(4, "tool", json.dumps({"status": "OK", "message": "None"}), tool_call_id="c1"),
]


@pytest.mark.parametrize(("new_form", "as_text"), [(False, False), (True, False), (True, True)])
async def test_a_letta_agent_file(tmp_path: Path, *, new_form: bool, as_text: bool) -> None:
    blocks = [
        {"id": "block-0", "label": "human", "value": "- Name: Ann\n- Likes tea\n"},
        {"id": "block-1", "label": "void-persona", "value": "I am kind."},
    ]
    agent: dict[str, Any] = {"name": "barista", "messages": LETTA_MESSAGES}
    value: dict[str, Any] = (
        {"agents": [{**agent, "id": "agent-0", "block_ids": ["block-0", "block-1"]}], "groups": [], "blocks": blocks}
        if new_form
        else {"agent_type": "memgpt_agent", "core_memory": blocks, **agent}
    )
    source = written(tmp_path / "barista.af", value)
    if as_text:
        source.write_text(json.dumps(source.read_text("utf-8")), "utf-8")
    report, store = await load(source, user="ann")
    assert (report.format, report.problems) == ("letta", 0)
    assert [(message.role, message.text) for message in await history(store, "ann", "letta:barista")] == [
        ("user", "I like tea"),
        ("assistant", "Noted!"),
    ]
    assert [(memory.text, memory.category) for memory in await memories(store, "ann")] == [
        ("Likes tea", "fact"),
        ("Name: Ann", "fact"),
    ]


async def test_the_report_names_the_people(tmp_path: Path) -> None:
    text = "14.03.26, 21:05 - Ann: tea?\n14.03.26, 21:06 - Bob: yes\n14.03.26, 21:07 - Bob: please\n"
    report, store = await load(written(tmp_path / "_chat.txt", text))
    assert [(user.id, user.name, user.messages) for user in report.users] == [("Bob", "Bob", 2), ("Ann", "Ann", 1)]
    assert report.user_count == len(await users(store))
    alone = await load_into(store, tmp_path / "_chat.txt", user="ann", dry_run=True)
    assert [(user.id, user.messages) for user in alone.users] == [("ann", 3)]
