"""Plain statements inside messages that ask for something.

"I have diabetes. What should I eat for breakfast?" is judged by what it asks for, so as a whole it does not seem worth
remembering. Its parts are judged alone then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from aforesaid.models.offline import is_joke
from aforesaid.models.salience import PLAIN_WORDS, Judgement
from aforesaid.text.languages import guess_language
from aforesaid.text.sentences import (
    POLITE,
    begins_with_pronoun,
    is_question,
    length_in_words,
    points_elsewhere,
    split_sentences,
    without_opener,
)
from aforesaid.text.vocabulary import vocabulary
from aforesaid.text.words import UNSPACED_LANGUAGES

_MOST_WORDS: Final = 40
"""Maximum words of a message whose parts are judged. Longer ones tell a story."""
_LEAST_WORDS: Final = 2
_STOPS: Final = ".!…。！।"
_CLAUSE: Final = re.compile(r"\s*[,;:،]\s+|\s*[，；、،]\s*|\s+[–—-]+\s+")


class PlainPart(NamedTuple):
    """A part of a message that is worth remembering by itself."""

    words: str
    judgement: Judgement


def parts_of(text: str) -> list[str]:
    """Return the sentences and clauses of a message that may be plain statements. None unless it asks for something."""
    if length_in_words(text) > _MOST_WORDS:
        return []
    sentences = split_sentences(text)
    if not (POLITE.search(text) or any(map(is_question, sentences))) or is_joke(text):
        return []
    return list(dict.fromkeys(_plain_parts(sentences, text)))


def _plain_parts(sentences: list[str], text: str) -> Iterator[str]:
    language = guess_language(text)
    words = vocabulary(language)
    for sentence in sentences:
        asks = is_question(sentence)
        clauses = [clause for clause in _CLAUSE.split(sentence) if clause]
        # What a question asks for comes last: "I'm vegetarian, what can I cook?"
        found = [clause for clause in (clauses[:-1] if asks else clauses) if POLITE.search(clause) is None]
        if not asks and len(found) == len(clauses):
            found = [sentence]
        for each in found:
            part = without_opener(each, words, ())
            alone = not points_elsewhere(part, language) and not begins_with_pronoun(part, language)
            if _LEAST_WORDS <= length_in_words(part) <= PLAIN_WORDS and not is_question(part) and alone:
                # The model has learned from whole sentences.
                yield part if part[-1] in _STOPS else part + ("。" if language in UNSPACED_LANGUAGES else ".")
