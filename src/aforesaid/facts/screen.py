"""Which candidates are believed, which wait for a person, and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from aforesaid.domain.memory import Tombstone
from aforesaid.domain.message import Message
from aforesaid.facts.candidate import RULES, Candidate
from aforesaid.facts.grounding import FAR, NEAR, SUPPORTED, is_about_somebody_else, own_words, shared_words
from aforesaid.facts.people import Person
from aforesaid.facts.statement import statement, support
from aforesaid.facts.suspicion import sensitive, suspicion, tampered
from aforesaid.models.offline import forget_fact, without_requests
from aforesaid.text.folding import fold
from aforesaid.text.sentences import is_question
from aforesaid.text.words import words_of

_LEAST_WORDS: Final = 2
_ECHO: Final = 0.6
"""Share of its words in what others said from which on a candidate that the speaker did not support is an echo."""
_YES: Final = re.compile(
    r"\s*(?:yes|yeah|yep|yup|sure|right|exactly|correct|true|indeed|ok|okay|of course|absolutely|ja|genau|stimmt|"
    r"richtig|si|claro|exacto|oui|exactement|d'accord|esatto|certo|sim|isso|klopt|да|верно|точно|конечно|نعم|是|对|对的|没错|好的|はい|うん|そう|네|응|हाँ)\b"
)


class Screened(NamedTuple):
    """What became of a candidate."""

    dropped: str | None = None
    """Why it is not kept: `junk`, `echo`, `unsupported`, `forgotten`."""
    quarantine: str | None = None
    """Why it waits for a person."""


def screen(
    candidate: Candidate,
    batch: Sequence[Message],
    owner: Person,
    people: Mapping[str, Person],
    stones: Sequence[Tombstone],
    near: Mapping[str, float],
) -> Screened:
    """Decide whether a candidate is kept at all, and whether it is believed.

    `near` has how near candidates are to their sources in meaning, by their text, where that was compared.
    """
    names = tuple(name for person in people.values() for name in person.names)
    if _junk(candidate):
        return Screened(dropped="junk")
    judged = Screened()
    if candidate.extractor != RULES:
        judged = _grounded(candidate, batch, names, near.get(candidate.text))
        if judged.dropped is not None:
            return judged
        if is_about_somebody_else(candidate, people):
            judged = Screened(quarantine="its sources may say it about somebody else")
    if forgotten(candidate, owner, stones):
        return Screened(dropped="forgotten")
    return Screened(quarantine=_doubt(candidate, owner) or judged.quarantine)


def forgotten(candidate: Candidate, owner: Person, stones: Sequence[Tombstone]) -> bool:
    """Tell whether somebody asked to forget this after it was said."""
    texts = [candidate.text, *([candidate.quote] if candidate.quote else [])]
    return any(
        candidate.last <= stone.up_to and matches(text, stone.words, owner.names) for stone in stones for text in texts
    )


def matches(text: str, words: str, names: Collection[str]) -> bool:
    """Tell whether a text says what is to be forgotten."""
    return forget_fact(text, words, names).found


def _junk(candidate: Candidate) -> bool:
    text = candidate.text
    said = words_of(text)
    if not any(character.isalpha() for character in text) or len(said) < _LEAST_WORDS:
        return True
    telling = statement(text).words - {word for name in candidate.speaker.names for word in words_of(name)}
    return not telling or (is_question(text) and candidate.category not in {"task", "reminder"})


def _grounded(candidate: Candidate, batch: Sequence[Message], names: Collection[str], near: float | None) -> Screened:
    """Judge whether a person said what a model wrote, or whether it is somebody else's idea or the model's."""
    own = own_words(candidate)
    supported = shared_words(candidate.text, own, names)
    if supported >= SUPPORTED:
        return Screened()
    others = [message.text for message in batch if message.role != "user" or message.author != candidate.speaker.id]
    echoed = support(candidate.text, others, names)
    if any(_YES.match(fold(text)) for text in own) and echoed > 0:
        # The person confirmed what the assistant or somebody else had said.
        return Screened()
    if echoed >= _ECHO:
        return Screened(dropped="echo")
    likely = supported > 0 if near is None else near >= NEAR or (near > FAR and supported > 0)
    if likely:
        return Screened()
    if near is not None and near < FAR and not supported:
        return Screened(dropped="unsupported")
    return Screened(quarantine="its sources do not say it in these words")


def _doubt(candidate: Candidate, owner: Person) -> str | None:
    """Return why a candidate should be looked at by a person.

    A standing request of the person is an instruction, and is meant to be one. Whatever else its message says is not.
    """
    own = tampered(candidate.text) if candidate.request else suspicion(candidate.text)
    if own is not None:
        return own
    for message in candidate.sources:
        said = without_requests(message.text) if candidate.request else message.text
        if message.role == "user" and (reason := tampered(message.text) or suspicion(said)) is not None:
            return f"the message that it comes from is suspicious: {reason}"
    if candidate.speaker.id != owner.id and _about(owner, candidate) and sensitive(candidate.text):
        return "somebody else said something sensitive"
    return None


def _about(owner: Person, candidate: Candidate) -> bool:
    """Tell whether somebody else speaks about the owner, and not about themselves."""
    if candidate.subject is not None and candidate.subject.startswith("@"):
        return False
    called = {word for name in owner.names for word in words_of(name)}
    return not called.isdisjoint(words_of(candidate.text))
