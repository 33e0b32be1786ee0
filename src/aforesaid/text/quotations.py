"""Which words of a message are its author's own.

People paste e-mails and pages, quote others, and invent scenes. What stands there is evidence of what somebody else
said, and nothing that the author says about themself or asks for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from aforesaid.domain.text_caches import holds_texts
from aforesaid.text.folding import fold
from aforesaid.text.sentences import length_in_words, split_sentences

GAP: Final = "…"
"""Stands for what was quoted."""
_TITLE_WORDS: Final = 6
"""Words in quotation marks up to which they are a name or a title, such as that of a book."""
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<(pre|code|blockquote)\b.*?(?:</\1>|\Z)", re.DOTALL)
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_MARKED: Final = re.compile(
    r'(?<!\w)"(?=\S)[^"]*"(?!\w)|“[^”“]*”|«[^»]*»|»[^«»]*«|„[^“”"]*[“”"]|‘[^’\n]{12,}’(?!\w)|'
    r"(?<!\w)'(?=\S)[^'\n]{12,}'(?!\w)|`[^`\n]+`|「[^」]*」|『[^』]*』"
)
_COLON: Final = re.compile(r"[:：](?=\s|\Z|[\"“«»„‘'「『\u2e80-\uffff…])")
_SENTENCE_END: Final = re.compile(r"[.!?。！？\n]")
_ANNOUNCEMENT: Final = 200
"""Characters before a colon that can announce what follows it."""
_MOST_COLONS: Final = 100
"""Colons that are examined. A message with more of them is a table, a log or a program."""
_MOST_CHARACTERS: Final = 20_000
"""Characters of a message that are examined. What follows in a longer one counts as pasted."""


class _Patterns(NamedTuple):
    reports: re.Pattern[str]
    own_reports: re.Pattern[str]
    announced: re.Pattern[str]
    pasted: re.Pattern[str]
    role_play: re.Pattern[str]


@holds_texts
@lru_cache(1_024)
def own_text(text: str) -> str:
    """Return what the author of a message says in words of their own, with an ellipsis in place of what they quote.

    Left out are code, quoted lines, words in quotation marks (titles stay), forwarded letters, and all that follows
    where somebody else's words are announced ("the page says: …"). Nothing is left of a message that sets up a scene.
    """
    if is_role_play(text):
        return ""
    plain = _FENCED.sub(GAP, text[:_MOST_CHARACTERS])
    lines = plain.splitlines(keepends=True)
    pasted = next((place for place, line in enumerate(lines) if _patterns().pasted.search(fold(line))), len(lines))
    plain = _QUOTED_LINE.sub(GAP, "".join(lines[:pasted]))
    plain = _without_announced(without_quotes(plain))
    return plain if plain.replace(GAP, "").strip() else ""


def reports_somebody(text: str) -> bool:
    """Return whether a text reports in any part what somebody other than its author said."""
    return _holds(_patterns().reports, _patterns().own_reports.sub(" ", fold(text).replace("’", "'")))


def without_quotes(text: str, longest: int = _TITLE_WORDS) -> str:
    """Return a text with an ellipsis in place of each sentence, and of more than so many words, in quotation marks."""

    def shown(quoted: re.Match[str]) -> str:
        words = quoted[0][1:-1]
        return quoted[0] if length_in_words(words) <= longest and len(split_sentences(words)) <= 1 else GAP

    return _MARKED.sub(shown, text)


def is_role_play(text: str) -> bool:
    """Return whether a message sets up a scene in which its words are meant: "pretend you are a pirate"."""
    return _holds(_patterns().role_play, text)


def _without_announced(text: str) -> str:
    """Return a text up to the sentence that announces words of somebody else. Nobody knows where those end."""
    for number, colon in enumerate(_COLON.finditer(text), 1):
        before = _SENTENCE_END.split(text[max(colon.start() - _ANNOUNCEMENT, 0) : colon.start()])[-1]
        if number > _MOST_COLONS or reports_somebody(before) or _holds(_patterns().announced, before):
            return text[: colon.start() - len(before)] + GAP
    return text


def _holds(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text holds a pattern. Kana and Russian letters are looked for as written too."""
    folded = fold(text).replace("’", "'")
    return pattern.search(folded) is not None or (not text.isascii() and pattern.search(text.casefold()) is not None)


@cache
def _patterns() -> _Patterns:
    table = tomllib.loads((files("aforesaid.text") / "quotations.toml").read_text(encoding="utf-8"))

    def compiled(patterns: Iterable[str]) -> re.Pattern[str]:
        return re.compile("|".join(patterns).replace("\n", ""))

    return _Patterns(
        compiled(table["REPORTS"]),
        compiled(table["OWN_REPORTS"]),
        compiled(table["ANNOUNCED"]),
        compiled([table["PASTED"]]),
        compiled(table["ROLE_PLAY"]),
    )
