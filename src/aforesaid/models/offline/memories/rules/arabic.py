"""What Arabic statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

ARABIC: Final = (
    rule("reminder", 8, r"ذكرني", questions=True),
    rule("fact", 9, r"\bاسمي\b", r"عيد ميلادي", r"لدي حساسية من|عندي حساسية من"),
    rule(
        "fact",
        8,
        r"(?<!لا )\b(?:اعيش|اسكن) في\b",
        r"\bانتقلت (?:\w+ ){0,3}الى\b",
        r"(?<!لا )\bاعمل (?:الان )?(?:في|لدي)\b",
    ),
    rule("fact", 7, r"\bعمري \d", r"\bانا من\b", r"\bانا متزوجه?\b"),
    rule("preference", 6, r"\b(?:احب|اكره|لا احب)\b", r"\bافضل \w+ على\b"),
    rule("task", 7, r"\b(?:يجب علي|علي ان|يجب ان)\b"),
)
