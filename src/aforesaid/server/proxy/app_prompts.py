"""Texts that chat apps and coding programs send by themselves: they are not stored as said by a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aforesaid.extras import re

_TASKS: Final = re.compile(
    r"""\s*(?:
        \#{3}\ Task:\s*(?:
            Generate\ (?:a\ concise|\d|a\ detailed\ prompt)
            |(?:Suggest|Predict)\ \d
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
_REMINDER: Final = ("<system-reminder>", "</system-reminder>")
"""Begin and end of what Claude Code writes into messages of a person, at any place."""
_PREAMBLES: Final = (
    ("<environment_context>", "</environment_context>"),
    ("<user_instructions>", "</user_instructions>"),
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
)
"""Begins and ends of what Codex sends as messages of a person, or at the beginning of them."""
_GAPS: Final = ("<|fim_", "<fim_", "<｜fim▁", "<PRE>", "[SUFFIX]")
"""Marks in the prompts by which an editor has a gap in a program filled in."""


def is_task(asked: Sequence[str], system: str) -> bool:
    """Return whether a request is a task of the app. `asked` are its user messages, `system` its system prompt."""
    if system.startswith(_TOOL_CHOICE) and _TOOL_CHOICE_TASK in system:
        return True
    return len(asked) == 1 and _DOCUMENTS.match(asked[0]) is None and _TASKS.match(asked[0]) is not None


def is_code_with_gap(prompt: str) -> bool:
    """Return whether a prompt is the code around a gap that a model is to fill in."""
    return any(mark in prompt for mark in _GAPS)


def own_words(text: str) -> str:
    """Return what the person wrote, without what a program adds to it. Empty if the program wrote all of it."""
    begin, end = _REMINDER
    pieces, at = [], 0
    while (opens := text.find(begin, at)) >= 0 and (closes := text.find(end, opens)) >= 0:
        pieces.append(text[at:opens])
        at = closes + len(end)
    return without_documents(_without_preambles("".join((*pieces, text[at:])).strip() if pieces else text))


def _without_preambles(text: str) -> str:
    rest = text.lstrip()
    for begin, end in _PREAMBLES * len(_PREAMBLES):  # they can come in any order
        if rest.startswith(begin) and end in rest:
            text = rest = rest.partition(end)[2].strip()
    return text


def without_documents(text: str) -> str:
    """Return what the person wrote, without the documents that Open WebUI puts around a question about files."""
    if _DOCUMENTS.match(text) is None:
        return text
    query = _QUERY.search(text)
    words = query[1] if query else text.rpartition(_AFTER_DOCUMENTS)[2]
    return words.strip() or text
