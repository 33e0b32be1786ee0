"""What Spanish statements are worth remembering. The patterns are for folded text."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

# Verbs whose form is a noun too ("su trabajo") count at the beginning, or after the pronoun.
_YO: Final = r"(?:^|[,;] |\b(?:yo|y|pero|ahora|actualmente|tambien|porque) )"
_SPANISH_EVENTS: Final = (
    r"cita|reunion|examen|boda|vuelo|funeral|concierto|entrevista|dentista|medico|viaje|fiesta|clase"
)
_SPANISH_FAMILY: Final = (
    r"esposa|mujer|marido|esposo|hermana|hermano|madre|mama|padre|papa|hija|hijo|"
    r"novia|novio|amigo|amiga|jefe|perro|gato"
)

SPANISH: Final = (
    rule("reminder", 8, r"\brecuerdame\b|\bacuerdame\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:tengo|tenemos)\b.*\b(?:{_SPANISH_EVENTS})\b",
        rf"\bmi (?:{_SPANISH_EVENTS}) es\b",
        timed="future",
    ),
    rule("fact", 10, r"\bsoy (?:\w+ )?alergic[oa] a"),
    rule("fact", 9, r"\bme llamo\b", r"\bmi nombre es\b", r"\bmi cumpleanos es\b", r"\bnaci (?:en|el)\b"),
    rule("fact", 8, rf"{_YO}vivo (?:en|con)\b", r"\bme (?:he mudado|mude) a\b", towards="past"),
    rule(
        "fact",
        8,
        rf"{_YO}trabajo (?:en|para|como|de)\b",
        rf"{_YO}estudio (?!de\b|para\b)\w+",
        r"(?<!no )\bsoy (?:medic|profesor|ingenier|abogad|enfermer|estudiante)",
    ),
    rule(
        "fact",
        8,
        r"(?<!no )\bestoy (?:casad|divorciad|embarazad|prometid)",
        r"(?<!no )\bsoy (?:vegetarian|vegan|solter)",
    ),
    rule(
        "fact",
        7,
        r"\btengo \d{1,3} anos\b",
        r"(?<!no )\bsoy de [a-z]",
        r"\btengo (?:un|una|dos|tres|cuatro) (?:hij|herman|perr|gat)",
    ),
    rule("fact", 6, rf"^mi (?:{_SPANISH_FAMILY}) (?:se llama|es|vive|trabaja|tiene|esta)\b"),
    rule(
        "preference",
        6,
        r"\b(?:me gusta[n]?|me encanta[n]?|no me gusta[n]?|odio|prefiero)\b(?! (?:que|eso|esto)\b)",
        r"\bmi \w+ favorit[oa] es\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:\w+mente )?(?:prefiere|odia|adora)\b"),
    rule("task", 7, r"\btengo que (?!decir|admitir)\w+", r"\bdebo (?!decir|admitir)\w+"),
    rule("other", 6, r"\b(?:he|hemos) decidido\b", r"\bdecidi(?:mos)?\b"),
    rule(
        "task",
        6,
        r"\bvoy a (?:enviar|entregar|terminar|arreglar|llamar|escribir|revisar|preparar|comprar|pagar|hacer)\b",
        r"\b(?:enviare|entregare|terminare|arreglare|llamare|escribire|revisare|preparare|comprare|pagare|hare|actualizare)\b",
    ),
    rule("task", 6, r"\b(?:prometi|he prometido|me comprometo|me he comprometido)\b"),
    rule("other", 6, r"\b(?:elegimos|hemos elegido|elegi)\b", r"^decision tomada\b"),
)
