"""The right words for the model, within the budget, and why."""

from aforesaid.context.builder import AccountContext, Builder, Wanted
from aforesaid.context.context import Context
from aforesaid.context.items import Item, LeftOut, SectionReport

__all__ = ["AccountContext", "Builder", "Context", "Item", "LeftOut", "SectionReport", "Wanted"]
