"""What is known about people: learned, told, changed, forgotten, and put into words."""

from aforesaid.facts.agenda import happening
from aforesaid.facts.curating import Curator, claims_of
from aforesaid.facts.extractor import Extractor, Learned
from aforesaid.facts.habits import Observer, Preferences
from aforesaid.facts.ical import calendar
from aforesaid.facts.people import about_tag
from aforesaid.facts.portrait import Portraitist, as_xml
from aforesaid.facts.telling import Forgotten, Remembered, Teller
from aforesaid.facts.zones import zone_of

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
    "about_tag",
    "as_xml",
    "calendar",
    "claims_of",
    "happening",
    "zone_of",
]
