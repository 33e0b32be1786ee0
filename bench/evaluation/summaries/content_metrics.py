"""Count labelled facts and small talk in summaries, independent of how the summaries were made."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from aforesaid.text.languages import index_language, stems, stop_words, terms
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import words_of
from evaluation.summaries.chats import Chat

# Words of greetings, politeness and agreement, in addition to the stop words.
_POLITE: Final = """
    hi hey hello bye goodbye thanks thank thx welcome congrats congratulations wow yeah yes yep nope ok okay sure
    great awesome amazing cool nice good glad happy love lovely sound sounds really totally absolutely definitely
    exactly right well oh ah aww haha lol hmm um uh see look looks take care later soon talk chat catch keep hear
    heard let know luck fun day time way long cute sweet wonderful fantastic excellent perfect beautiful incredible
    impressive inspiring proud wait thing things
"""
_LEAST_WORDS: Final = 2
_LEAST_WORDS_OF_A_QUESTION: Final = 3


def facts_covered(summary: str, chat: Chat) -> tuple[int, int]:
    """Return how many facts a summary covers, and how many there are.

    A fact is covered when at least half of its content words are in the summary, as stems. The names of the speakers do
    not count: every line of a summary has one.
    """
    names = _names(chat)
    present = set(terms(summary))
    wanted = [words for fact in chat.facts if (words := content_words(fact) - names)]
    return sum(2 * len(words & present) >= len(words) for words in wanted), len(wanted)


def small_talk(summary: str, chat: Chat) -> tuple[int, int]:
    """Return how many sentences of a summary are small talk, and how many there are.

    Small talk has fewer than two words, or as a question fewer than three, that are neither stop words nor names of
    the speakers nor polite.
    """
    light = _names(chat) | set(terms(_POLITE))
    speakers = {turn.speaker for turn in chat.turns}
    found = [sentence for line in summary.splitlines() for sentence in split_sentences(_said(line, speakers))]
    return sum(_says_nothing(sentence, light) for sentence in found), len(found)


def content_words(text: str) -> set[str]:
    """Return the stems of the words of a text that are not stop words."""
    words = words_of(text)
    language = index_language(words)
    return set(stems((word for word in words if word not in stop_words(language)), language))


def _says_nothing(sentence: str, light: Collection[str]) -> bool:
    least = _LEAST_WORDS_OF_A_QUESTION if sentence.rstrip().endswith(("?", "？")) else _LEAST_WORDS
    return len(content_words(sentence).difference(light)) < least


def _names(chat: Chat) -> set[str]:
    return {term for turn in chat.turns for term in terms(turn.speaker)}


def _said(line: str, speakers: Iterable[str]) -> str:
    """Return a line of a summary without its leading name and date."""
    label, colon, rest = line.partition(": ")
    return rest if colon and any(label.startswith(speaker) for speaker in speakers) else line
