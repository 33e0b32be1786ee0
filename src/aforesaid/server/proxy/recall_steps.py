"""What a request of the proxy gets from the memory when there is little time.

Somebody waits for a reply, and a reply without memory is a bad one. So recall has steps, and each needs less than the
one before:

1. A context with a search. On an overloaded server it waits for its turn (`RecallQueue`); its time limit counts from
   the start of its work.
2. The same, searched by words alone, while the embedder does not answer (`QuestionVectors`).
3. A context without a search: standing requests, portrait, memories, summaries and recent messages.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Final

from aforesaid.context import Context
from aforesaid.memory import Memory
from aforesaid.recall import QueueTimeout
from aforesaid.server.proxy.caller import Caller
from aforesaid.server.proxy.insertion import NOT_ADDED
from aforesaid.telemetry import OWN, PROXY_SEARCH, kind_of

_log: Final = logging.getLogger("aforesaid.server.proxy")

QUEUE_SECONDS: Final = 20.0
"""Maximum time that a request waits for its turn to search. People wait that long for models that think first."""
RECALL_SECONDS: Final = 5.0
"""Maximum time of a context with a search, from the start of its work."""
UNSEARCHED_SECONDS: Final = 5.0
"""Maximum time of a context without a search: a few reads of the store."""
_SEARCH: Final = "snippets"
"""The section that needs a search."""


class RecallSteps:
    """Builds the contexts of proxy requests."""

    def __init__(self, memory: Memory, most_tokens: int) -> None:
        self._memory = memory
        self._most_tokens = most_tokens

    async def context(self, caller: Caller, question: str, model: str | None) -> Context:
        """Return the fullest context that time allows; `limited` says why one may miss something.

        Raises TimeoutError or what the store raised, if even a context without a search cannot be built.
        """

        async def ask(seconds: float, *without: str) -> Context:
            async with asyncio.timeout(seconds):
                return await caller.reads.context(
                    question, model=model, most=self._most_tokens, without=without, sent=False
                )

        began = time.perf_counter()
        try:
            async with self._memory.recall_queue.turn(QUEUE_SECONDS):
                began = time.perf_counter()
                made = await ask(RECALL_SECONDS, *NOT_ADDED)
        except Exception as error:
            # Whatever it is, the other parts of the memory may still answer. They need no embedder and no turn.
            self._note(caller, time.perf_counter() - began, error)
            made = await ask(UNSEARCHED_SECONDS, *NOT_ADDED, _SEARCH)
            return replace(made, limited=f"{_why(error)}, so there are only memories, summaries and recent messages")
        self._note(caller, time.perf_counter() - began)
        return made

    def _note(self, caller: Caller, seconds: float, error: Exception | None = None) -> None:
        """Count how a search ended, and log why it failed."""
        failure = None if error is None else kind_of(error)
        self._memory.metrics.called(PROXY_SEARCH, OWN, seconds, failure=failure)
        if error is not None:
            _log.error("a request of %s goes on without a search", caller.credential.actor, exc_info=error)


def _why(error: Exception) -> str:
    if isinstance(error, QueueTimeout):
        return str(error)
    return f"the search took over {RECALL_SECONDS:g} s" if isinstance(error, TimeoutError) else "the search failed"
