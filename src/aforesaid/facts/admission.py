"""Decides which candidates are stored, which are quarantined until a person approves them, and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from aforesaid.domain.memory import Tombstone
from aforesaid.domain.message import Message
from aforesaid.facts.candidate import Candidate
from aforesaid.facts.grounding import FAR, NEAR, SUPPORTED, is_about_somebody_else, own_words, shared_words
from aforesaid.facts.people import Person, whom
from aforesaid.facts.statement import name_stems, statement, stems_in, support
from aforesaid.facts.suspicion import suspicion, tampered
from aforesaid.models.offline import forget_fact, without_requests
from aforesaid.text.sentences import is_question, own_text, split_sentences
from aforesaid.text.words import fold, words_of

_LEAST_WORDS: Final = 2
_ECHO: Final = 0.6
"""Minimum share of words that others said, from which an unsupported candidate counts as an echo of them."""
_BORROWED: Final = 1 / 3
"""Maximum share of words that others said and the speaker did not. A sentence may need a few of them."""
_DATE: Final = re.compile(r"\(?\b\d{4}(?:-\d\d){1,2}\b(?: \d\d:\d\d)?\)?")
_YES: Final = re.compile(
    r"\s*(?:yes|yeah|yep|yup|sure|right|exactly|correct|true|indeed|ok|okay|of course|absolutely|ja|genau|stimmt|"
    r"richtig|si|claro|exacto|oui|exactement|d'accord|esatto|certo|sim|isso|klopt|да|верно|точно|конечно|نعم|是|对|对的|没错|好的|はい|うん|そう|네|응|हाँ)\b"
)


class Admission(NamedTuple):
    """Whether a candidate is dropped or quarantined. Neither: it becomes an active memory."""

    dropped: str | None = None
    """Why it is dropped: `junk`, `echo`, `unsupported`, `forgotten`, or `hearsay` (others say it about the user)."""
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

    What is known about a person rests on what they said themself: words of the assistant, of a page or of somebody else
    are evidence of what those said.

    `near` maps texts of candidates to their similarity of meaning with their sources, where that was compared.
    """
    names = tuple(name for person in people.values() for name in person.names)
    if _junk(candidate):
        return Admission(dropped="junk")
    if candidate.speaker.id != owner.id and _about(candidate, owner, people) in (None, owner.id):
        return Admission(dropped="hearsay")
    admission = Admission()
    if not candidate.has_original_words:
        admission = _check_sources(candidate, batch, names, near.get(candidate.text))
        if admission.dropped is not None:
            return admission
        if is_about_somebody_else(candidate, people):
            admission = Admission(quarantine="its sources may say it about somebody else")
    if is_forgotten(candidate, owner, tombstones):
        return Admission(dropped="forgotten")
    return Admission(quarantine=_suspicion_of(candidate) or admission.quarantine)


def _about(candidate: Candidate, owner: Person, people: Mapping[str, Person]) -> str | None:
    return candidate.about or whom(candidate.text, candidate.subject, candidate.speaker, owner, people)


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
    telling = statement(text, candidate.speaker.names).words - {
        word for name in candidate.speaker.names for word in words_of(name)
    }
    return not telling or (is_question(text) and candidate.category not in {"task", "reminder"})


def _check_sources(
    candidate: Candidate, batch: Sequence[Message], names: Collection[str], near: float | None
) -> Admission:
    """Check that the speaker said what a model wrote, and not somebody else, a text that they quote, or the model."""
    own = own_words(candidate)
    # Dates are computed: the number of a day may be in any message.
    words = statement(_DATE.sub("", candidate.text), tuple(names)).words - name_stems(names)
    theirs = [message for message in batch if message.role == "user" and message.author == candidate.speaker.id]
    others = [message.text for message in batch if message not in theirs]
    quoted = [message.text for message in candidate.sources if own_text(message.text) != message.text]
    said = stems_in([*own, *(own_text(message.text) for message in theirs)])
    asked = stems_in(_questions_before(candidate, batch))
    borrowed = words & stems_in([*others, *quoted]) - said
    # The words of a question may be needed to understand the answer, but no number comes from anybody else.
    if len(borrowed - asked) > _BORROWED * len(words) or any(map(_has_digit, borrowed)):
        return Admission(dropped="echo")
    supported = shared_words(candidate.text, own, names)
    if supported >= SUPPORTED:
        return Admission()
    if words & asked and any(_YES.match(fold(text)) for text in own):
        # The person said yes to a question about it.
        return Admission()
    if support(candidate.text, [*others, *quoted], names) >= _ECHO:
        return Admission(dropped="echo")
    likely = supported > 0 if near is None else near >= NEAR or (near > FAR and supported > 0)
    if likely:
        return Admission()
    if near is not None and near < FAR and not supported:
        return Admission(dropped="unsupported")
    return Admission(quarantine="its sources do not say it in these words")


def _questions_before(candidate: Candidate, batch: Sequence[Message]) -> list[str]:
    """Return the questions in the messages that the sources of a candidate follow."""
    sources = {message.seq for message in candidate.sources}
    stored = sorted(batch, key=lambda message: message.seq)
    before = [each for each, message in pairwise(stored) if message.seq in sources and each.seq not in sources]
    return [sentence for message in before for sentence in split_sentences(message.text) if is_question(sentence)]


def _has_digit(word: str) -> bool:
    return any(map(str.isdecimal, word))


def _suspicion_of(candidate: Candidate) -> str | None:
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
    return None
