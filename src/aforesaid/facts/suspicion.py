"""Detects texts that a person should check before they become memories.

Otherwise anybody who can write in a user's chat could write into their memory, and so into every later prompt.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final
from unicodedata import normalize

from aforesaid.domain.caches import holds_texts
from aforesaid.models.prompts import strip_invisible
from aforesaid.text.words import fold

# Tags and marks of direction are never typed by accident; a few zero-width characters may come from copying.
_HIDING: Final = re.compile("[\U000e0001-\U000e007f\u202a-\u202e\u2066-\u2069]")
_ZERO_WIDTH: Final = re.compile("[\u200b\u200c\u200d\u2060\u180e\u3164\uffa0]")
_MANY: Final = 4
_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{2,6}\U000e007f")
"""Flags of regions, such as that of Scotland, are spelled in tags."""


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of suspicion.toml, compiled."""
    table = tomllib.loads((files("aforesaid.facts") / "suspicion.toml").read_text(encoding="utf-8"))
    start, does = table["start"], table["does"].replace("\n", "")
    # Line ends are for the reader alone.
    parts = [part.replace("\n", "").replace("START", start).replace("DOES", does) for part in table[name]]
    return re.compile("|".join(parts), re.MULTILINE if name == "breakout" else 0)


def reads_like_an_order(text: str) -> bool:
    """Return whether a text reads like an instruction to a model, in any of several languages."""
    return _pattern("orders").search(_plain(text)) is not None


def tampered(text: str) -> str | None:
    """Return why a raw text looks made to deceive a model; None if it does not."""
    text = _FLAG.sub("", text)
    if (
        _HIDING.search(text)
        or len(_ZERO_WIDTH.findall(text)) - len(_ZERO_WIDTH.findall(strip_invisible(text))) >= _MANY
    ):
        return "it has hidden characters"
    if _pattern("breakout").search(normalize("NFKC", text).casefold()):
        return "it has tags of a prompt in it"
    return None


def suspicion(text: str) -> str | None:
    """Return why a person should check a text; None if nobody has to."""
    reason = tampered(text)
    if reason is None and reads_like_an_order(text):
        reason = "it reads like an instruction to the model"
    return reason


def sensitive(text: str) -> bool:
    """Return whether a text is about health, crime, faith, love, money or secrets of a person."""
    return _pattern("sensitive").search(_plain(text)) is not None


@holds_texts
@lru_cache(maxsize=512)
def _plain(text: str) -> str:
    return fold(strip_invisible(text)).replace("’", "'")
