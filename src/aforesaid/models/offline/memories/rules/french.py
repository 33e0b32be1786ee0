"""What French statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

_FRENCH_EVENTS: Final = (
    r"rendez-vous|rdv|reunion|examen|mariage|vol|enterrement|concert|entretien|dentiste|medecin|voyage|fete"
)
_FRENCH_FAMILY: Final = (
    r"femme|mari|soeur|frere|mere|pere|fille|fils|copine|copain|ami|amie|chef|chien|chat|grand-mere|grand-pere|enfants?"
)

FRENCH: Final = (
    rule("reminder", 8, r"\brappelle[- ]moi\b|\brappelez[- ]moi\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:j'ai|nous avons|on a)\b.*\b(?:{_FRENCH_EVENTS})\b",
        rf"\bm(?:on|a) (?:{_FRENCH_EVENTS}) est\b",
        timed="future",
    ),
    rule("fact", 10, r"\bje suis (?:\w+ )?allergique\b"),
    rule("fact", 9, r"\bje m'appelle\b", r"\bmon (?:pre)?nom est\b", r"\bmon anniversaire est\b", r"\bje suis nee?\b"),
    rule(
        "fact",
        8,
        r"\bj'habite (?:a|en|au|dans|avec|chez|pres)\b",
        r"\bje vis (?:a|en|au|dans|avec)\b",
        r"\bj'ai demenage\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        r"\bje travaille (?:chez|a|pour|comme|dans|en)\b",
        r"\bj'etudie\b",
        r"\bje suis (?:medecin|professeur|ingenieur|avocat|infirmi|etudiant)",
    ),
    rule("fact", 8, r"\bje suis (?:marie|divorce|enceinte|fiance|celibataire|vegetarien|vegan)"),
    rule(
        "fact",
        7,
        r"\bj'ai \d{1,3} ans\b",
        r"\bje viens d(?:e|u|es) [a-z]+\s*(?:$|[.,])",
        r"\bj'ai (?:un|une|deux|trois|quatre) (?:enfant|fils|fille|soeur|frere|chien|chat)",
    ),
    rule("fact", 6, rf"^m(?:on|a|es) (?:{_FRENCH_FAMILY}) (?:s'appelle|est|habite|vit|travaille|a)\b"),
    rule(
        "preference",
        6,
        r"\bj(?:'aime|'adore|e deteste|e prefere)\b(?! (?:que|ca|cela)\b)",
        r"\bje n'aime pas\b(?! (?:que|ca|cela)\b)",
        r"\bm(?:on|a) \w+ preferee? est\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:prefere|deteste|adore)\b"),
    rule("task", 7, r"\bje dois (?!dire|avouer|admettre)\w+", r"\bil faut que je\b"),
    rule("other", 6, r"\b(?:j'ai|nous avons|on a) decide\b"),
    rule(
        "task",
        6,
        r"\bje vais (?:envoyer|livrer|finir|reparer|appeler|ecrire|relire|preparer|acheter|payer|faire)\b",
        r"\bj(?:e |')(?:enverrai|livrerai|finirai|reparerai|appellerai|ecrirai|relirai|preparerai|acheterai|paierai)\b",
        r"\bje (?:ferai|respecterai|mettrai)\b",
    ),
    rule("task", 6, r"\bj'ai promis\b", r"\bje m'engage\b", r"^promis\b"),
    rule("other", 6, r"\b(?:j'ai|nous avons|on a) choisi\b", r"^decision prise\b", r"^decide\b"),
)
