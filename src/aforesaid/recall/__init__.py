"""Finding the right moment: keywords and meaning give candidates, small named features score them."""

from aforesaid.recall.gather import Begun
from aforesaid.recall.recall import Recall
from aforesaid.recall.request import ARMS, KINDS, USUAL_KINDS, Arms, SearchRequest

__all__ = ["ARMS", "KINDS", "USUAL_KINDS", "Arms", "Begun", "Recall", "SearchRequest"]
