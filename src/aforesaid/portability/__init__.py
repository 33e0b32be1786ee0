"""Taking data out, and taking it in: dumps, exports, what other applications wrote."""

from aforesaid.portability.detect_format import READERS
from aforesaid.portability.exporting import Exported
from aforesaid.portability.importing import Loaded
from aforesaid.portability.migrating import Migrated, migrate

__all__ = ["READERS", "Exported", "Loaded", "Migrated", "migrate"]
