"""Which language a text is in, as far as the keyword index has to know, and the stems of its words.

A stored text is stemmed in its own language. A query is too short to be sure of its language, so its words are looked
for under the stems of every language of its script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from Stemmer import Stemmer

ENGLISH: Final = "english"

# Words without a content of their own. They tell a language, and are dropped from a query where others remain.
_STOP_WORDS: Final = {
    "english": """
        a about after all also am an and any are aren as at be because been before being both but by can could couldn
        d did didn do does doesn doing don down each few for from had hadn has hasn have having he her here hers him his
        how i if in into is isn it its just ll m me might more most must my no nor not of off on once only or other our
        ours out over own re s same shall she should shouldn so some such t than that the their theirs them then there
        these they this those through to too under until up ve very was wasn we were weren what when where which while
        who whom whose why will with won would wouldn you your yours
    """,
    "german": """
        aber als am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des die dir du ein eine
        einem einen einer er es euch fur hab habe haben hast hat hatte hier ich ihm ihn ihr ihre im in ist ja kann kein
        keine man mein meine mich mir mit nach nicht noch nur ob oder ohne schon sehr sein seine sich sie sind so uber
        um und uns unser vom von vor wann war waren warum was wegen weil welche wem wen wenn wer werden wie wieder wir
        wird wo wurde zu zum zur
    """,
    "spanish": """
        al algo como con cual cuando cuanto de del desde donde el ella ellos en entre era eres es esa ese eso esta estaba
        estan estas este esto estoy fue ha han has hay he la las le les lo los mas me mi mis mucho muy nada no nos o os
        para pero por porque que quien se ser si sin sobre son soy su sus tambien te tengo tiene tu tus un una uno unos y
        ya yo
    """,
    "french": """
        ai alors au aussi aux avec avons avez c ce ces cette ceux comme d dans de des du elle elles en est et ete etait
        eu fait il ils j je l la le les leur lui ma mais me meme mes moi mon n ne nos notre nous on ont ou par pas plus
        pour pourquoi qu quand que quel quelle qui s sa sans se ses si son sont suis sur ta te tes toi ton tu un une vos
        votre vous y
    """,
    "italian": """
        ad ai al alla anche avevo avuto c che chi ci come con cosa cui da dal dalla dei del della delle di dove e ed era
        essere fatto gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mio molto ne nei nel nella noi
        non o per perche piu quale quando quando questo qui se sei si sono su sua suo ti tu tuo un una uno voi
    """,
    "portuguese": """
        ao aos as com como da das de dela dele do dos e ela ele eles em entre era essa esse esta estou eu foi ha isso ja
        lhe mais mas me meu meus minha muito na nao nas nem no nos o os ou para pela pelo por porque qual quando que quem
        se sem ser seu sua sao tambem te tem tenho ter tu um uma voce voces
    """,
    "dutch": """
        aan al als bij dan dat de deze die dit doen door dus een en er geen had heb hebben heeft het hier hij hoe hun ik
        in is ja je jij kan maar me meer met mij mijn na naar niet nog nu of om omdat ons ook op over te toen tot u uit
        van veel voor waar waarom wanneer want waren was wat we wel werd wie wij wil wordt ze zij zijn zo zou
    """,
    "russian": """
        а без был была были было быть в вам вас весь во вот все всё вы где да для до его ее её если есть еще ещё же за и
        из или им их к как когда кто ли мне мой моя мы на над нас не него нет ни но ну о об он она они оно от очень по
        под при про с со так там то тоже только ты у уже что чтобы эта эти это этот я
    """,
    "arabic": """
        أن أنا أنت أو أي إلى إن الذي التي ثم حتى ذلك على عن عند في قد كان كانت كل كما كيف لا لم لن ليس ما ماذا متى مع من
        منذ نحن هذا هذه هل هم هنا هو هي و يا
    """,
}
_LATIN: Final = ("english", "german", "spanish", "french", "italian", "portuguese", "dutch")
_BY_SCRIPT: Final = (
    (re.compile("[\u0400-\u052f]"), "russian"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0370-\u03ff]"), "greek"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
)
_MOST_KNOWN: Final = 200_000
_WIDE: Final = re.compile("[^\x00-\u036f]")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the words of a language that a query can do without, folded like the words of the index."""
    from aforesaid.text.terms import fold  # noqa: PLC0415 - the two need each other, this one only once

    return frozenset(fold(_STOP_WORDS.get(language, "")).split())


def language_of(words: Sequence[str]) -> str:
    """Guess the Latin-written language of folded words by the stop words among them. English unless another is surer."""
    speakers = _languages_by_word()
    telling = speakers.keys() & words
    if not telling:
        return ENGLISH
    counts: dict[str, int] = {}
    for word in telling:
        for language in speakers[word]:
            counts[language] = counts.get(language, 0) + 1
    most = max(counts.values())
    return next(language for language in _LATIN if counts.get(language) == most)


@cache
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language in _LATIN:
        for word in stop_words(language):
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


def stem(word: str, latin: str) -> str:
    """Return the stem of a folded word: by its script, or in the given language if it is written in Latin letters."""
    # A Latin word in a Chinese text is most likely English.
    return str(_stemmer(_language_by_script(word) or (latin if latin in _LATIN else ENGLISH)).stemWord(word))


def stems(words: Iterable[str], latin: str) -> list[str]:
    """Return the stems of the words of one text."""
    known = _known_stems(latin)
    found = []
    for word in words:
        stemmed = known.get(word)
        if stemmed is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            stemmed = known[word] = stem(word, latin)
        found.append(stemmed)
    return found


@lru_cache(maxsize=10_000)
def all_stems(word: str) -> tuple[str, ...]:
    """Return the stems that a word of a query may have been stored under."""
    by_script = _language_by_script(word)
    languages = _LATIN if by_script is None else (by_script,)
    return tuple(dict.fromkeys(str(_stemmer(language).stemWord(word)) for language in languages))


def _language_by_script(word: str) -> str | None:
    if _WIDE.search(word) is None:
        return None
    return next((language for pattern, language in _BY_SCRIPT if pattern.search(word)), None)


@cache
def _known_stems(_language: str) -> dict[str, str]:
    """Return what was stemmed before: people use the same words again and again."""
    return {}


@cache
def _stemmer(language: str) -> Stemmer:
    from Stemmer import Stemmer  # noqa: PLC0415 - loaded when the first word comes

    return Stemmer(language, 0)
