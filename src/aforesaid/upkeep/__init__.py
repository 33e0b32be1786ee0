"""Background work on stored messages."""

from aforesaid.upkeep.cleaning import Cleaning
from aforesaid.upkeep.digesting import Digesting
from aforesaid.upkeep.extracting import Embedding, Extracting
from aforesaid.upkeep.upkeep import Done, Upkeep, UpkeepReport, UpkeepTask
from aforesaid.upkeep.watch import Watch, loops_health

__all__ = [
    "Cleaning",
    "Digesting",
    "Done",
    "Embedding",
    "Extracting",
    "Upkeep",
    "UpkeepReport",
    "UpkeepTask",
    "Watch",
    "loops_health",
]
