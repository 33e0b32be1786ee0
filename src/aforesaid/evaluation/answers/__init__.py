"""Measure answers end to end: a model answers with contexts of Aforesaid, and another model judges."""

from aforesaid.evaluation.answers.models import ChosenModel, choose_model
from aforesaid.evaluation.answers.report import AnswerReport, Prices, Proportion, Spent, sum_up
from aforesaid.evaluation.answers.results import Result, ResultsFile, RunHeader
from aforesaid.evaluation.answers.run import Asked, RunOptions, answer_questions, header_of, questions_of

__all__ = [
    "AnswerReport",
    "Asked",
    "ChosenModel",
    "Prices",
    "Proportion",
    "Result",
    "ResultsFile",
    "RunHeader",
    "RunOptions",
    "Spent",
    "answer_questions",
    "choose_model",
    "header_of",
    "questions_of",
    "sum_up",
]
