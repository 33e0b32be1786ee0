"""Prompts, loaded from files, and the escaping of users' texts in them."""

from aforesaid.models.prompts.fence import (
    Fenced,
    Line,
    enclose,
    enclosed,
    fence,
    fence_labelled,
    listed,
    numbered,
    quote,
    transcript,
)
from aforesaid.models.prompts.invisible import strip_invisible
from aforesaid.models.prompts.prompt import NAMES, Part, Prompt, load_prompt
from aforesaid.models.prompts.speakers import lines_of, name_mentions, name_speakers

__all__ = [
    "NAMES",
    "Fenced",
    "Line",
    "Part",
    "Prompt",
    "enclose",
    "enclosed",
    "fence",
    "fence_labelled",
    "lines_of",
    "listed",
    "load_prompt",
    "name_mentions",
    "name_speakers",
    "numbered",
    "quote",
    "strip_invisible",
    "transcript",
]
