"""Contexts: what a model is sent to answer a message, within a token budget."""

from aforesaid.context.builder import AccountContext, Builder, ContextRequest
from aforesaid.context.context import Context, Item, LeftOut, Origin, SectionReport

__all__ = ["AccountContext", "Builder", "Context", "ContextRequest", "Item", "LeftOut", "Origin", "SectionReport"]
