"""What Portuguese statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

# Verbs whose form is a noun too ("su trabajo") count at the beginning, or after the pronoun.
_EU: Final = r"(?:^|[,;] |\b(?:eu|e|mas|agora|atualmente|tambem|porque) )"
_PORTUGUESE_EVENTS: Final = (
    r"consulta|reuniao|exame|prova|casamento|voo|enterro|concerto|show|entrevista|dentista|medico|viagem|festa"
)
_PORTUGUESE_FAMILY: Final = (
    r"esposa|mulher|marido|irma|irmao|mae|pai|filha|filho|namorada|namorado|amigo|amiga|chefe|cachorro|gato|avo"
)

PORTUGUESE: Final = (
    rule("reminder", 8, r"\b(?:me lembre|me lembra|lembre-me|lembra-me)\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:tenho|temos)\b.*\b(?:{_PORTUGUESE_EVENTS})\b",
        rf"\bminh[ao] (?:{_PORTUGUESE_EVENTS}) e\b",
        timed="future",
    ),
    rule("fact", 10, r"\bsou (?:\w+ )?alergic[oa] a"),
    rule(
        "fact",
        9,
        r"\b(?:me chamo|chamo-me)\b",
        r"\bmeu nome e\b",
        r"\bmeu aniversario e\b",
        r"\b(?:eu )?nasci (?:em|no|na)\b",
    ),
    rule(
        "fact",
        8,
        rf"{_EU}(?:moro|vivo) (?:em|no|na|com)\b",
        r"\b(?:me mudei|mudei-me|mudei) para\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        rf"{_EU}trabalho (?:em|no|na|para|como|com)\b",
        rf"{_EU}estudo \w+",
        r"(?<!nao )\bsou (?:casad|solteir|divorciad|vegetarian|vegan)",
        r"(?<!nao )\bsou (?:medic|professor|engenheir|advogad|enfermeir|estudante)",
    ),
    rule(
        "fact",
        7,
        r"\btenho \d{1,3} anos\b",
        r"(?<!nao )\bsou d[eao] [a-z]",
        r"\btenho (?:um|uma|dois|duas|tres|quatro) (?:filh|irma|cachorr|gat)",
    ),
    rule("fact", 6, rf"^(?:meu|minha) (?:{_PORTUGUESE_FAMILY}) (?:se chama|e|mora|vive|trabalha|tem|esta)\b"),
    rule(
        "preference",
        6,
        r"\b(?:gosto|nao gosto|adoro|odeio|prefiro)\b(?! (?:que|disso|isso)\b)",
        r"\b(?:favorit[oa]|preferid[oa]) e\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:\w+mente )?(?:prefere|odeia|adora)\b"),
    rule("task", 7, r"\b(?:tenho que|tenho de|preciso) (?!dizer|admitir)\w+"),
    rule("other", 6, r"\b(?:eu )?decidi\b", r"\bdecidimos\b"),
    rule(
        "task",
        6,
        r"\bvou (?:enviar|entregar|terminar|consertar|ligar|escrever|revisar|preparar|comprar|pagar|fazer)\b",
        r"\b(?:enviarei|entregarei|terminarei|ligarei|escreverei|revisarei|prepararei|comprarei|pagarei|farei|atualizarei|respeitarei|pararei)\b",
    ),
    rule("task", 6, r"\b(?:eu )?prometi\b", r"\b(?:me comprometo|comprometo-me|me comprometi)\b"),
    rule("other", 6, r"\bescolhemos\b", r"^decisao tomada\b", r"^decidido\b"),
)
