"""Measuring recall on labelled conversations: public data sets, or your own in one of their forms."""

from recollect.evaluation.conversation import Dataset
from recollect.evaluation.measure import ARMS, Ranking, measure
from recollect.evaluation.metrics import Score
from recollect.evaluation.recognise import load_datasets
from recollect.evaluation.report import DatasetReport
from recollect.evaluation.sample import sample

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
