"""Recognises times that come back: "every Tuesday", "dienstags", "los martes", "每周二". They have no single date."""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.folding import fold

_SPANISH_DAYS: Final = "lunes|martes|miercoles|jueves|viernes|sabados|domingos"
_FRENCH_DAYS: Final = "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
_ITALIAN_DAYS: Final = "lunedi|martedi|mercoledi|giovedi|venerdi|sabato"
_PORTUGUESE_DAYS: Final = "segunda|terca|quarta|quinta|sexta"
_RECURRING: Final = re.compile(
    r"\b(?:every|each (?:\w+day|day|week|month|year|morning|evening)|daily|weekly|monthly|yearly|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days|"
    r"jede[mnrs]?|immer (?:am|um)|taglich|wochentlich|monatlich|jahrlich|"
    r"(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|"
    rf"cada|tod[oa]s l[oa]s|los (?:{_SPANISH_DAYS})|"
    rf"chaque|tous les|toutes les|le (?:{_FRENCH_DAYS})(?! \d| prochain| dernier)|"
    rf"ogni|tutt[ei] (?:i|le|gli)|(?:il|di) (?:{_ITALIAN_DAYS})(?! \d| prossimo| scorso)|"
    r"(?:la|di) domenica(?! \d| prossima| scorsa)|"
    rf"aos? (?:sabado|domingo)s?|as? (?:{_PORTUGUESE_DAYS})s?(?:-feiras?)?(?! \d)|"
    rf"tod[oa]s? (?:[ao]s? )?(?:{_PORTUGUESE_DAYS}|sabado|domingo|dia|semana|mes|ano)s?|"
    r"elke?|iedere?|dagelijks|wekelijks|maandelijks|"
    r"кажд\w+|по (?:понедельникам|вторникам|средам|четвергам|пятницам|субботам|воскресеньям)|еженедельно|ежедневно|"
    r"kazd\w+|co (?:tydzien|miesiac|rok|dzien|poniedzialek|wtorek|srode|czwartek|piatek|sobote|niedziele)|"
    r"her (?:gun|hafta|ay|y[iı]l|pazartesi|sal[iı]|carsamba|persembe|cuma|cumartesi|pazar)"
    r")\b|\bكل (?:يوم|اسبوع|شهر|سنة)|\bहर\b|每[个週周天日月年逢]|毎[週日月年朝晩]|매(?:주|일|월|달|년)"
)


def recurs(text: str) -> bool:
    """Return whether a text names a time that comes back, so that one date for it would be wrong."""
    return _RECURRING.search(fold(text).replace("’", "'")) is not None
