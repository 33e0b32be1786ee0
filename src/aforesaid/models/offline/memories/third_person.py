"""Turning what people say about themselves to the third person, where that is safe."""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.words import word_set

# Verbs that people begin such statements with, in the form of the first person present.
_PRESENT: Final = word_set("""
    live work study love like enjoy hate dislike prefer need want have own drive play speak take collect teach run plan
    hope adore sing cook bake write paint volunteer travel go eat drink wear use keep know practice train swim ride hike
    attend belong believe miss support follow watch commute intend
""")
_UNCHANGED: Final = word_set("was will can can't cannot must should couldn't could won't had did didn't")
_FORMS: Final = {
    "am": "is",
    "'m": "is",
    "have": "has",
    "'ve": "has",
    "'ll": "will",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
}
_IRREGULAR_PAST: Final = word_set("""
    got went came took bought sold made had met lost won broke left found began ran swam wrote taught thought told saw
    gave became built caught chose drank drove ate fell felt flew forgot grew heard held kept led lent knew paid rode
    rose said sang sat sent shot slept spent spoke stole stood swore threw woke wore
""")
_ADVERBS: Final = word_set("""
    really actually just also still currently now always absolutely totally recently finally usually often never
    sometimes already even honestly definitely strongly originally officially only
""")
_NOT_PAST: Final = word_set("need feed breed")
_START: Final = re.compile(r"I(?P<short>['’](?:m|ve|ll))?(?= |$)")
_WORD: Final = re.compile(r" (?P<word>[\w'’]+)")
_OTHERS: Final = re.compile(
    r"\b(?:I|I['’]\w+|me|we|us|our|ours|you|your|yours|u|ur|here|this|that['’]s|let['’]s)\b", re.IGNORECASE
)
_POSSESSIVES: Final = {"my": "their", "mine": "theirs", "myself": "themselves"}
_POSSESSIVE: Final = re.compile(r"\b(?:my|mine|myself)\b", re.IGNORECASE)


def third_person(sentence: str, name: str) -> str | None:
    """Return an English sentence of the first person in the third. None where that could change what it says."""
    if not name:
        return None
    if re.match(r"(?i:my) ", sentence):
        rest = sentence[3:]
        return None if _OTHERS.search(rest) else f"{name}'s {_possessives(rest)}"
    match = _START.match(sentence)
    if match is None:
        return None
    verb = _verb(match["short"] or "", sentence[match.end() :])
    if verb is None or _OTHERS.search(verb):
        return None
    return f"{name} {_possessives(verb)}"


def _verb(short: str, rest: str) -> str | None:
    """Return the rest of a sentence, from the verb on, with the verb in the third person."""
    if short:
        return _FORMS["'" + short[1:]] + rest
    end = 0
    while (match := _WORD.match(rest, end)) is not None and match["word"].lower() in _ADVERBS:
        end = match.end()
    if match is None:
        return None
    before, verb, after = rest[:end].strip(), match["word"].replace("’", "'"), rest[match.end() :]
    changed = _conjugated(verb)
    return None if changed is None else f"{before} {changed}{after}".strip()


def _conjugated(verb: str) -> str | None:
    if verb in _FORMS:
        return _FORMS[verb]
    if verb in _UNCHANGED or verb in _IRREGULAR_PAST or (verb.endswith("ed") and verb not in _NOT_PAST):
        return verb
    if verb not in _PRESENT:
        return None
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _possessives(text: str) -> str:
    return _POSSESSIVE.sub(lambda match: _POSSESSIVES[match[0].lower()], text)
