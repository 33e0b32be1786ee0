"""Summaries, memories, requests and facts by rules, without a model. The same input gives the same output."""

from aforesaid.models.offline.facts import ForgetResult, forget_fact, merge_fact
from aforesaid.models.offline.memories.extract import ExtractedMemory, extract
from aforesaid.models.offline.memories.requests import standing_request, topic_of, without_requests
from aforesaid.models.offline.memories.third_person import third_person
from aforesaid.models.offline.recognise_request import ME, RecognisedRequest, recognise_request
from aforesaid.models.offline.spoken_turn import Spoken, Summarised
from aforesaid.models.offline.summary.write import Measure, count_words, roll, summarise, summarise_summaries
from aforesaid.models.offline.text.sentences import sentences as split_sentences
from aforesaid.models.offline.times.find import When, find_times
from aforesaid.models.offline.times.hours import in_an_hour
from aforesaid.models.offline.times.request import RequestedTime, read_requested_time

__all__ = [
    "ME",
    "ExtractedMemory",
    "ForgetResult",
    "Measure",
    "RecognisedRequest",
    "RequestedTime",
    "Spoken",
    "Summarised",
    "When",
    "count_words",
    "extract",
    "find_times",
    "forget_fact",
    "in_an_hour",
    "merge_fact",
    "read_requested_time",
    "recognise_request",
    "roll",
    "split_sentences",
    "standing_request",
    "summarise",
    "summarise_summaries",
    "third_person",
    "topic_of",
    "without_requests",
]
