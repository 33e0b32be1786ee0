"""Export, import and migrate data: dumps, exports, and the formats of other applications."""

from aforesaid.portability.attachment_copy import AttachmentCopy
from aforesaid.portability.detect_format import READERS
from aforesaid.portability.exporting import Exported
from aforesaid.portability.import_report import Loaded
from aforesaid.portability.migrating import Migrated, migrate
from aforesaid.portability.row_importer import list_counts

__all__ = ["READERS", "AttachmentCopy", "Exported", "Loaded", "Migrated", "list_counts", "migrate"]
