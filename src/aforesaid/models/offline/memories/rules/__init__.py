"""The rules of each language, in the order in which they are tried: the first that fits decides."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.arabic import ARABIC
from aforesaid.models.offline.memories.rules.chinese import CHINESE
from aforesaid.models.offline.memories.rules.dutch import DUTCH
from aforesaid.models.offline.memories.rules.english import ENGLISH
from aforesaid.models.offline.memories.rules.form import Rule
from aforesaid.models.offline.memories.rules.french import FRENCH
from aforesaid.models.offline.memories.rules.german import GERMAN
from aforesaid.models.offline.memories.rules.italian import ITALIAN
from aforesaid.models.offline.memories.rules.japanese import JAPANESE
from aforesaid.models.offline.memories.rules.portuguese import PORTUGUESE
from aforesaid.models.offline.memories.rules.russian import RUSSIAN
from aforesaid.models.offline.memories.rules.spanish import SPANISH

RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "english": ENGLISH,
    "german": GERMAN,
    "spanish": SPANISH,
    "french": FRENCH,
    "italian": ITALIAN,
    "portuguese": PORTUGUESE,
    "dutch": DUTCH,
    "russian": RUSSIAN,
    "arabic": ARABIC,
    "chinese": CHINESE,
    "japanese": JAPANESE,
}

__all__ = ["RULES", "Rule"]
