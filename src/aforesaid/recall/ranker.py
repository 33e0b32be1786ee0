"""The ranker: compares every word of a question with every word of a message, in context.

Words and sentence vectors find candidates. They miss that a message answers a question which it shares no word with,
and which another message resembles more. The ranker looks up a trained vector for each token: the score of a message is
the sum, over the tokens of the question, of the highest product with any of its tokens or, damped, of the tokens of the
messages around it. Token vectors of messages are made in the background and stored beside the sentence vectors.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError
from aforesaid.extras import np
from aforesaid.models.embed import Embedder, TokenEmbedder
from aforesaid.models.embed.caching import MOST_CHARACTERS
from aforesaid.models.embed.token_vectors import Ranker, TokenVectors, load_ranker, products
from aforesaid.recall.candidates import Candidates, SearchRequest
from aforesaid.store import Store
from aforesaid.store.columns import sorted_unique
from aforesaid.store.searches import TokenVectors as TokenVectorsQuestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aforesaid.models.rerank import Reranker
    from aforesaid.recall.candidates import Numbers


DEPTH: Final = 100
"""Candidates that the ranker scores: 92 of 100 answers are among the first 100."""
MOST: Final = 150
"""Candidates that it scores where more than 100 are asked for: long contexts show 200 and more, whose order hardly
matters. With 100, the evidence in contexts of 2,000 tokens falls by 0.2 points."""
_ENCODED: Final = 16
"""Maximum messages encoded during a search, because background work has not reached them yet. Each takes about 3 ms."""
_SHIFT: Final = 0.5
"""Standard deviations above the mean at which the ranker adds nothing. So scores are as high with it as without it, on
average over right and wrong hits and over questions whose answer was never said."""
_FEW: Final = 5
"""Among this many candidates the ranker counts half: the average of a few says little about messages in general."""
_WORST: Final = -1.0
"""The product of a token with a message that has no tokens."""


class TokenRanker:
    """Scores the candidates of one store by their token vectors."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder if isinstance(embedder, TokenEmbedder) and embedder.token_name else None

    @property
    def active(self) -> bool:
        """Whether there is a ranker: the embedder has token vectors, and the settings do not switch it off."""
        return self._embedder is not None

    async def scores(
        self, scope: Scope, request: SearchRequest, candidates: Candidates, chosen: Sequence[int], asked: str
    ) -> Numbers | None:
        """Return how much better than most candidates each one answers the question.

        Only the `chosen` ones, by their places, are compared with it; the others count as the worst of them. `asked` is
        the question as it was embedded. None if more candidates have no token vectors than can be encoded during a
        search: then their order would depend on how far background work has come.
        """
        places = np.array(chosen, dtype=np.intp)
        compared = candidates
        if len(places) < len(candidates.rows):
            compared = candidates.narrowed(places, [candidates.texts[place] for place in chosen])
        found = await self._scores(scope, request, compared, asked)
        if found is None:
            return None
        result = np.full(len(candidates.rows), found.min())
        result[places] = found
        return result

    async def _scores(self, scope: Scope, request: SearchRequest, candidates: Candidates, asked: str) -> Numbers | None:
        embedder, columns = self._embedder, candidates.columns
        if embedder is None or embedder.token_name is None or not len(candidates.rows):
            return None
        rows = sorted_unique(np.concatenate([candidates.rows, candidates.before, candidates.after]))
        seqs = columns.seq[rows[rows < len(columns)]].tolist()
        stored = await self._store.read(TokenVectorsQuestion(scope, embedder.token_name, seqs, within=request.within))
        own = columns.seq[candidates.rows].tolist()
        missing = [place for place, seq in enumerate(own) if seq not in stored]
        if len(missing) > _ENCODED:
            return None
        try:
            made = await embedder.tokens([candidates.texts[place][:MOST_CHARACTERS] for place in missing])
            [question] = await embedder.tokens([asked])
        except ModelError:
            # The embedder is counted and reported where it embeds the question.
            return None
        stored |= {own[place]: tokens.packed() for place, tokens in zip(missing, made, strict=True)}
        return _compare(load_ranker(), question, candidates, stored)


def _compare(weights: Ranker, question: TokenVectors, candidates: Candidates, stored: Mapping[int, bytes]) -> Numbers:
    """Return the scores of all candidates, relative to one that is somewhat above their average."""
    columns = candidates.columns
    found, _ = columns.locate(np.fromiter(stored, dtype=np.int64, count=len(stored)))
    # The last place is that of a message without tokens: where there is no neighbour, or its vectors are not there.
    place = np.full(len(columns) + 1, len(stored))
    place[found] = np.arange(len(stored))
    best, tokens = _highest(question.vectors, list(stored.values()))
    own, before, after = (best[place[rows]] for rows in (candidates.rows, candidates.before, candidates.after))
    damped = np.maximum(before * weights.beside[0], after * weights.beside[1])
    shares = question.weights / question.weights.sum()
    length = np.log(np.maximum(tokens, 1))[place[candidates.rows]]
    total = weights.scale * (np.maximum(own, damped) @ shares) + weights.length * length
    # As in the background: messages that repeat the question say nothing about the others.
    usual = total[~candidates.repeating]
    if not len(usual):
        return np.zeros(len(total))
    result: Numbers = (total - usual.mean() - _SHIFT * usual.std()) * (len(usual) / (len(usual) + _FEW))
    return result


def _highest(asked: NDArray[np.float32], values: Sequence[bytes]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return, for each message and each token of the question, the highest product with a token of the message.

    The last row is that of a message without tokens. Beside them: how many tokens each message has.
    """
    result = np.full((len(values) + 1, len(asked)), _WORST, dtype=np.float32)
    made, counts = products(values, asked)
    having = np.flatnonzero(counts)
    if len(having):
        starts = np.cumsum(counts[having]) - counts[having]
        result[having] = np.maximum.reduceat(made, starts, axis=0)
    return result, counts


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
    if scores.min() < 0 or scores.max() > 1:
        return scores
    clipped = np.clip(scores, _CERTAIN, 1 - _CERTAIN)
    logits: Numbers = np.log(clipped / (1 - clipped))
    return logits


def _standard(scores: Numbers) -> Numbers:
    spread = scores.std()
    result: Numbers = (scores - scores.mean()) / spread if spread > 0 else scores * 0
    return result
