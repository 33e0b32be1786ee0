"""Taking data out, and taking it in: dumps, exports, what other applications wrote."""

from recollect.portability.detect import READERS
from recollect.portability.exporting import Exported
from recollect.portability.loading import Loaded
from recollect.portability.migrating import Migrated, migrate

__all__ = ["READERS", "Exported", "Loaded", "Migrated", "migrate"]
