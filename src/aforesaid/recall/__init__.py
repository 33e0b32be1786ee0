"""Search: keywords and vectors give candidates, small named features score them."""

from aforesaid.recall.gather import Begun
from aforesaid.recall.queue import QueueTimeout, RecallQueue, Turn
from aforesaid.recall.recall import Recall
from aforesaid.recall.request import ARMS, DEFAULT_KINDS, KINDS, Arms, SearchRequest

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
