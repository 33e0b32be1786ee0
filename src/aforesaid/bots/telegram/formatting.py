"""Converts the Markdown of models to Telegram's entities: code blocks, inline code and bold.

Entities have offsets instead of markers, so Telegram cannot refuse a text because of an unclosed marker.
"""

from __future__ import annotations

import re
from typing import Final

from aiogram.types import MessageEntity

from aforesaid.bots.splitting import units

_MARKED: Final = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<block>.*?)\n?^(?P=fence)$|`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^\s*](?:[^*\n]*[^\s*])?)\*\*",
    re.MULTILINE | re.DOTALL,
)


def formatted(text: str) -> tuple[str, list[MessageEntity]]:
    """Return a text without its Markdown markers, and its entities."""
    plain: list[str] = []
    entities: list[MessageEntity] = []
    length = 0
    end = 0
    for found in _MARKED.finditer(text):
        kind = next(name for name in ("block", "code", "bold") if found[name] is not None)
        content = found[kind]
        if not content.strip():
            continue
        before = text[end : found.start()]
        plain += [before, content]
        length += units(before)
        language = (found["language"] or "").strip() or None if kind == "block" else None
        entities.append(
            MessageEntity(
                type="pre" if kind == "block" else kind, offset=length, length=units(content), language=language
            )
        )
        length += units(content)
        end = found.end()
    plain.append(text[end:])
    return "".join(plain), entities
