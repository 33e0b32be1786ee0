"""What Italian statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

# Verbs whose form is a noun too ("su trabajo") count at the beginning, or after the pronoun.
_IO: Final = r"(?:^|[,;] |\b(?:io|e|ma|ora|adesso|attualmente|anche|perche) )"
_ITALIAN_EVENTS: Final = (
    r"appuntamento|riunione|esame|matrimonio|volo|funerale|concerto|colloquio|dentista|medico|viaggio|festa"
)
_ITALIAN_FAMILY: Final = (
    r"moglie|marito|sorella|fratello|madre|mamma|padre|papa|figlia|figlio|ragazza|ragazzo|amico|amica|capo|cane|gatto|"
    r"nonna|nonno"
)

ITALIAN: Final = (
    rule("reminder", 8, r"\bricordami\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:ho|abbiamo)\b.*\b(?:{_ITALIAN_EVENTS})\b",
        rf"\bil mio (?:{_ITALIAN_EVENTS}) e\b",
        timed="future",
    ),
    rule("fact", 10, r"\bsono (?:\w+ )?allergic[oa] a"),
    rule("fact", 9, r"\bmi chiamo\b", r"\bil mio nome e\b", r"\bil mio compleanno e\b", r"\bsono nat[oa]\b"),
    rule("fact", 8, rf"{_IO}(?:vivo|abito) (?:a|in|con)\b", r"\bmi sono trasferit[oa]\b", towards="past"),
    rule(
        "fact",
        8,
        rf"{_IO}lavoro (?:a|per|come|in|presso|da)\b",
        rf"{_IO}studio \w+",
        r"\bsono (?:spos|divorzi|incint|fidanz|vegetarian|vegan)",
    ),
    rule(
        "fact",
        7,
        r"\bho \d{1,3} anni\b",
        r"\bvengo da\b",
        r"\bho (?:un|una|due|tre|quattro) (?:figli|sorell|fratell|can|gatt)",
    ),
    rule("fact", 6, rf"^(?:(?:il )?mio|(?:la )?mia) (?:{_ITALIAN_FAMILY}) (?:si chiama|e|vive|abita|lavora|ha)\b"),
    rule(
        "preference",
        6,
        r"\b(?:mi piace|mi piacciono|non mi piace|amo|odio|preferisco)\b(?! (?:che|questo)\b)",
        r"\b(?:preferit[oa]) e\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:preferisce|odia|adora)\b"),
    rule("task", 7, rf"{_IO}devo (?!dire|ammettere)\w+"),
    rule("other", 6, r"\b(?:ho|abbiamo) deciso\b"),
    rule(
        "task",
        6,
        r"\b(?:inviero|consegnero|finiro|sistemero|chiamero|scrivero|rivedro|preparero|comprero|paghero|faro|aggiornero|rispettero|smettero)\b",
    ),
    rule("task", 6, r"\bho promesso\b", r"\bmi (?:impegno|sono impegnat[oa])\b", r"^promesso\b"),
    rule("other", 6, r"\b(?:ho|abbiamo) scelto\b", r"^decisione presa\b", r"^deciso\b"),
)
