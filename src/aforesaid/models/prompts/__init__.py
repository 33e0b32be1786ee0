"""Prompts, loaded from files, and the escaping of users' texts in them."""

from aforesaid.models.prompts.fence import (
    Fenced,
    Line,
    enclose,
    enclosed,
    fence,
    fence_labelled,
    lines_of,
    listed,
    name_mentions,
    name_speakers,
    numbered,
    quote,
    strip_invisible,
    transcript,
)
from aforesaid.models.prompts.prompt import NAMES, Part, Prompt, load_prompt

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
