"""What stands before every route: who may call, how much, and what goes back with every answer."""

from aforesaid.server.guard.access import Access
from aforesaid.server.guard.headers import Headers
from aforesaid.server.guard.hosts import Hosts
from aforesaid.server.guard.rate import Rates
from aforesaid.server.guard.size import Sizes

__all__ = ["Access", "Headers", "Hosts", "Rates", "Sizes"]
