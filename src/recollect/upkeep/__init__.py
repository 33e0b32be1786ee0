"""All work after a message is stored."""

from recollect.upkeep.cleaning import Cleaning
from recollect.upkeep.digesting import Digesting
from recollect.upkeep.embedding import Embedding
from recollect.upkeep.extracting import Extracting
from recollect.upkeep.part import Done, Part
from recollect.upkeep.upkeep import Upkeep, UpkeepReport
from recollect.upkeep.watch import Watch

__all__ = ["Cleaning", "Digesting", "Done", "Embedding", "Extracting", "Part", "Upkeep", "UpkeepReport", "Watch"]
