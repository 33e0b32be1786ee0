"""Words that point to something said before: "it", "there", "she". A sentence that begins with one needs it."""

from __future__ import annotations

from typing import Final

from aforesaid.text.folding import fold
from aforesaid.text.scripts import UNSPACED_LANGUAGES
from aforesaid.text.words import words_of

_POINTING: Final = {
    "english": "it its it's that that's those these this there they they're them he he's she she's him her same both",
    "german": "es das die der dort da sie er ihn ihm ihr dies dieser diese denen",
    "spanish": "eso esa ese esto alli ahi ellos ellas el ella lo la los las",
    "french": "ca cela c'est c la y il elle ils elles eux",
    "italian": "quello quella questo questa li la lo ci lui lei loro",
    "portuguese": "isso isto aquilo la ali ele ela eles elas",
    "dutch": "het dat dit daar die hij zij ze hem haar",
    "russian": "это этот эта там он она они его ее их",
    "arabic": "هو هي هم هذا هذه ذلك هناك",
    "hindi": "वह वो यह ये वहां उसने उन्होंने",
    "chinese": "他 她 它 那 这",
    "japanese": "それ これ あれ そこ あそこ 彼 彼女 その",
    "korean": "그 그거 그것 거기 걔 그녀",
}
_PRONOUNS: Final = {
    "english": "it it's they they're them he he's she she's him her",
    "german": "es er ihn ihm",
    "spanish": "ella ellos ellas eso",
    "french": "ca cela c'est elle ils elles eux",
    "italian": "lui lei loro",
    "portuguese": "ele ela eles elas isso",
    "dutch": "hij zij ze hem",
    "russian": "он она они его ее их",
    "arabic": "هو هي هم",
    "hindi": "वह वो उसने उन्होंने",
    "chinese": "他 她 它",
    "japanese": "彼 彼女",
    "korean": "걔 그녀",
}
"""The pointing words that cannot be articles or mean somebody who is spoken to."""


_SOMEBODY: Final = {
    "english": "he he's she she's",
    "german": "er",
    "spanish": "el ella",
    "french": "il elle",
    "italian": "lui lei",
    "portuguese": "ele ela",
    "dutch": "hij zij",
    "russian": "он она",
    "arabic": "هو هي",
    "hindi": "वह वो",
    "chinese": "他 她",
    "japanese": "彼",
    "korean": "걔 그녀",
}
"""The pronouns that mean one person, or may do so."""


def _folded(lists: dict[str, str]) -> dict[str, frozenset[str]]:
    return {language: frozenset(map(fold, words.split())) for language, words in lists.items()}


_POINTING_WORDS: Final = _folded(_POINTING)
_PRONOUN_WORDS: Final = _folded(_PRONOUNS)
_SOMEBODY_WORDS: Final = _folded(_SOMEBODY)


def points_elsewhere(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a word that points to something said before."""
    return _begins_with(_POINTING_WORDS.get(language, frozenset()), sentence, language)


def begins_with_pronoun(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a pronoun for somebody or something mentioned before."""
    return _begins_with(_PRONOUN_WORDS.get(language, frozenset()), sentence, language)


def is_about_somebody(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with "he" or "she", so that it is not about its speaker."""
    return _begins_with(_SOMEBODY_WORDS.get(language, frozenset()), sentence, language)


def _begins_with(wanted: frozenset[str], sentence: str, language: str) -> bool:
    if language in UNSPACED_LANGUAGES:
        return bool(wanted) and fold(sentence).startswith(tuple(wanted))
    return bool(words := words_of(sentence)) and words[0] in wanted
