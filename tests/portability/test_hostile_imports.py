"""Exports in which anything may stand anywhere: a reader reports it, and never fails in another way."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aforesaid.errors import InvalidInput
from aforesaid.portability.formats.base import ReadOptions
from aforesaid.portability.importing import READERS
from aforesaid.portability.input_files import Source
from portability import test_assistant_imports as assistants
from portability import test_messenger_imports as messengers

FORMATS: dict[str, tuple[str, Any]] = {
    "telegram": ("result.json", messengers.TELEGRAM),
    "discord": (
        "x.json",
        {
            "guild": {"id": "1"},
            "channel": {"id": "2"},
            "messages": [
                messengers.discord(
                    1,
                    "x",
                    embeds=[
                        {"title": "t", "url": "u", "author": {"name": "n"}, "fields": [{"name": "a", "value": "b"}]}
                    ],
                    attachments=[{"url": "u", "fileName": "n", "fileSizeBytes": 1}],
                    stickers=[{"name": "s", "sourceUrl": "u"}],
                    reactions=[{"emoji": {"name": "e"}, "count": 1}],
                    reference={"messageId": "3"},
                    forwardedMessage={"content": "f"},
                )
            ],
        },
    ),
    "slack": (
        "general/2026-03-01.json",
        [
            messengers.slack(
                1,
                "a <https://x|y> <@U1>",
                thread_ts="1.1",
                blocks=[
                    {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "link"}]}]}
                ],
                attachments=[{"title": "t", "title_link": "l", "text": "x", "fields": [{"title": "a", "value": "b"}]}],
                files=[{"name": "n", "mimetype": "m/x", "size": 1}],
                reactions=[{"name": "x", "count": 1}],
                edited={"ts": "1"},
            ),
            {
                **messengers.slack(2),
                "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}, "fields": []}],
            },
        ],
    ),
    "signal": ("main.jsonl", messengers.SIGNAL),
    "facebook": (
        "inbox/x/message_1.json",
        {
            "participants": [],
            "messages": [
                messengers.facebook(
                    1,
                    "x",
                    photos=[{"uri": "u"}],
                    share={"link": "l"},
                    sticker={"uri": "s"},
                    reactions=[{"reaction": "r"}],
                )
            ],
            "title": "t",
            "thread_path": "inbox/x",
        },
    ),
    "chatgpt": (
        "conversations.json",
        [
            assistants.chatgpt(
                assistants.by(
                    "user", content={"content_type": "multimodal_text", "parts": [{"asset_pointer": "a/b"}, "x"]}
                ),
                assistants.by(
                    "assistant", "\ue200cite\ue201", metadata={"content_references": [{"matched_text": "x"}]}
                ),
                assistants.by("user", "x", metadata={"attachments": [{"name": "n", "mime_type": "a/b"}]}),
                assistants.by("user", content={"content_type": "user_editable_context", "user_profile": "```x```"}),
            )
        ],
    ),
    "claude": (
        "conversations.json",
        [
            {
                "uuid": "t",
                "name": "n",
                "chat_messages": [
                    assistants.claude(
                        "m1",
                        "human",
                        "x",
                        "m0",
                        attachments=[{"file_name": "f", "extracted_content": "x"}],
                        content=[
                            {"type": "tool_use", "id": "i", "name": "n", "input": {}},
                            {"type": "text", "text": "x"},
                        ],
                    )
                ],
            }
        ],
    ),
    "gemini": (
        "MyActivity.json",
        [assistants.gemini(1, "Prompted x", "<p>y", details=[{"url": "u"}], attachedFiles=[{"name": "n"}, "m"])],
    ),
    "openai": (
        "x.json",
        [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "u"}},
                    {"type": "input_audio", "input_audio": {}},
                ],
                "tool_calls": [{"id": "i", "function": {"name": "n", "arguments": "{}"}}],
                "metadata": {"a": 1},
                "timestamp": 1,
            },
            {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}], "thread": "t"},
        ],
    ),
    "langchain": (
        "x.json",
        [*assistants.LANGCHAIN, {"namespace": ["a"], "key": "k", "value": {"text": "x"}, "created_at": 1}],
    ),
    "mem0": (
        "x.json",
        {"results": [{"memory": "m", "user_id": "u", "categories": ["c"], "metadata": {"a": 1}, "created_at": 1}]},
    ),
    "letta": (
        "x.af",
        {
            "agents": [{"name": "n", "messages": assistants.LETTA_MESSAGES, "block_ids": ["b"]}],
            "blocks": [{"id": "b", "label": "human", "value": "x"}],
            "created_at": "2026-03-01T10:00:00Z",
        },
    ),
}
STRANGE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**40,
    1.5,
    "",
    "x",
    "\ud800",
    "\0",
    [],
    [None],
    ["x"],
    {},
    {"type": "x"},
    [[]],
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the path of everything in a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], strange: Any) -> Any:  # noqa: ANN401
    """Return a copy of a value that has something strange in one place."""
    if not path:
        return strange
    found = copy.deepcopy(value)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = strange
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_a_strange_value_anywhere_is_reported(tmp_path: Path, name: str) -> None:
    file, value = FORMATS[name]
    dice = random.Random(name)
    cases = [(path, strange) for path in places(value) for strange in STRANGE]
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    for place, strange in dice.sample(cases, min(len(cases), 500)):
        case = changed(value, place, strange)
        rows = case if name == "signal" and isinstance(case, list) else [case]
        path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
        source = Source(tmp_path)
        try:
            list(READERS[name](source, ReadOptions()))
        except InvalidInput:
            pass
        except Exception as error:
            raise AssertionError(f"{strange!r} at {place}: {error!r}") from error
        finally:
            source.close()
