"""Number words in several languages, folded as in the keyword index."""

from __future__ import annotations

from typing import Final

_COUNTED: Final = (*range(1, 13), 15, 20, 30)
_TABLE: Final = {
    "english": "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty",
    "german": """
        eins|ein|eine|einem|einen|einer zwei drei vier funf sechs sieben acht neun zehn elf zwolf funfzehn zwanzig
        dreissig|dreisig
    """,
    "spanish": "uno|un|una dos tres cuatro cinco seis siete ocho nueve diez once doce quince veinte treinta",
    "french": "un|une deux trois quatre cinq six sept huit neuf dix onze douze quinze vingt trente",
    "italian": "uno|un|una due tre quattro cinque sei sette otto nove dieci undici dodici quindici venti trenta",
    "portuguese": "um|uma dois|duas tres quatro cinco seis sete oito nove dez onze doze quinze vinte trinta",
    "dutch": "een twee drie vier vijf zes zeven acht negen tien elf twaalf vijftien twintig dertig",
    "russian": """
        один|одну два|две три четыре пять шесть семь восемь девять десять одиннадцать двенадцать пятнадцать двадцать
        тридцать
    """,
}
"""Words for the counted numbers, in order. The first of several forms is the one for counting."""
_FORMS: Final = {
    language: [
        (form, number, place == 0)
        for number, forms in zip(_COUNTED, listed.split(), strict=True)
        for place, form in enumerate(forms.split("|"))
    ]
    for language, listed in _TABLE.items()
}
NUMBERS: Final = {language: {form: number for form, number, _ in forms} for language, forms in _FORMS.items()}
"""The value of each number word, in all its forms, by language."""
HOURS: Final = {
    language: {form: number for form, number, first in forms if first and number <= 12}  # noqa: PLR2004 - of a clock
    for language, forms in _FORMS.items()
}
"""The value of each number word that names an hour: "um eins", but not "um eine"."""

_CHINESE_DIGITS: Final = {
    "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
}  # fmt: skip
_TEN: Final = 10
CHINESE_NUMBER: Final = "[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九]"
"""The pattern of a number below 100 in Chinese characters, which Japanese uses too."""


def east_asian_number(written: str) -> int:
    """Return a number that is written in digits, or one below 100 in Chinese characters."""
    if written.isdecimal():
        return int(written)
    tens, ten, ones = written.rpartition("十")
    if not ten:
        return _CHINESE_DIGITS[written]
    return (_CHINESE_DIGITS[tens] if tens else 1) * _TEN + (_CHINESE_DIGITS[ones] if ones else 0)
