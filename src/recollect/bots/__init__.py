"""Bots: what is the same on every platform, and a thin adapter for each."""

from recollect.bots.contract import Address, Deleted, Edited, Heard, Platform, Pressed
from recollect.bots.desk import Desk
from recollect.bots.running import run

__all__ = ["Address", "Deleted", "Desk", "Edited", "Heard", "Platform", "Pressed", "run"]
