"""All work after a message is stored."""

from recollect.upkeep.embedding import Embedding, UpkeepReport

__all__ = ["Embedding", "UpkeepReport"]
