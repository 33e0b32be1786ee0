"""Prompts that chat apps send by themselves: recognised, so that they are not stored as said by a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TASKS: Final = re.compile(
    r"""\s*(?:
        \#{3}\ Task:\s*(?:
            Generate\ (?:a\ concise|\d|a\ detailed\ prompt)
            |Suggest\ \d
            |Analyze\ the\ chat\ history
            |You\ are\ an\ autocompletion\ system
            |(?:Detect\ the\ language\ of|Enhance)\ the\ given\ image
            |.*<chat_history>
        )
        |Your\ task\ is\ to\ reflect\ the\ speaker's\ likely\ facial\ expression
        |You\ have\ been\ provided\ with\ a\ set\ of\ responses\ from\ various\ models
        |(?:Provide|Please\ generate)\ a\ concise,\ 5-word-or-less\ title
        |Please\ generate\ a\ concise\ title
        |Analyze\ this\ conversation\ and\ provide:\s*1\.\ The\ detected\ language
    )""",
    re.VERBOSE | re.DOTALL,
)
"""How the task prompts of Open WebUI (titles, tags, follow-up questions, search queries, autocompletion, images, emoji,
merged answers) and of LibreChat (titles) begin. A person's own `### Task:` is not among them."""
_TOOL_CHOICE: Final = "Available Tools:"
_TOOL_CHOICE_TASK: Final = "Your task is to choose and return the correct tool(s)"
_DOCUMENTS: Final = re.compile(r"\s*### Task:\s*Respond to the user query using the provided context", re.DOTALL)
_QUERY: Final = re.compile(r"<user_query>(.*?)</user_query>", re.DOTALL)
_AFTER_DOCUMENTS: Final = "</context>"


def is_task(asked: Sequence[str], system: str) -> bool:
    """Return whether a request is a task of the app. `asked` are its user messages, `system` its system prompt."""
    if system.startswith(_TOOL_CHOICE) and _TOOL_CHOICE_TASK in system:
        return True
    return len(asked) == 1 and _DOCUMENTS.match(asked[0]) is None and _TASKS.match(asked[0]) is not None


def without_documents(text: str) -> str:
    """Return what the person wrote, without the documents that Open WebUI puts around a question about files."""
    if _DOCUMENTS.match(text) is None:
        return text
    query = _QUERY.search(text)
    words = query[1] if query else text.rpartition(_AFTER_DOCUMENTS)[2]
    return words.strip() or text
