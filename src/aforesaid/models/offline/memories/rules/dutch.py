"""What Dutch statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

DUTCH: Final = (
    rule("reminder", 8, r"\bherinner me\b", questions=True),
    rule("fact", 9, r"\bik heet\b", r"\bmijn naam is\b", r"\bmijn verjaardag is\b", r"\bik ben \w* ?allergisch\b"),
    rule(
        "fact",
        8,
        r"\bik woon (?:in|bij|met)\b",
        r"\bik ben .*verhuisd\b",
        r"\bik werk (?:bij|als|voor)\b",
        towards="past",
    ),
    rule(
        "fact",
        7,
        r"\bik ben \d{1,3}(?: jaar|\s*$|[.,!])",
        r"\bik kom uit\b",
        r"\bik ben (?:getrouwd|gescheiden|zwanger|vegetarier|veganist)\b",
    ),
    rule("preference", 6, r"\bik (?:hou van|haat|vind .* leuk)\b(?! (?:je|jou)\b)", r"\bmijn favoriete\b"),
    rule("task", 7, r"\bik moet (?!zeggen|toegeven)\w+"),
)
