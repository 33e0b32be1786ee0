"""What works without a model: summaries, memories, routing and facts, by rules alone. Like in, like out."""

from recollect.models.offline.facts import Forgotten, forget_fact, merge_fact
from recollect.models.offline.memories.extract import Found, extract
from recollect.models.offline.memories.third_person import third_person
from recollect.models.offline.route import ME, Routed, route
from recollect.models.offline.spoken import Spoken, Summarised
from recollect.models.offline.summary.write import Measure, count_words, roll, summarise, summarise_summaries
from recollect.models.offline.text.sentences import sentences as split_sentences
from recollect.models.offline.times.find import When, find_times

__all__ = [
    "ME",
    "Forgotten",
    "Found",
    "Measure",
    "Routed",
    "Spoken",
    "Summarised",
    "When",
    "count_words",
    "extract",
    "find_times",
    "forget_fact",
    "merge_fact",
    "roll",
    "route",
    "split_sentences",
    "summarise",
    "summarise_summaries",
    "third_person",
]
