"""Measure recall on labelled conversations: public data sets, or your own in one of their formats."""

from evaluation.conversation import Dataset
from evaluation.datasets import load_datasets
from evaluation.measure import ARMS, Ranking, measure
from evaluation.metrics import Score
from evaluation.question_sample import sample
from evaluation.report import DatasetReport

__all__ = [
    "ARMS",
    "Dataset",
    "DatasetReport",
    "Ranking",
    "Score",
    "load_datasets",
    "measure",
    "sample",
]
