"""Reordering the first candidates by a reranker behind an HTTP API, if one is configured.

The reranker changes the order, not the scores: the candidates that it reads exchange their weighted sums. So a score
means the same with any reranker, whose own scores have any scale.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.domain.message import Message
from aforesaid.errors import ModelError
from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.models.rerank import Reranker
    from aforesaid.recall.candidates import Numbers

_log: Final = logging.getLogger("aforesaid.recall")

_CHARACTERS: Final = 800
"""Maximum characters of a question or a message that are sent, so that both fit into 512 tokens in most languages."""
_CERTAIN: Final = 1e-6
"""Scores between 0 and 1 are taken as probabilities; none is nearer to 0 or 1 than this."""

_STEP: Final = 1e-9
"""Difference between the sums of two neighbours in the order, at least: the reranker orders equal ones, too."""


async def rerank(
    reranker: Reranker,
    question: str,
    candidates: Candidates,
    messages: Mapping[int, Message],
    ranked: Sequence[int],
    sums: Numbers,
) -> Numbers:
    """Return what the reranker adds to each candidate's sum; zeros if it does not answer in time.

    `ranked` has the candidates' places, best first. Candidates that repeat the question stay where they are: a reranker
    takes them for perfect answers.
    """
    import numpy as np  # noqa: PLC0415 - loaded by now

    added = np.zeros(len(sums))
    seqs, repeating = candidates.columns.seq[candidates.rows].tolist(), candidates.repeating
    places = [place for place in ranked if not repeating[place] and seqs[place] in messages][: reranker.candidates]
    if len(places) < 2:  # noqa: PLR2004 - one candidate has no order
        return added
    try:
        theirs = await reranker.scores(question[:_CHARACTERS], [_document(messages[seqs[place]]) for place in places])
    except ModelError as error:
        reranker.metrics.warnings.warn(_log, "reranker", f"the order of a search was not reranked: {error}")
        return added
    own = sums[places]
    combined = reranker.weight * _standard(_logits(np.array(theirs))) + (1 - reranker.weight) * _standard(own)
    best_first = np.argsort(-combined, kind="stable")
    # `places` is sorted, so `own` has the sums from the highest to the lowest. Equal ones are told apart.
    levels = own - _STEP * np.arange(len(own))
    added[np.array(places)[best_first]] = levels - own[best_first]
    return added


def _document(message: Message) -> str:
    speaker = message.name or message.author or message.role
    return f"{message.at.date()} {speaker}: {message.text[:_CHARACTERS]}"


def _logits(scores: Numbers) -> Numbers:
    """Return scores on a scale without ends. Most servers return probabilities, some return logits."""
    import numpy as np  # noqa: PLC0415

    if scores.min() < 0 or scores.max() > 1:
        return scores
    clipped = np.clip(scores, _CERTAIN, 1 - _CERTAIN)
    logits: Numbers = np.log(clipped / (1 - clipped))
    return logits


def _standard(scores: Numbers) -> Numbers:
    """Return scores in standard deviations from their mean."""
    spread = scores.std()
    result: Numbers = (scores - scores.mean()) / spread if spread > 0 else scores * 0
    return result
