"""Finding the right moment: keywords and meaning give candidates, small named features score them."""

from recollect.recall.recall import Arms, Recall

__all__ = ["Arms", "Recall"]
