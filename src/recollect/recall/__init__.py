"""Finding the right moment: keywords and meaning give candidates, small named features score them."""

from recollect.recall.asking import ARMS, KINDS, USUAL_KINDS, Arms, Asking
from recollect.recall.gather import Begun
from recollect.recall.recall import Recall

__all__ = ["ARMS", "KINDS", "USUAL_KINDS", "Arms", "Asking", "Begun", "Recall"]
