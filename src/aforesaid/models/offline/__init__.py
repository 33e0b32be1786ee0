"""Summaries, memories, requests and facts by rules, without a model. The same input gives the same output."""

from aforesaid.models.offline.facts import FactRemoval, begins_with_verb, forget_fact, merge_fact, without_contradicted
from aforesaid.models.offline.memories.extract import ExtractedMemory, extract, is_joke, third_person
from aforesaid.models.offline.memories.keys import (
    may_ask_for_good,
    may_hold_requests,
    reads_like_an_attack,
    standing_request,
    topic_of,
    without_requests,
)
from aforesaid.models.offline.request_rules import ME, RecognisedRequest, Spoken, Summarised, may_ask, recognise_request
from aforesaid.models.offline.summary.write import Measure, count_words, roll, summarise, summarise_summaries

__all__ = [
    "ME",
    "ExtractedMemory",
    "FactRemoval",
    "Measure",
    "RecognisedRequest",
    "Spoken",
    "Summarised",
    "begins_with_verb",
    "count_words",
    "extract",
    "forget_fact",
    "is_joke",
    "may_ask",
    "may_ask_for_good",
    "may_hold_requests",
    "merge_fact",
    "reads_like_an_attack",
    "recognise_request",
    "roll",
    "standing_request",
    "summarise",
    "summarise_summaries",
    "third_person",
    "topic_of",
    "without_contradicted",
    "without_requests",
]
