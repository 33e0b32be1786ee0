"""Middleware in front of every route: names, sizes, rates, the access log, and headers of every answer."""

from aforesaid.server.guard.access import Access
from aforesaid.server.guard.bodies import Bodies
from aforesaid.server.guard.headers import Headers
from aforesaid.server.guard.hosts import Hosts
from aforesaid.server.guard.rate import Rates

__all__ = ["Access", "Bodies", "Headers", "Hosts", "Rates"]
