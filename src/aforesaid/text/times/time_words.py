"""The words for days, weeks, months and hours in several languages, folded as in the keyword index."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

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


Unit = str
"""One of day, week, weekend, month, year."""


class CalendarWords(NamedTuple):
    """How a language names times. Words are alternatives of a pattern, separated by bars."""

    days: dict[str, int]
    """Days counted from today."""
    weekdays: tuple[str, ...]
    """From Monday."""
    months: tuple[str, ...]
    units: dict[Unit, str]
    upcoming: str
    past: str
    present: str
    ago: tuple[str, ...]
    """Forms in which N stands for a number and U for a unit."""
    ahead: tuple[str, ...]
    numbers: dict[str, int]
    clock: tuple[str, ...]
    """Patterns of a time of day, with the groups h, and if need be m and half."""
    before_month: str
    """What comes before the name of a month and shows that it is one: "in May", "the end of May"."""
    ambiguous: frozenset[str] = frozenset()
    """Names of months that are also other words or people's names: "may", "julio". Alone, they are not months."""


# With am or pm, or in the form of 24 hours. What leaves the half of the day open is not read.
_ENGLISH_CLOCK: Final = (
    r"(?:at |by |around |from )?(?<![\d:.])(?P<h>\d{1,2})(?::(?P<m>\d{2}))? ?(?P<half>a\.?m|p\.?m)\b\.?",
    r"(?<![\d:.])(?P<h>0\d|1[3-9]|2[0-3]):(?P<m>\d{2})(?![\d:])",
    r"(?P<half>noon|midnight)\b",
)
_COLON: Final = r"(?<![\d:.])(?P<h>\d{1,2})[:h](?P<m>\d{2})(?![\d:])"

CALENDARS: Final = {
    "english": CalendarWords(
        days={
            "the day before yesterday": -2,
            "yesterday": -1,
            "last night": -1,
            "today": 0,
            "tonight": 0,
            "this morning": 0,
            "this afternoon": 0,
            "this evening": 0,
            "the day after tomorrow": 2,
            "tomorrow": 1,
        },
        weekdays=("monday", "tuesday|tues", "wednesday", "thursday|thurs", "friday", "saturday", "sunday"),
        months=(
            "january|jan",
            "february|feb",
            "march",
            "april|apr",
            "may",
            "june|jun",
            "july|jul",
            "august|aug",
            "september|sept|sep",
            "october|oct",
            "november|nov",
            "december|dec",
        ),
        units={"weekend": "weekend", "day": "days?", "week": "weeks?", "month": "months?", "year": "years?"},
        upcoming="next|coming",
        past="last|past",
        present="this",
        ago=("N U ago",),
        ahead=("in N U",),
        numbers=NUMBERS["english"] | {"a couple of": 2, "a": 1, "an": 1},
        clock=_ENGLISH_CLOCK,
        before_month="in|since|until|till|by|from|for(?= march)|during|before|after|through|early|late|mid"
        "|(?:beginning|start|middle|end|month|rest) of",
        ambiguous=frozenset({"march", "april", "may", "june", "august", "jan", "mar", "jun", "aug"}),
    ),
    "german": CalendarWords(
        days={
            "vorgestern": -2,
            "gestern": -1,
            "heute": 0,
            "ubermorgen": 2,
            "morgen fruh": 1,
            r"(?<!am )(?<!guten )(?<!heute )(?<!jeden )morgen": 1,
        },
        weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"),
        months=(
            "januar|jan|janner",
            "februar|feb",
            "marz|mar",
            "april|apr",
            "mai",
            "juni|jun",
            "juli|jul",
            "august|aug",
        )
        + ("september|sep", "oktober|okt", "november|nov", "dezember|dez"),
        units={"weekend": "wochenende", "day": "tag(?:e|en)?", "week": "woche(?:n)?", "month": "monat(?:e|en)?"}
        | {"year": "jahr(?:e|en|es)?"},
        upcoming="nachste[nrms]?|kommende[nrms]?",
        past="letzte[nrms]?|vergangene[nrms]?|vorige[nrms]?",
        present="diese[nrms]?",
        ago=("vor N U",),
        ahead=("in N U",),
        numbers=NUMBERS["german"],
        clock=(r"(?<![\d:.])(?P<h>\d{1,2})(?:[:.](?P<m>\d{2}))? uhr", _COLON),
        before_month="im|in|fur|seit|bis|ab|vor|nach|anfang|mitte|ende|monat",
        ambiguous=frozenset({"april", "mai", "august", "jan", "mar", "jun", "aug", "dez"}),
    ),
    "spanish": CalendarWords(
        days={
            "anteayer": -2,
            "ayer": -1,
            "anoche": -1,
            "hoy": 0,
            "esta (?:tarde|noche|manana)": 0,
            "pasado manana": 2,
            r"(?<!la )manana": 1,
        },
        weekdays=("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"),
        months=("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre")
        + ("octubre", "noviembre", "diciembre"),
        units={"weekend": "fin de semana", "day": "dias?", "week": "semanas?", "month": "mes(?:es)?", "year": "anos?"},
        upcoming="proxim[oa]|que viene",
        past="pasad[oa]",
        present="est[ea]",
        ago=("hace N U",),
        ahead=("(?:en|dentro de) N U",),
        numbers=NUMBERS["spanish"],
        clock=(
            r"a las? (?P<h>\d{1,2})(?::(?P<m>\d{2}))? (?:de la )?(?P<half>manana|tarde|noche|a\.?m|p\.?m)",
            _COLON,
        ),
        before_month="en|para|desde|hasta|(?:mes|finales|principios|mediados) de",
        ambiguous=frozenset({"abril", "mayo", "julio"}),
    ),
    "french": CalendarWords(
        days={
            "avant-hier": -2,
            "hier": -1,
            "aujourd'hui": 0,
            "ce (?:soir|matin)|cet apres-midi": 0,
            "apres-demain": 2,
            "demain": 1,
        },
        weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        months=("janvier", "fevrier", "mars", "avril", "mai", "juin", "juillet", "aout", "septembre")
        + ("octobre", "novembre", "decembre"),
        units={
            "weekend": "week-end|weekend",
            "day": "jours?",
            "week": "semaines?",
            "month": "mois",
            "year": "an(?:s|nees?)?",
        },
        upcoming="prochain(?:e)?",
        past="derni(?:er|ere)|passee?",
        present="ce|cette",
        ago=("il y a N U",),
        ahead=("dans N U",),
        numbers=NUMBERS["french"],
        clock=(r"(?<![\d:.])(?P<h>\d{1,2}) ?h(?:eures?)?(?: ?(?P<m>\d{2}))?\b", _COLON),
        before_month=r"en|pour|depuis|des|jusqu'en|debut|mi|fin|(?:mois|debut|fin) (?:de|d')",
        ambiguous=frozenset({"mars", "avril", "mai"}),
    ),
    "italian": CalendarWords(
        days={
            "l'altro ieri": -2,
            "ieri": -1,
            "oggi": 0,
            "stasera|stamattina|stanotte": 0,
            "dopodomani": 2,
            "domani": 1,
        },
        weekdays=("lunedi", "martedi", "mercoledi", "giovedi", "venerdi", "sabato", "domenica"),
        months=("gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre")
        + ("ottobre", "novembre", "dicembre"),
        units={"weekend": "fine settimana|weekend", "day": "giorn[oi]", "week": "settiman[ae]", "month": "mes[ei]"}
        | {"year": "ann[oi]"},
        upcoming="prossim[oa]",
        past="scors[oa]|passat[oa]",
        present="quest[oa]",
        ago=("N U fa",),
        ahead=("(?:tra|fra) N U",),
        numbers=NUMBERS["italian"],
        clock=(r"alle (?P<h>1[3-9]|2[0-3])(?:[:.](?P<m>\d{2}))?", _COLON),
        before_month=r"in|a|ad|per|nel|da|fino a|(?:mese|fine|inizio|meta) (?:di|d')",
        ambiguous=frozenset({"marzo", "maggio"}),
    ),
    "portuguese": CalendarWords(
        days={"anteontem": -2, "ontem": -1, "hoje": 0, "depois de amanha": 2, "amanha": 1},
        weekdays=("segunda(?:-feira)?", "terca(?:-feira)?", "quarta(?:-feira)?", "quinta(?:-feira)?")
        + ("sexta(?:-feira)?", "sabado", "domingo"),
        months=("janeiro", "fevereiro", "marco", "abril", "maio", "junho", "julho", "agosto", "setembro")
        + ("outubro", "novembro", "dezembro"),
        units={"weekend": "fim de semana", "day": "dias?", "week": "semanas?", "month": "mes(?:es)?", "year": "anos?"},
        upcoming="proxim[oa]|que vem",
        past="passad[oa]",
        present="est[ea]|ness[ea]",
        ago=("ha N U", "N U atras"),
        ahead=("(?:em|daqui a|dentro de) N U",),
        numbers=NUMBERS["portuguese"],
        clock=(
            r"(?<![\d:.])(?P<h>\d{1,2})h(?:(?P<m>\d{2}))?\b",
            r"as (?P<h>\d{1,2})(?::(?P<m>\d{2}))?(?: horas)? da (?P<half>manha|tarde|noite)",
            _COLON,
        ),
        before_month="em|para|desde|ate|(?:mes|fim|final|inicio|meados|comeco) de",
        ambiguous=frozenset({"janeiro", "marco", "abril", "maio"}),
    ),
    "dutch": CalendarWords(
        days={"eergisteren": -2, "gisteren": -1, "vandaag": 0, "van(?:avond|middag|ochtend|nacht)": 0}
        | {"overmorgen": 2, "morgen(?:ochtend|middag|avond|vroeg)?": 1},
        weekdays=("maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"),
        months=("januari", "februari", "maart", "april", "mei", "juni", "juli", "augustus", "september")
        + ("oktober", "november", "december"),
        units={
            "weekend": "weekend",
            "day": "dag(?:en)?",
            "week": "we(?:ek|ken)",
            "month": "maand(?:en)?",
            "year": "jaar",
        },
        upcoming="volgende|komende",
        past="vorige|afgelopen",
        present="deze|dit",
        ago=("N U geleden",),
        ahead=("over N U",),
        numbers=NUMBERS["dutch"],
        clock=(r"om (?P<h>\d{1,2})(?::(?P<m>\d{2}))? uur", _COLON),
        before_month="in|sinds|tot|vanaf|begin|half|eind|maand",
        ambiguous=frozenset({"april", "mei", "augustus"}),
    ),
    "russian": CalendarWords(
        days={"позавчера": -2, "вчера": -1, "сегодня": 0, "послезавтра": 2, "завтра": 1},
        weekdays=("понедельник[а-я]*", "вторник[а-я]*", "сред[ауые]", "четверг[а-я]*", "пятниц[ауые]")
        + ("суббот[ауые]", "воскресень[еяю]"),
        months=("январ[яеь]", "феврал[яеь]", "март[ае]?", "апрел[яеь]", "ма[йияе]", "июн[яеь]", "июл[яеь]")
        + ("август[ае]?", "сентябр[яеь]", "октябр[яеь]", "ноябр[яеь]", "декабр[яеь]"),
        units={"weekend": "выходны[хе]", "day": "д(?:ень|ня|ней)", "week": "недел[июяе]|недель", "month": "месяц[а-я]*"}
        | {"year": "год[ау]?|лет"},
        upcoming="следующ[а-я]+|будущ[а-я]+",
        past="прошл[а-я]+",
        present="эт(?:от|ой|ом|у|и|их)",
        ago=("N U назад",),
        ahead=("через N U",),
        numbers=NUMBERS["russian"] | {"": 1},
        clock=(
            r"в (?P<h>\d{1,2})(?::(?P<m>\d{2}))?(?: час[а-я]*)? (?P<half>утра|дня|вечера|ночи)",
            _COLON,
        ),
        before_month="в|на|с|до|начале|середине|конце",
        ambiguous=frozenset({"мая", "мае", "май", "марта", "марте", "март"}),
    ),
    "arabic": CalendarWords(
        days={"اول امس": -2, "امس": -1, "البارحة": -1, "اليوم": 0, "بعد غد": 2, "غدا": 1},
        weekdays=("(?:يوم )?الاثنين", "(?:يوم )?الثلاثاء", "(?:يوم )?الاربعاء", "(?:يوم )?الخميس", "(?:يوم )?الجمعة")
        + ("(?:يوم )?السبت", "(?:يوم )?الاحد"),
        months=("يناير", "فبراير", "مارس", "ابريل", "مايو", "يونيو", "يوليو", "اغسطس", "سبتمبر", "اكتوبر", "نوفمبر")
        + ("ديسمبر",),
        units={"weekend": "عطلة نهاية الاسبوع", "day": "(?:ال)?(?:يوم|ايام)", "week": "(?:ال)?(?:اسبوع|اسابيع)"}
        | {"month": "(?:ال)?(?:شهر|اشهر)", "year": "(?:ال)?(?:سنة|عام|سنوات)"},
        upcoming="القادمة?|المقبلة?",
        past="الماضية?",
        present="هذا|هذه",
        ago=("قبل N U(?! ال)", "منذ N U(?! ال)"),
        ahead=("بعد N U",),
        numbers={"": 1},
        clock=(_COLON,),
        before_month="في|منذ|حتى|شهر",
    ),
}

AFTERNOON: Final = frozenset({"pm", "p.m", "tarde", "noche", "noite", "дня", "вечера", "下午", "晚上", "午後", "夜"})

EAST_ASIAN_DAYS: Final = {
    "chinese": {
        "大后天": 3, "后天": 2, "明天": 1, "明晚": 1, "今天": 0, "今晚": 0, "昨天": -1, "昨晚": -1, "前天": -2,
    },
    "japanese": {
        "明後日": 2, "あさって": 2, "明日": 1, "今日": 0, "今晩": 0, "昨日": -1, "昨夜": -1, "一昨日": -2,
        "おととい": -2,
    },
}  # fmt: skip
"""Days counted from today, in languages without spaces, whose times are read by these tables and not by `CALENDARS`."""
EAST_ASIAN_LANGUAGES: Final = frozenset(EAST_ASIAN_DAYS)
CHINESE_WEEKDAYS: Final = "一二三四五六日"
JAPANESE_WEEKDAYS: Final = "月火水木金土日"
EAST_ASIAN_CLOCK: Final = re.compile(
    r"(?P<half>上午|早上|凌晨|中午|下午|晚上|今晚|午前|午後|朝|夜)の?"
    rf"(?P<h>\d{{1,2}}|{CHINESE_NUMBER})(?:[点點时時]|:)(?P<m>\d{{2}}|半)?"
)
SHORT_WEEKDAYS: Final = tuple(name[:3].capitalize() for name in CALENDARS["english"].weekdays)
"""Mon to Sun, whatever the locale is."""
SHORT_MONTHS: Final = tuple(name[:3].capitalize() for name in CALENDARS["english"].months)
"""Jan to Dec."""
AMBIGUOUS_MONTHS: Final = frozenset().union(*(calendar.ambiguous for calendar in CALENDARS.values()))
_OTHER_MEANINGS: Final = AMBIGUOUS_MONTHS | {"hier", "morgen", "segunda", "terca", "quarta", "quinta", "sexta"}
"""Words that name a day or a month in one language and something else in the same one or another."""
_ENDING: Final = re.compile(r"\[(\w+)\](\??)")
_OPEN_ENDING: Final = re.compile(r"\(\?:[^)]*\)\?|\[а-я\]\*")
"""Parts of a pattern that may match nothing. The word is listed without them."""


@cache
def month_words(language: str) -> frozenset[str]:
    """Return the words that name months in a language, with their abbreviations and cases."""
    return _words(*CALENDARS[language].months) if language in CALENDARS else frozenset()


@cache
def calendar_words(language: str) -> frozenset[str]:
    """Return the single words that name days and months in a language, such as "monday", "june" and "yesterday"."""
    if language not in CALENDARS:
        return frozenset(EAST_ASIAN_DAYS.get(language, ()))
    calendar = CALENDARS[language]
    return month_words(language) | _words(*calendar.weekdays, *calendar.days)


@cache
def full_calendar_words(language: str) -> frozenset[str]:
    """Return the single words that name days and months in a language, without abbreviations such as "jan"."""
    words = calendar_words(language)
    return frozenset(
        word
        for word in words
        if not (word.isascii() and any(other != word and other.startswith(word) for other in words))
    )


@cache
def plain_calendar_words() -> frozenset[str]:
    """Return the single words of all languages that name days and months and mean nothing else."""
    return frozenset().union(*map(calendar_words, CALENDARS)) - _OTHER_MEANINGS


def _words(*patterns: str) -> frozenset[str]:
    """Return the single words that patterns match, each with every ending."""
    found: set[str] = set()
    for pattern in patterns:
        listed = _OPEN_ENDING.sub("", pattern)
        for word in listed.split("|") if "(" not in listed else ():
            ending = _ENDING.search(word)
            stem = word[: ending.start()] if ending else word
            endings = [] if ending is None else [*ending[1]]
            if ending is None or ending[2]:
                endings.append("")
            found.update(stem + letters for letters in endings if stem.isalpha())
    return frozenset(found)
