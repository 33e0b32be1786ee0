"""Finds the people whom a text mentions: relatives, friends and colleagues of its speaker, and their names.

A name is recognised by the words beside it: a word for a relation ("my sister Carol", "Carol is my sister"), or a
verb that only people are the subject or object of ("Carol said", "I met Carol"). A capital letter is not enough,
because places and products have one too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from aforesaid.extras import re
from aforesaid.text.languages import guess_language, stop_words
from aforesaid.text.times.time_words import plain_calendar_words
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

_OWN_SUFFIX: Final = frozenset({"arabic", "korean"})
"""Languages in which the possessive is part of the word, or left out."""
_NAME: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SENTENCE_MARKS: Final = frozenset('.!?:"“„«\n')
_BETWEEN: Final = 2
"""Words between "my" and the relation: "my little sister", "my best friend"."""
_MENTION_WORDS: Final = 12
"""Maximum words of a mention: "my", the relation, "is called", and a name."""
_MOST_CHARACTERS: Final = 4_000
_LONGEST_NAME_WORDS: Final = 4
_POSSESSIVE: Final = re.compile(r"['’]s$")


class _Lists(NamedTuple):
    relations: dict[str, str]
    """The relation of each word."""
    my: frozenset[str]
    without_my: frozenset[str]
    is_: frozenset[str]
    called: frozenset[str]
    says: frozenset[str]
    to_whom: frozenset[str]
    of_people: frozenset[str]
    determiners: frozenset[str]
    titles: frozenset[str]


class Mention(NamedTuple):
    """A person whom a text mentions."""

    name: str | None
    """As it is written; None if only the relation is known."""
    relation: str | None
    """To the speaker of the text, such as `sister`; None if unknown."""
    start: int


class _Word(NamedTuple):
    text: str
    folded: str
    start: int
    joined: bool
    """Whether nothing but a space or a comma separates it from the word before."""
    begins: bool
    """Whether it begins a sentence."""
    adjacent: bool
    """Whether it can belong to the same name as the word before: nothing but spaces, or a title's dot, is between."""


class _Name(NamedTuple):
    text: str
    start: int


def mentioned_people(text: str, speakers: Collection[str] = (), until: int | None = None) -> list[Mention]:
    """Return the people whom a text mentions, in order. `speakers` are names of its speaker, who is not one of them.

    "Ann's sister" is a sister of the speaker, if Ann is the speaker. With `until`, only mentions that begin up to
    this position are returned.
    """
    text = text[:_MOST_CHARACTERS]
    language = guess_language(text, names=speakers)
    last = len(text) if until is None else until
    if language in UNSPACED_LANGUAGES:
        folded, parts = fold(text), dict[str, Mention]()
        for word, relation in _lists().relations.items():
            place = -1 if word.isascii() else folded.find(word)
            if 0 <= place <= last and relation not in parts:
                parts[relation] = Mention(None, relation, place)
        return sorted(parts.values(), key=lambda mention: mention.start)
    own = {word for name in speakers for word in words_of(name)}
    words = list(_words(text, last))
    found: list[Mention] = []
    for place in range(len(words)):
        mention = _related(words, place, own, language) or _by_verb(words, place, own, language)
        if mention is not None and mention.start <= last:
            found.append(mention)
    related = {mention.name for mention in found if mention.relation is not None}
    return [each for each in found if each.relation is not None or each.name not in related]


@cache
def relation_called(word: str) -> str | None:
    """Return the relation that a word names, in any of the languages; None if it names none."""
    return _lists().relations.get(fold(word).strip())


def without_determiners(words: Sequence[str]) -> Sequence[str]:
    """Return folded words without the articles and words for "my" that they begin with, in any of the languages."""
    before = _lists().determiners | _lists().my
    first = next((place for place, word in enumerate(words) if word not in before), len(words))
    return words[first:]


@cache
def _lists() -> _Lists:
    table = tomllib.loads((files("aforesaid.text") / "relations.toml").read_text(encoding="utf-8"))
    relations = {fold(word): relation for relation, words in table["relations"].items() for word in words.split()}
    return _Lists(relations, *(frozenset(map(fold, words.split())) for words in table["words"].values()))


def _words(text: str, until: int) -> Iterator[_Word]:
    """Return the words of a text, up to those that can belong to a mention that begins at `until`."""
    end = later = 0
    before = ""
    for match in _NAME.finditer(text):
        later += match.start() > until
        if later > _MENTION_WORDS:
            return
        between = text[end : match.start()]
        dotted = between.strip() == "." and before in _lists().titles
        begins = end == 0 or (not dotted and not _SENTENCE_MARKS.isdisjoint(between))
        adjacent = end > 0 and not begins and (dotted or not between.strip())
        before = fold(match[0])
        yield _Word(match[0], before, match.start(), between.strip() in {"", ","} and end > 0, begins, adjacent)
        end = match.end()


def _related(words: Sequence[_Word], place: int, own: Collection[str], language: str) -> Mention | None:
    """Return the person whom a word for a relation names: "my sister", with the name beside it."""
    relation = _lists().relations.get(_POSSESSIVE.sub("", words[place].folded))
    if relation is None:
        return None
    first = _possessive(words, place, own, language)
    if first is None:
        return None
    after = place + 1
    while after < len(words) and words[after].folded in _lists().called and after < place + 4:
        after += 1
    called = after > place + 1
    name = _name_at(words, after, own, language) if after < len(words) and (called or words[after].joined) else None
    if name is None:
        before = first - 1
        linked = before >= 0 and words[before].folded in _lists().is_
        before -= linked
        if before >= 0 and (linked or words[first].joined) and not words[first].begins:
            name = _name_at(words, before, own, language, subject=linked)
    return Mention(None if name is None else name.text, relation, words[first].start)


def _possessive(words: Sequence[_Word], place: int, own: Collection[str], language: str) -> int | None:
    """Return the place where the phrase of a relation begins, if it is one of the speaker's."""
    for before in range(place - 1, max(place - 2 - _BETWEEN, -1), -1):
        folded = words[before].folded
        if folded in _lists().my or (_POSSESSIVE.search(folded) and _POSSESSIVE.sub("", folded) in own):
            return before
        if _POSSESSIVE.search(folded) or not words[before + 1].joined:
            return None
    plain = words[place].folded in _lists().without_my or language in _OWN_SUFFIX
    alone = place == 0 or words[place - 1].folded not in _lists().determiners | {"her", "his", "their", "your"}
    return place if plain and alone else None


def _by_verb(words: Sequence[_Word], place: int, own: Collection[str], language: str) -> Mention | None:
    """Return the person whose name a verb or a possessive shows: "Carol said", "I met Carol", "Carol's birthday"."""
    following = words[place + 1].folded if place + 1 < len(words) and words[place + 1].joined else ""
    before = words[place - 1].folded if place and words[place].joined else ""
    possessed = _POSSESSIVE.search(words[place].text) is not None
    shown = (
        (possessed and following in _lists().of_people)
        or following in _lists().says
        or (language == "english" and before in _lists().to_whom and not possessed and not _is_passive(words, place))
    )
    if not shown or before in _lists().determiners | _lists().my:
        return None
    name = _name_at(words, place, own, language, subject=following in _lists().says)
    return None if name is None else Mention(name.text, None, name.start)


def _is_passive(words: Sequence[_Word], place: int) -> bool:
    """Return whether the verb before a name only says what something is called: "her cat is called Ministro"."""
    return place > 1 and words[place - 1].folded in _lists().called and words[place - 2].folded in _lists().is_


def _name_at(
    words: Sequence[_Word], place: int, own: Collection[str], language: str, *, subject: bool = False
) -> _Name | None:
    """Return the whole name that a word belongs to, with titles ("Senhor Tavares"); None if the word is not a name.

    `subject` says that a verb follows it.
    """
    if not _is_part(words[place], own, language, subject=subject):
        return None
    # In German every noun has a capital letter, so a word beside a name belongs to it only if one is a title.
    titled = language == "german"
    first = last = place
    while words[first].adjacent and _is_part(words[first - 1], own, language):
        title = words[first - 1].folded in _lists().titles
        if not title and (titled or words[first - 1].begins):
            break
        first -= 1
    while (
        last + 1 < len(words)
        and words[last + 1].adjacent
        and not _POSSESSIVE.search(words[last].text)
        and _is_part(words[last + 1], own, language)
        and (not titled or words[last].folded in _lists().titles)
    ):
        last += 1
    name = words[first : last + 1][:_LONGEST_NAME_WORDS]
    if all(word.folded in _lists().titles for word in name):
        return None
    return _Name(" ".join(_POSSESSIVE.sub("", word.text) for word in name), name[0].start)


def _is_part(word: _Word, own: Collection[str], language: str, *, subject: bool = False) -> bool:
    """Return whether a word can be part of a name: it has a capital and is no common one."""
    text = _POSSESSIVE.sub("", word.text)
    folded = fold(text)
    lists = _lists()
    common = folded in stop_words(language) or folded in plain_calendar_words() or folded in lists.relations
    # These are words of all languages: "mia" is Italian for "my", and Mia is a name. Such a word has a capital only
    # where a sentence begins, and no verb follows it.
    if word.begins and not subject:
        common = common or folded in lists.my | lists.is_ | lists.determiners
    return text[:1].isupper() and not text.isupper() and not common and folded not in own
