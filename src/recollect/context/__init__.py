"""The right words for the model, within the budget, and why."""

from recollect.context.builder import AccountContext, Builder, Wanted
from recollect.context.context import Context
from recollect.context.items import Item, LeftOut, SectionReport

__all__ = ["AccountContext", "Builder", "Context", "Item", "LeftOut", "SectionReport", "Wanted"]
