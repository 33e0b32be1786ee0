"""The right words for the model, within the budget, and why."""

from recollect.context.builder import Builder, Wanted
from recollect.context.context import Context
from recollect.context.items import SECTIONS, Item, LeftOut, SectionName, SectionReport
from recollect.context.recipe import BUILT_IN, LEAST_BUDGET, Recipe

__all__ = [
    "BUILT_IN",
    "LEAST_BUDGET",
    "SECTIONS",
    "Builder",
    "Context",
    "Item",
    "LeftOut",
    "Recipe",
    "SectionName",
    "SectionReport",
    "Wanted",
]
