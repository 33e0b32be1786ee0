"""Whether the question names who said it."""

from __future__ import annotations

from recollect.domain.message import Message
from recollect.recall.candidates import Candidates
from recollect.store.terms import words_of


def speaker(candidates: Candidates) -> list[float]:
    """One where the question names the speaker, in a talk of several."""
    asked, speakers = candidates.question.words, [_shown(turn.message) for turn in candidates.turns]
    known = {name: not asked.isdisjoint(words_of(name)) for name in set(speakers)}
    named = [known[name] for name in speakers]
    # Where everybody or nobody is named, that tells nothing.
    return [float(each) if any(named) and not all(named) else 0.0 for each in named]


def _shown(message: Message) -> str:
    """Return the name that a speaker showed, or their id."""
    return message.name or message.author
