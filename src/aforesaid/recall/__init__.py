"""Search: keywords and vectors give candidates, small named features score them."""

from aforesaid.recall.candidates import ARMS, DEFAULT_KINDS, KINDS, Arms, Begun, SearchRequest
from aforesaid.recall.queue import QueueTimeout, RecallQueue, Turn
from aforesaid.recall.recall import Recall

__all__ = [
    "ARMS",
    "DEFAULT_KINDS",
    "KINDS",
    "Arms",
    "Begun",
    "QueueTimeout",
    "Recall",
    "RecallQueue",
    "SearchRequest",
    "Turn",
]
