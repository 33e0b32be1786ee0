"""Checks that the sources of a candidate support it, and that it is about the right person.

If a candidate shares enough words with its sources, the words decide. Otherwise ("Ann is pregnant" from "we are
expecting a baby") its meaning decides, in any language. If neither decides, a person has to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from aforesaid.domain.message import Message
from aforesaid.errors import ModelError
from aforesaid.facts.candidate import Candidate
from aforesaid.facts.people import Person
from aforesaid.facts.statement import statement, support
from aforesaid.models.calibration import nearness
from aforesaid.models.embed import Embedder
from aforesaid.text.languages import guess_language
from aforesaid.text.relations import relation_called
from aforesaid.text.sentences import own_text, split_sentences
from aforesaid.text.vocabulary import vocabulary
from aforesaid.text.words import UNSPACED_LANGUAGES, words_of

SUPPORTED: Final = 0.2
"""Share of words in common with its sources from which a candidate is not compared by meaning."""
CLEARLY_SHARED: Final = 0.5
"""Share of words from which a standing request is the person's own, and from which single characters count as words."""
_MOSTLY_SHARED: Final = 0.65
"""Share of words from which a message is the source of a candidate although a model names another one."""
_PARTLY_SHARED: Final = 0.4
"""The same where the named message shares a few words too: the model put two messages together."""
NEAR: Final = 3.5
"""Similarity from which a candidate is supported, in standard deviations. Chosen on tests/facts/test_grounding.py.

On the separate pairs of tests/facts/held_out.py it accepts no invention.
"""
FAR: Final = 1.0
"""Similarity below which a candidate is unrelated to its sources, in standard deviations.

Between `FAR` and `NEAR` a person decides. The same holds for a candidate that is at least `FAR` similar to its sources
but more similar to an unrelated sentence.
"""
_MY: Final = re.compile(
    r"\W*(?:my|mein|meine|mon|ma|mi|mio|mia|il mio|la mia|meu|minha|o meu|a minha|мой|моя)\s+(\w+)", re.IGNORECASE
)


async def meanings(
    candidates: Sequence[Candidate], people: Mapping[str, Person], embedder: Embedder | None
) -> dict[str, float]:
    """Return the similarity of candidates with their sources, by text, for those that share few words with them.

    Without an embedder, or while it fails, nothing is returned, and a person decides about such candidates.
    """
    names = [name for person in people.values() for name in person.names]
    found: dict[str, float] = {}
    for candidate in candidates:
        said = own_words(candidate)
        if embedder is None or candidate.has_original_words or shared_words(candidate.text, said, names) >= SUPPORTED:
            continue
        # Names say nothing about the event, but weigh much in a short sentence.
        nameless = _without(candidate.text, names)
        try:
            near = [await nearness([text], said, embedder, most_elsewhere=FAR) for text in (candidate.text, nameless)]
        except ModelError:
            return found
        found[candidate.text] = max((number for each in near for number in each), default=0.0)
    return found


def shared_words(text: str, said: Sequence[str], names: Collection[str]) -> float:
    """Return the share of a text's words that were said, 0 to 1.

    In languages without spaces a small share counts as 0: words are single characters there, and any two texts share
    some.
    """
    share = support(text, said, names)
    return share if share >= CLEARLY_SHARED or guess_language(text) not in UNSPACED_LANGUAGES else 0.0


def own_words(candidate: Candidate) -> list[str]:
    """Return what people said, and did not quote, in the sources of a candidate, and the memory that it completes."""
    said = [own_text(message.text) for message in candidate.sources if message.role == "user"]
    return [*said, candidate.completes] if candidate.completes else said


def supporting(
    text: str, named: Sequence[Message], spoken: Sequence[Message], names: Collection[str]
) -> tuple[Message, ...]:
    """Return the messages of people that a text rests on, of those that a model names; none if it names none.

    Small models name every message, or the wrong one. So messages that share far fewer words with the text than another
    one are left out; and where one of `spoken` that was not named shares far more, it is the source instead.
    """
    if not named:
        return ()
    shares = {message.seq: shared_words(text, [message.text], names) for message in spoken}
    best, nearest = max(shares.values()), max(shares[message.seq] for message in named)
    enough = _PARTLY_SHARED if nearest > 0 else _MOSTLY_SHARED
    if best >= enough and nearest <= best / 2:
        return (next(message for message in spoken if shares[message.seq] == best),)
    if nearest < SUPPORTED:
        return tuple(named)
    return tuple(message for message in named if shares[message.seq] >= nearest / 2)


def is_the_opposite(candidate: Candidate, names: Collection[str]) -> bool:
    """Return whether a candidate denies what the sentences say that share most words with it, or the other way round.

    One that shares no word with any sentence is compared by meaning instead.
    """
    nearest = _nearest_sentences(candidate, names)
    denies = statement(candidate.text).denies
    return bool(nearest) and all(statement(sentence).denies != denies for sentence in nearest)


def is_too_certain(candidate: Candidate, names: Collection[str]) -> bool:
    """Return whether a candidate states as a fact what the sentences nearest to it call possible or only wish for."""
    nearest = _nearest_sentences(candidate, names)
    return bool(nearest) and not statement(candidate.text).hedges and all(map(_hedges, nearest))


def _hedges(sentence: str) -> bool:
    return statement(sentence).hedges


def _nearest_sentences(candidate: Candidate, names: Collection[str]) -> list[str]:
    """Return the sentences of the sources that share most words with a candidate; none if no sentence shares any."""
    sentences = [each for source in own_words(candidate) for each in split_sentences(source)]
    shares = [shared_words(candidate.text, [sentence], names) for sentence in sentences]
    most = max(shares, default=0.0)
    return [sentence for sentence, share in zip(sentences, shares, strict=True) if share == most > 0]


def is_about_somebody_else(candidate: Candidate, people: Mapping[str, Person]) -> bool:
    """Return whether a candidate attributes to one person what its sources say about another.

    Either it names somebody who is neither author nor mentioned in its sources, or it says about the speaker what they
    said about a relative or friend ("Ann moved to Rome" from "my sister moved to Rome").
    """
    named = _words([candidate.text])
    said = _words(own_words(candidate))
    authors = {message.author for message in candidate.sources if message.role == "user"}
    mentioned = {person.id for person in people.values() if not named.isdisjoint(_words(person.names))}
    strangers = {each for each in mentioned - authors if said.isdisjoint(_words(people[each].names))}
    if strangers and not mentioned & authors:
        return True
    return candidate.speaker.id in mentioned and _said_of_a_relative(candidate, named)


def _said_of_a_relative(candidate: Candidate, named: Collection[str]) -> bool:
    text = candidate.text
    subject = next((name for name in candidate.speaker.names if text.casefold().startswith(name.casefold())), None)
    if subject is None or text[len(subject) :].startswith(("'", "’")):
        return False
    for sentence in (each for source in own_words(candidate) for each in split_sentences(source)):
        begins = _MY.match(sentence)
        relative = words_of(begins[1]) if begins else []
        if begins is None or not any(map(relation_called, relative)) or not set(relative).isdisjoint(named):
            continue
        rest = words_of(sentence[begins.end() :])
        spoken = vocabulary(guess_language(sentence)).first_person
        if spoken.isdisjoint(rest) and support(text, [sentence], candidate.speaker.names) >= SUPPORTED:
            return True
    return False


def _words(texts: Collection[str]) -> set[str]:
    return {word for text in texts for word in words_of(text)}


def _without(text: str, names: Collection[str]) -> str:
    longest = sorted((re.escape(name) for name in names if name), key=len, reverse=True)
    return " ".join(re.sub(rf"(?:{'|'.join(longest)})(?:['’]s)?", " ", text, flags=re.IGNORECASE).split()) or text
