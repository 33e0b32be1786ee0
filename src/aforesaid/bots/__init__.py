"""Bots: what is the same on every platform, and a thin adapter for each."""

from aforesaid.bots.contract import Address, Deleted, Edited, Heard, Platform, Pressed
from aforesaid.bots.desk import Desk
from aforesaid.bots.running import run

__all__ = ["Address", "Deleted", "Desk", "Edited", "Heard", "Platform", "Pressed", "run"]
