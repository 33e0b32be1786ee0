"""Measure answers end to end: a model answers with contexts of Aforesaid, and another model judges."""

from evaluation.answers.models import ChosenModel, choose_model
from evaluation.answers.report import AnswerReport, Prices, Proportion, Spent, sum_up
from evaluation.answers.results import Result, ResultsFile, RunHeader
from evaluation.answers.run import Asked, RunOptions, answer_questions, header_of, questions_of

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
