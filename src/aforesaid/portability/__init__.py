"""Export, import and migrate data: dumps, exports, and the formats of other applications."""

from aforesaid.portability.exporting import AttachmentCopy, Exported
from aforesaid.portability.importing import READERS, Loaded
from aforesaid.portability.migrating import Migrated, migrate
from aforesaid.store.dumping import list_counts

__all__ = ["READERS", "AttachmentCopy", "Exported", "Loaded", "Migrated", "list_counts", "migrate"]
