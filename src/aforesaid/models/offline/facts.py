"""Edits a text of facts about a person: adds a fact, replaces contradicted ones, removes one. Nothing is invented.

A fact is a sentence, or one of the pieces that commas and "and" separate in a sentence: "lives in Berlin" in
"Software engineer at TechCorp, lives in Berlin, enjoys hiking."
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import re
from aforesaid.models.offline.memories.extract import third_person
from aforesaid.models.offline.memories.keys import Claim, claim_of, says_less
from aforesaid.text.languages import guess_language, language_told, stems, stop_words, vocabulary
from aforesaid.text.relations import without_determiners
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

_CACHED: Final = 4_096
"""Sentences whose parts stay cached: those of a text of facts are compared with every new one."""
_AND: Final = {
    "german": r"\s+und\s+", "spanish": r"\s+[ye]\s+", "french": r"\s+et\s+", "italian": r"\s+ed?\s+",
    "portuguese": r"\s+e\s+", "dutch": r"\s+en\s+", "polish": r"\s+(?:i|oraz|a)\s+", "russian": r"\s+и\s+",
    "turkish": r"\s+ve\s+", "arabic": r"\s+و\s*", "hindi": r"\s+और\s+", "korean": r"(?<=고)\s+(?!있)", "japanese": "、",
    "chinese": "，|、",
}  # fmt: skip
_THAT: Final = re.compile(r"^(?:that|dass|que|che|dat|że|что|أن|कि)(?!\w)[\s,]*", re.IGNORECASE)
_VERB_FIRST: Final = re.compile(
    r"(?!(?:always|sometimes|perhaps|besides|its|his|this|thus|yes)\b)"
    r"(?:is|isn't|was|has|hasn't|had|does|doesn't|can|can't|will|won't|[a-z]+(?:[^s\W]s|ies|ches|shes|ed))"
    r"(?! (?:are|were|is|was|have|can|will)\b) "
)
_POSSESSIVE: Final = re.compile(r"['’]s\b")
_CHOICE: Final = "choice"
_TASTE: Final = "taste"
_TASTES: Final = frozenset({"taste", "favourite", _CHOICE})
_STOPS: Final = ".!?。！？؟"
_HATES: Final = re.compile(
    r"\b(?:hates?|dislikes?|not|doesn t|don t|can t|never|nicht|no|ne|pas|не|non|nao)\b|不|讨厌|ない"
)
_BEFORE_VERB: Final = re.compile(r"\b(?:not|doesn t|don t|can t|never|nicht|no|ne|pas|не|non|nao) $|不[太很大]?$")
"""What denies the word that follows."""
_BEFORE_THING: Final = re.compile(r"\b(?:has|have|had|got|is|are|owns?|with) no $")
"""An English "no" denies a thing, and no verb: "has no red car"."""
_PARTICLE: Final = re.compile("[はかをもにの]")
"""What follows a thing in Japanese, folded."""


class FactRemoval(NamedTuple):
    """The remaining text of facts, and whether it contained the fact to forget."""

    text: str
    found: bool


def merge_fact(facts: str, fact: str, name: str = "") -> str:
    """Return a text of facts, one sentence per line, with a fact added.

    A known fact is not added again. Sentences or pieces that the new fact contradicts (another home, job, name or
    preference of the same person) are removed; the rest stays unchanged. With a name, first-person statements are
    rewritten in the third person, or quoted where that is not safe.
    """
    for sentence in split_sentences(fact):
        facts = _merge(facts, _sentence(sentence, name), (name,))
    return facts


def without_contradicted(facts: str, fact: str, name: str = "") -> str:
    """Return a text of facts without the sentences or pieces that a newer fact contradicts. The fact is not added."""
    for sentence in split_sentences(fact):
        new, names = _sentence(sentence, name), (name,)
        claim, known = claim_of(new, names), split_sentences(facts)
        kept: list[str] = []
        for old in known:
            stays = says_less(new, old, names) or _says_more(new, old, names)
            kept += [old] if stays else _without_contradiction(old, claim, names)
        facts = facts if kept == known else "\n".join(kept)
    return facts


def _merge(facts: str, new: str, names: Collection[str]) -> str:
    if not new:
        return facts
    claim, words = claim_of(new, names), _content(new, names, everything=True)
    key = None if claim is None else claim.key
    kept: list[str] = []
    for line in facts.splitlines():
        # A line that shares nothing with it is not read: texts of facts are long.
        stems_of_line, keys = _read_line(line, tuple(names))
        if key not in keys and words.isdisjoint(stems_of_line):
            kept.append(line)
            continue
        for old in split_sentences(line):
            if _says_more(old, new, names):
                return facts
            if not _says_more(new, old, names):
                kept += [old] if says_less(new, old, names) else _without_contradiction(old, claim, names)
    return "\n".join([*kept, new])


@holds_texts
@lru_cache(_CACHED)
def _read_line(line: str, names: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of the words of a line, and what its sentences and their pieces are claims about."""
    words, keys = set[str](), set[str]()
    for sentence in split_sentences(line):
        words |= _content(sentence, names, everything=True)
        claims = (claim_of(each, names) for each in (sentence, *_pieces(sentence)))
        keys |= {claim.key for claim in claims if claim is not None}
    return frozenset(words), frozenset(keys)


def forget_fact(facts: str, what: str, names: Collection[str] = ()) -> FactRemoval:
    """Remove the sentences, or pieces of them, that contain every word of what to forget.

    Words are compared by their stems. `names` of the person and the subject of the statement may be missing in the
    text: "gruzilkin likes pizza" finds "He likes pizza.", unless a sentence has that subject. The opposite ("hates
    pizza") stays, unless only a thing is named: "pizza" finds both.
    """
    known = split_sentences(facts)
    # A few words do not show their language: that of the sentence counts.
    parts = {one: _wanted(what, names, _language_of(one, names)) for one in known}
    matching = [one for one, (_, wanted) in parts.items() if wanted and wanted <= _content(one, names, everything=True)]
    with_subject = [one for one in matching if parts[one][0] <= _content(one, names, everything=True)]
    kept: list[str] = []
    for one in known:
        gone = one in (with_subject or matching)
        kept += _without(one, parts[one][1], _THAT.sub("", what.strip()), names) if gone else [one]
    return FactRemoval("\n".join(kept), found=True) if kept != known else FactRemoval(facts, found=False)


def _language_of(text: str, names: Collection[str] = ()) -> str:
    return _language_among(text, tuple(names))


@holds_texts
@lru_cache(_CACHED)
def _language_among(text: str, names: tuple[str, ...]) -> str:
    return language_told(text) or guess_language(text, names=names)


def _without(sentence: str, wanted: frozenset[str], what: str, names: Collection[str]) -> list[str]:
    """Return a sentence without the pieces that contain all these words; nothing if only the whole sentence does."""
    pieces, language = _pieces(sentence), _language_of(sentence, names)
    holding = [piece for piece in pieces if wanted <= _content(piece, names, everything=True, language=language)]
    if not holding:
        return [] if _agree(sentence, what, names) else [sentence]
    gone = [piece for piece in holding if _may_mean(piece, what, names)]
    return _rejoined(sentence, pieces, gone, names) if gone else [sentence]


def _may_mean(piece: str, what: str, names: Collection[str]) -> bool:
    """Return whether statements that share words may mean the same: "works at Pizza Hut" is not "likes pizza"."""
    mine, others = claim_of(piece, names), claim_of(what, names)
    kinds = {
        _TASTE if kind in _TASTES else kind for claim in (mine, others) if claim for kind in [claim.key.split()[0]]
    }
    return len(kinds) < 2 and _agree(piece, what, names)  # noqa: PLR2004 - two kinds


def _agree(statement: str, what: str, names: Collection[str]) -> bool:
    """Return whether two statements are both denied, or both not. What only names a thing agrees with both."""
    return _denies(statement) == _denies(what) or _only_names(what, statement, names)


def _only_names(what: str, statement: str, names: Collection[str]) -> bool:
    """Return whether words name a thing that a denied statement is about, and claim nothing: "red wine", "my car".

    Several words must stand together in the statement, and not where its verb is: "drinks beer" claims the opposite of
    "never drinks beer".
    """
    if _denies(what) or claim_of(what, names) is not None:
        return False
    language = guess_language(statement, names=names)
    if language in UNSPACED_LANGUAGES:
        before, found, after = fold(statement).partition(fold(what).strip())
        particle = language != "japanese" or _PARTICLE.match(after) is not None
        return bool(found) and particle and _BEFORE_VERB.search(before) is None
    words = without_determiners(words_of(what))
    if not words or not stop_words(language).isdisjoint(words):
        return False
    before, found, _ = f" {' '.join(words_of(statement))} ".partition(f" {' '.join(words)} ")
    claimed = _BEFORE_VERB.search(f"{before} ") and not _BEFORE_THING.search(f"{before} ")
    return len(words) == 1 or (bool(found) and not claimed)


def _sentence(fact: str, name: str) -> str:
    """Return a fact as a sentence on one line, with a full stop and a capital unless it begins with a name."""
    plain = _THAT.sub("", " ".join(fact.split()))
    words = words_of(plain)
    if not words:
        return ""
    language = guess_language(plain, names=(name,))
    lists = vocabulary(language)
    if name and words[0] in lists.first_person:
        turned = third_person(plain, name) if language == "english" else None
        plain = turned or f'{name}: "{plain}"'
    elif words[0] in stop_words(language) | lists.dull:
        plain = plain[:1].upper() + plain[1:]
    return plain + ("" if plain.rstrip('"')[-1:] in _STOPS else ".")


def _same(new: Claim | None, old: Claim | None) -> bool:
    return new is not None and old is not None and new.key == old.key


def _without_contradiction(old: str, claim: Claim | None, names: Collection[str]) -> list[str]:
    """Return the parts of a sentence that do not contradict a claim: all, none, or its other pieces."""
    if claim is None:
        return [old]
    pieces = _pieces(old)
    if len(pieces) == 1:
        return [] if _same(claim, claim_of(old, names)) else [old]
    gone = [piece for piece in pieces if _same(claim, claim_of(piece, names))]
    return _rejoined(old, pieces, gone, names) if gone else [old]


def _pieces(sentence: str) -> list[str]:
    between = rf",\s+(?:and\s+)?|;\s+|\s+and\s+|{_AND.get(_language_of(sentence), '，')}"
    return [piece for piece in re.split(between, sentence.rstrip(_STOPS)) if piece.strip()]


def begins_with_verb(text: str) -> bool:
    """Return whether an English statement begins with its verb: "prefers tea", "is tall"."""
    return _VERB_FIRST.match(text) is not None


def _remaining(sentence: str, pieces: Sequence[str], gone: Collection[str], names: Collection[str]) -> list[str]:
    """Return the pieces that are left. What only continues a removed one ("Hamburg" of an address) goes with it."""
    rest: list[str] = []
    continues_removed = False
    for place, piece in enumerate(pieces):
        # Several words after an "and" are a statement: "allergique aux crustacés".
        joined = len(words_of(piece)) > 1 and not re.search(rf",\s+{re.escape(piece)}", sentence)
        states = place == 0 or joined or claim_of(piece, names) is not None or begins_with_verb(piece)
        if piece in gone:
            continues_removed = continues_removed or states
        elif states or not continues_removed:
            rest.append(piece)
            continues_removed = False
    return rest


def _rejoined(sentence: str, pieces: Sequence[str], gone: Collection[str], names: Collection[str]) -> list[str]:
    """Join the pieces that are left, with the subject of the sentence if its first piece was removed."""
    rest = _remaining(sentence, pieces, gone, names)
    if not rest:
        return []
    joined = ", ".join(rest)
    first = pieces[0]
    if first not in rest:
        claim = claim_of(first, names)
        # "Ann's favourite" names Ann.
        subject = _POSSESSIVE.split(first[: claim.start].strip())[0] if claim is not None else ""
        # "I'm a cook and I'm allergic": the rest has a subject of its own.
        subject = "" if not subject[-1:].isalnum() or fold(rest[0]).startswith(fold(subject)) else subject
        if subject and len(subject.split()) <= 2:  # noqa: PLR2004 - a name, or a first name and a family name
            joined = f"{subject} {joined}"
    stop = sentence[-1] if sentence[-1] in _STOPS else "."
    return [joined[:1].upper() + joined[1:] + stop]


def _says_more(one: str, other: str, names: Collection[str]) -> bool:
    """Return whether one sentence contains everything that the other says."""
    mine, others = _content(one, names, everything=True), _content(other, names, everything=True)
    if not others or _denies(one) != _denies(other):
        return False
    claim = claim_of(one, names)
    if claim is not None and claim.key.startswith(_CHOICE):
        # "Tea over coffee" is not "coffee over tea".
        return words_of(one) == words_of(other)
    return others <= mine


def _content(
    text: str, names: Collection[str], *, everything: bool = False, language: str | None = None
) -> frozenset[str]:
    """Return the stems of the content words of a text; without `everything`, only those of specific words."""
    return _content_of(text, language or _language_of(text, names), everything)


@holds_texts
@lru_cache(_CACHED)
def _content_of(text: str, language: str, everything: bool) -> frozenset[str]:  # noqa: FBT001
    words = words_of(text)
    left_out = stop_words(language) if everything else stop_words(language) | vocabulary(language).dull
    telling = [word for word in words if word not in left_out]
    return frozenset(stems(telling or words, language))


def _wanted(what: str, names: Collection[str], language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of the subject, if there is one, and of the rest of the statement."""
    plain = _THAT.sub("", what.strip())
    claim = claim_of(plain, names)
    subject = plain[: claim.start].strip() if claim is not None and ":" not in claim.key else ""
    own = {stem for name in names for stem in stems(words_of(name), "english")}
    wanted = _content(plain[len(subject) :] if subject else plain, names, language=language) - own
    return (_content(subject, names, language=language) - own if subject else frozenset()), wanted


@holds_texts
@lru_cache(_CACHED)
def _denies(text: str) -> bool:
    return _HATES.search(re.sub(r"['’]", " ", fold(text))) is not None
