"""Measure recall on labelled conversations: public data sets, or your own in one of their formats."""

from aforesaid.evaluation.conversation import Dataset
from aforesaid.evaluation.datasets import load_datasets
from aforesaid.evaluation.measure import ARMS, Ranking, measure
from aforesaid.evaluation.metrics import Score
from aforesaid.evaluation.question_sample import sample
from aforesaid.evaluation.report import DatasetReport

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
