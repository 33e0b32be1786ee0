from __future__ import annotations

import json

import pytest

pytest.importorskip("anthropic", reason="Anthropic's SDK is not installed (make test-integrations)")

from anthropic import Anthropic
from anthropic.lib.tools import ToolError

import aforesaid
from aforesaid.integrations.anthropic_memory import AforesaidMemoryTool, AsyncAforesaidMemoryTool
from integrations.anthropic_server import ScriptedClaude


def call(tool: AforesaidMemoryTool, command: str, **arguments: object) -> str:
    return str(tool.call({"command": command, **arguments}))


@pytest.fixture
def tool(memory: aforesaid.SyncMemory) -> AforesaidMemoryTool:
    return AforesaidMemoryTool(memory, "ann")


def test_a_file_goes_through_every_command(tool: AforesaidMemoryTool) -> None:
    call(tool, "create", path="/memories/ann.md", file_text="lives in Bern\nlikes tea\n")
    call(tool, "str_replace", path="/memories/ann.md", old_str="Bern", new_str="Basel")
    call(tool, "insert", path="/memories/ann.md", insert_line=1, insert_text="has a tortoise")
    call(tool, "rename", old_path="/memories/ann.md", new_path="/memories/people/ann.md")
    shown = call(tool, "view", path="/memories/people/ann.md")
    assert [line.partition("\t")[2] for line in shown.split("\n")[1:]] == [
        "lives in Basel", "has a tortoise", "likes tea", "",
    ]  # fmt: skip
    assert "\t/memories/people/ann.md" in call(tool, "view", path="/memories")
    call(tool, "delete", path="/memories/people")
    with pytest.raises(ToolError, match="does not exist"):
        call(tool, "view", path="/memories/people/ann.md")


def test_line_endings_and_empty_files_are_kept(tool: AforesaidMemoryTool) -> None:
    call(tool, "create", path="/memories/dos.txt", file_text="one\r\ntwo\r\n")
    call(tool, "str_replace", path="/memories/dos.txt", old_str="two", new_str="2")
    assert "2\r" in call(tool, "view", path="/memories/dos.txt")
    call(tool, "create", path="/memories/empty", file_text="")
    assert call(tool, "view", path="/memories/empty").endswith("\t")


def test_files_are_found_by_a_search_of_the_user_and_of_nobody_else(
    memory: aforesaid.SyncMemory, tool: AforesaidMemoryTool
) -> None:
    call(tool, "create", path="/memories/pets.md", file_text="Ann has a tortoise called Rex.")
    assert memory.user("ann").search("tortoise")[0].text == "Ann has a tortoise called Rex."
    assert memory.user("bob").search("tortoise") == []
    with pytest.raises(ToolError, match="does not exist"):
        call(AforesaidMemoryTool(memory, "bob"), "view", path="/memories/pets.md")


def test_a_deleted_file_is_no_longer_found_and_can_be_created_again(
    memory: aforesaid.SyncMemory, tool: AforesaidMemoryTool
) -> None:
    for text in ("a tortoise", "a parrot"):
        call(tool, "create", path="/memories/pets.md", file_text=text)
        assert [hit.text for hit in memory.user("ann").search(text)] == [text]
        call(tool, "delete", path="/memories/pets.md")
        assert memory.user("ann").search(text) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/memories/../secret", "/memoriesx", "memories/a"])
def test_paths_outside_of_the_memories_are_refused(tool: AforesaidMemoryTool, path: str) -> None:
    with pytest.raises(ToolError):
        call(tool, "create", path=path, file_text="text")


def test_a_file_cannot_be_a_folder_too(tool: AforesaidMemoryTool) -> None:
    call(tool, "create", path="/memories/a", file_text="text")
    with pytest.raises(ToolError, match="is a file"):
        call(tool, "create", path="/memories/a/b", file_text="text")
    with pytest.raises(ToolError, match="inside"):
        call(tool, "rename", old_path="/memories/a", new_path="/memories/a/b")


def test_a_conversation_with_tools_comes_back_as_it_was_written(tool: AforesaidMemoryTool) -> None:
    said = [
        {"role": "user", "content": "What is the weather in Bern?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I ask the tool.\n\tThen I answer.", "signature": "c2lnbg=="},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern", "days": [1, 2]}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sunny ☀"}]},
    ]
    written = json.dumps(said, ensure_ascii=False, indent="\t")
    call(tool, "create", path="/memories/talk.json", file_text=written)
    shown = call(tool, "view", path="/memories/talk.json").split("\n")[1:]
    assert "\n".join(line.partition("\t")[2] for line in shown) == written


@pytest.mark.anyio
async def test_the_async_tool_does_the_same() -> None:
    async with aforesaid.connect(":memory:") as opened:
        tool = AsyncAforesaidMemoryTool(opened, "ann")
        await tool.call({"command": "create", "path": "/memories/a", "file_text": "text"})
        assert "text" in str(await tool.call({"command": "view", "path": "/memories/a"}))
        assert await tool.clear_all_memory() == "All memory cleared"


def test_claude_writes_a_file_and_reads_it_in_the_next_conversation(tool: AforesaidMemoryTool) -> None:
    script: list[str | dict[str, str]] = [
        {"command": "create", "path": "/memories/ann.md", "file_text": "lives in Bern"},
        "I will remember that.",
        {"command": "view", "path": "/memories/ann.md"},
        "You live in Bern.",
    ]
    with ScriptedClaude(script) as server, Anthropic(base_url=server.base_url, api_key="none") as client:
        for said in ("I live in Bern.", "Where do I live?"):
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=100, tools=[tool], messages=[{"role": "user", "content": said}]
            )
            last = runner.until_done()
    assert getattr(last.content[0], "text", None) == "You live in Bern."
    assert "lives in Bern" in str(server.requests[-1]["messages"][-1])
