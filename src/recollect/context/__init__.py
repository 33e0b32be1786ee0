"""The right words for the model, within the budget, and why."""

from recollect.context.builder import Builder, Wanted
from recollect.context.context import Context
from recollect.context.items import Item, LeftOut, SectionReport

__all__ = ["Builder", "Context", "Item", "LeftOut", "SectionReport", "Wanted"]
