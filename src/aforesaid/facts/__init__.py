"""Facts and memories: extracting, editing and forgetting them, portraits and habits."""

from aforesaid.facts.curating import Curator, claims_of
from aforesaid.facts.extractor import ExtractionResult, Extractor
from aforesaid.facts.fact_editor import FactEditor, ForgetResult, RememberResult
from aforesaid.facts.habits import HabitCounter, Preferences
from aforesaid.facts.people import is_about
from aforesaid.facts.portrait import Portraitist, as_xml
from aforesaid.facts.timeline import calendar, happening, zone_of

__all__ = [
    "Curator",
    "ExtractionResult",
    "Extractor",
    "FactEditor",
    "ForgetResult",
    "HabitCounter",
    "Portraitist",
    "Preferences",
    "RememberResult",
    "as_xml",
    "calendar",
    "claims_of",
    "happening",
    "is_about",
    "zone_of",
]
