"""All work after a message is stored."""

from recollect.upkeep.upkeep import Upkeep, UpkeepReport

__all__ = ["Upkeep", "UpkeepReport"]
