"""Recognises how people introduce themselves without the word "name": "Hi, I am Max", "Soy Ana", "Ich bin Jonas".

What follows "I am" may be anything. So the whole sentence must be an introduction, and what is unsure is left out: a
word that may be a state, an origin, a faith or a trade is no name, and in German only a known given name is one.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from aforesaid.text.languages import stop_words
from aforesaid.text.relations import relation_called
from aforesaid.text.times.time_words import plain_calendar_words
from aforesaid.text.vocabulary import vocabulary
from aforesaid.text.words import fold, word_set

_GREETING: Final = (
    r"(?:(?i:hi|hello|hey|good (?:morning|evening|day)|hallo|moin|servus|guten (?:morgen|tag|abend)|hola|buenas|"
    r"buenos d[ií]as|salut|bonjour|bonsoir|ciao|salve|buongiorno|ol[aá]|oi|hoi|dag)(?: there)?\s*[,.!–-]*\s+)?"
)
_I_AM: Final = {
    "english": r"[Ii] (?P<english>am)|[Ii]['’](?P<english_short>m)",
    "german": r"[Ii]ch (?P<german>bin)",
    "spanish": r"(?:[Yy]o )?(?P<spanish>[Ss]oy)",
    "french": r"[Jj]e (?P<french>suis)|[Mm]oi,? (?P<french_short>c['’]est)",
    "italian": r"(?:[Ii]o )?(?P<italian>[Ss]ono)",
    "portuguese": r"(?:[Ee]u )?(?P<portuguese>[Ss]ou)(?: [oa])?",
    "dutch": r"[Ii]k (?P<dutch>ben)",
}
_NAME: Final = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_INTRODUCTION: Final = re.compile(
    rf"\s*{_GREETING}(?:{'|'.join(_I_AM.values())}) (?P<name>{_NAME}(?: {_NAME})?)\s*[.!]*\s*"
)
_CALLED: Final = {
    "english": "{speaker}'s name is {name}.",
    "german": "{speaker} heißt {name}.",
    "spanish": "{speaker} se llama {name}.",
    "french": "{speaker} s'appelle {name}.",
    "italian": "{speaker} si chiama {name}.",
    "portuguese": "{speaker} se chama {name}.",
    "dutch": "{speaker} heet {name}.",
}
_ASKS_NAME: Final = re.compile(
    r"\b(?:what(?: is|'s|s) my name|who am i|wie heisse ich|wie ist mein name|wer bin ich|como me llamo|"
    r"cual es mi nombre|quien soy|comment je m'appelle|comment m'appelle|quel est mon (?:pre)?nom|qui suis|"
    r"come mi chiamo|qual e il mio nome|chi sono io|como (?:eu )?me chamo|qual e o meu nome|quem sou|hoe heet ik|"
    r"wat is mijn naam|wie ben ik|как меня зовут|кто я)\b"
)
_LIKE_NO_NAME: Final = re.compile(
    r"\w{3,}(?:(?<![fm])(?<!alfr)(?<!jar)(?<!moham)ed|ing|ese|ish|less|ful|ous|ology|ist)"
)
"""Forms of English words for states and origins. Ahmed, Alfred and Jared are names."""


class Introduction(NamedTuple):
    """The name by which somebody introduces themselves."""

    name: str
    language: str
    start: int
    """Where the verb begins."""

    def told_of(self, speaker: str) -> str:
        """Return it in the third person."""
        return _CALLED[self.language].format(speaker=speaker, name=self.name)


def introduction(sentence: str) -> Introduction | None:
    """Return the name by which a sentence introduces its speaker. None if it says anything else, or may do so."""
    found = _INTRODUCTION.fullmatch(sentence)
    if found is None:
        return None
    verb = next(group for group, text in found.groupdict().items() if text and group != "name")
    language = verb.partition("_")[0]
    parts = found["name"].split()
    if not all(_may_be_name(part, language) for part in parts):
        return None
    if language == "german" and fold(parts[0]) not in _lists()["german"]:
        return None
    return Introduction(found["name"], language, found.start(verb))


def asks_own_name(question: str) -> bool:
    """Return whether somebody asks for their own name."""
    return _ASKS_NAME.search(fold(question).replace("’", "'")) is not None


def _may_be_name(word: str, language: str) -> bool:
    """Return whether a word has the capital of a name, and is no known word."""
    folded = fold(word)
    lists = vocabulary(language)
    common = stop_words(language) | lists.small_talk | lists.dull | lists.times | _lists()["no_names"]
    if not word[0].isupper() or word.isupper() or folded in common or folded in plain_calendar_words():
        return False
    return relation_called(folded) is None and _LIKE_NO_NAME.fullmatch(folded) is None


@cache
def _lists() -> dict[str, frozenset[str]]:
    path = files("aforesaid.models.offline.memories") / "introductions.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        "no_names": word_set(" ".join(table["no_names"].values())),
        "german": word_set(table["names"]["german"]),
    }
