"""Finding the right moment: keywords and meaning give candidates, small named features score them."""

from aforesaid.recall.asking import ARMS, KINDS, USUAL_KINDS, Arms, Asking
from aforesaid.recall.gather import Begun
from aforesaid.recall.recall import Recall

__all__ = ["ARMS", "KINDS", "USUAL_KINDS", "Arms", "Asking", "Begun", "Recall"]
