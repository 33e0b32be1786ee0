"""What German statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

_GERMAN_EVENTS: Final = (
    r"termin|zahnarzt|arzttermin|meeting|besprechung|prufung|klausur|hochzeit|flug|beerdigung|konzert|vorstellungsgesprach|"
    r"verabredung|feier|reise|urlaub"
)
_GERMAN_FAMILY: Final = (
    r"frau|mann|schwester|bruder|mutter|mama|vater|papa|tochter|sohn|freund|freundin|chef|oma|opa|"
    r"hund|katze|kind|kinder"
)

GERMAN: Final = (
    rule("reminder", 8, r"\berinner[e]? mich (?:an|daran|bitte|morgen)\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:ich|wir) hab(?:e|en)?\b.*(?:{_GERMAN_EVENTS})\b",
        rf"\bmein[e]? \w*(?:{_GERMAN_EVENTS}) ist\b",
        timed="future",
    ),
    rule("fact", 10, r"\bich bin (?:\w+ )?allergisch gegen\b"),
    rule(
        "fact",
        9,
        r"\bich heisse\b",
        r"\bmein name ist\b",
        r"\bmein geburtstag ist\b",
        r"\bich habe am .* geburtstag\b",
        r"\bich bin (?:am|in) .*geboren\b",
    ),
    rule(
        "fact",
        8,
        r"\bich (?:wohne|lebe) (?:jetzt |seit \w+ )?(?:in|bei|mit)\b",
        r"\bich bin (?:\w+ ){0,5}(?:um)?gezogen\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        r"\bich arbeite (?:jetzt |seit \w+ )?(?:bei|als|fur|in)\b",
        r"\bich bin \w+ von beruf\b",
        r"\bich studiere\b",
    ),
    rule(
        "fact",
        8,
        r"\bich bin (?:verheiratet|verlobt|geschieden|schwanger|vegan|vegetarier(?:in)?|veganer(?:in)?)\b",
    ),
    rule("fact", 7, r"\bich bin \d{1,3}(?: jahre alt|\s*$|[.,!])", r"\bich komme (?:ursprunglich )?aus\b"),
    rule(
        "fact",
        7,
        rf"\bich habe (?:eine?n?|zwei|drei|vier) (?:{_GERMAN_FAMILY}|hunde|katzen|schwestern|bruder|sohne|tochter)\b",
    ),
    rule("fact", 6, rf"^mein[e]? (?:{_GERMAN_FAMILY}) (?:heisst|ist|wohnt|lebt|arbeitet|hat|mag|liebt)\b"),
    rule(
        "preference",
        6,
        r"\bich (?:mag|liebe|hasse|bevorzuge)\b(?! (?:dich|es|das|dass)\b)",
        r"\bich (?:esse|trinke) (?:gern|kein)",
        r"\bmein[e]? lieblings\w+ (?:ist|sind)\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:bevorzugt|mag|liebt|hasst)\b"),
    rule("task", 7, r"\bich muss (?!sagen|zugeben)\w+"),
    rule(
        "other",
        6,
        r"\b(?:ich|wir) hab(?:e|en)? (?:\w+ ){0,2}(?:entschieden|beschlossen)\b",
        r"\b(?:ich habe|wir haben) (?:mich|uns) .*entschieden\b",
    ),
    rule("task", 6, r"\bich werde\b(?!.*\b(?:vielleicht|wohl)\b)"),
    rule("task", 6, r"\b(?:ich habe|habe) .*\bversprochen\b", r"^versprochen\b", r"\bich verpflichte mich\b"),
    rule("other", 6, r"\b(?:ich habe|wir haben) .*\bgewahlt\b", r"^(?:entschieden|entscheidung getroffen)\b"),
)
