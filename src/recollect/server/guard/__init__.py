"""What stands before every route: who may call, how much, and what goes back with every answer."""

from recollect.server.guard.access import Access
from recollect.server.guard.headers import Headers
from recollect.server.guard.hosts import Hosts
from recollect.server.guard.rate import Rates
from recollect.server.guard.size import Sizes

__all__ = ["Access", "Headers", "Hosts", "Rates", "Sizes"]
