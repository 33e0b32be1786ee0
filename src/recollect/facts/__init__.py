"""What is known about people: learned, told, changed, forgotten, and put into words."""

from recollect.facts.agenda import happening
from recollect.facts.curating import Curator, claims_of
from recollect.facts.extractor import Extractor, Learned
from recollect.facts.habits import Observer, Preferences
from recollect.facts.ical import calendar
from recollect.facts.portrait import Portraitist, as_xml
from recollect.facts.telling import Forgotten, Remembered, Teller
from recollect.facts.zones import zone_of

__all__ = [
    "Curator",
    "Extractor",
    "Forgotten",
    "Learned",
    "Observer",
    "Portraitist",
    "Preferences",
    "Remembered",
    "Teller",
    "as_xml",
    "calendar",
    "claims_of",
    "happening",
    "zone_of",
]
