"""Contexts: what a model is sent to answer a message, within a token budget."""

from aforesaid.context.builder import AccountContext, Builder, ContextRequest
from aforesaid.context.context import Context, Origin
from aforesaid.context.items import Item, LeftOut, SectionReport

__all__ = ["AccountContext", "Builder", "Context", "ContextRequest", "Item", "LeftOut", "Origin", "SectionReport"]
