"""Decides which candidates are stored, which are quarantined until a person approves them, and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from aforesaid.domain.memory import Tombstone
from aforesaid.domain.message import Message
from aforesaid.facts.candidate import Candidate
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
"""Minimum share of words that others said, from which an unsupported candidate counts as an echo of them."""
_YES: Final = re.compile(
    r"\s*(?:yes|yeah|yep|yup|sure|right|exactly|correct|true|indeed|ok|okay|of course|absolutely|ja|genau|stimmt|"
    r"richtig|si|claro|exacto|oui|exactement|d'accord|esatto|certo|sim|isso|klopt|да|верно|точно|конечно|نعم|是|对|对的|没错|好的|はい|うん|そう|네|응|हाँ)\b"
)


class Admission(NamedTuple):
    """Whether a candidate is dropped or quarantined. Neither: it becomes an active memory."""

    dropped: str | None = None
    """Why it is dropped: `junk`, `echo`, `unsupported` or `forgotten`."""
    quarantine: str | None = None
    """Why a person must approve it."""


def admit(
    candidate: Candidate,
    batch: Sequence[Message],
    owner: Person,
    people: Mapping[str, Person],
    tombstones: Sequence[Tombstone],
    near: Mapping[str, float],
) -> Admission:
    """Return whether a candidate is stored, quarantined or dropped.

    `near` maps texts of candidates to their similarity of meaning with their sources, where that was compared.
    """
    names = tuple(name for person in people.values() for name in person.names)
    if _junk(candidate):
        return Admission(dropped="junk")
    admission = Admission()
    if not candidate.has_original_words:
        admission = _check_sources(candidate, batch, names, near.get(candidate.text))
        if admission.dropped is not None:
            return admission
        if is_about_somebody_else(candidate, people):
            admission = Admission(quarantine="its sources may say it about somebody else")
    if is_forgotten(candidate, owner, tombstones):
        return Admission(dropped="forgotten")
    return Admission(quarantine=_suspicion_of(candidate, owner) or admission.quarantine)


def is_forgotten(candidate: Candidate, owner: Person, tombstones: Sequence[Tombstone]) -> bool:
    """Return whether the user asked to forget this after it was said."""
    texts = [candidate.text, *([candidate.quote] if candidate.quote else [])]
    return any(
        candidate.last <= tombstone.up_to and states(text, tombstone.words, owner.names)
        for tombstone in tombstones
        for text in texts
    )


def states(text: str, words: str, names: Collection[str]) -> bool:
    """Return whether a text states a fact, given in any words."""
    return forget_fact(text, words, names).found


def _junk(candidate: Candidate) -> bool:
    text = candidate.text
    said = words_of(text)
    if not any(character.isalpha() for character in text) or len(said) < _LEAST_WORDS:
        return True
    telling = statement(text).words - {word for name in candidate.speaker.names for word in words_of(name)}
    return not telling or (is_question(text) and candidate.category not in {"task", "reminder"})


def _check_sources(
    candidate: Candidate, batch: Sequence[Message], names: Collection[str], near: float | None
) -> Admission:
    """Check that the speaker said what a model wrote, and not somebody else or the model itself."""
    own = own_words(candidate)
    supported = shared_words(candidate.text, own, names)
    if supported >= SUPPORTED:
        return Admission()
    others = [message.text for message in batch if message.role != "user" or message.author != candidate.speaker.id]
    echoed = support(candidate.text, others, names)
    if any(_YES.match(fold(text)) for text in own) and echoed > 0:
        # The person confirmed what the assistant or somebody else had said.
        return Admission()
    if echoed >= _ECHO:
        return Admission(dropped="echo")
    likely = supported > 0 if near is None else near >= NEAR or (near > FAR and supported > 0)
    if likely:
        return Admission()
    if near is not None and near < FAR and not supported:
        return Admission(dropped="unsupported")
    return Admission(quarantine="its sources do not say it in these words")


def _suspicion_of(candidate: Candidate, owner: Person) -> str | None:
    """Return why a person should check a candidate; None if nobody has to.

    A standing request of the user is meant to be an instruction; the rest of its message is not.
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
    """Return whether a candidate by somebody else is about the owner, and not about its speaker."""
    if candidate.subject is not None and candidate.subject.startswith("@"):
        return False
    called = {word for name in owner.names for word in words_of(name)}
    return not called.isdisjoint(words_of(candidate.text))
