"""Groups of a store as files that other programs read, and back."""

from palestra.store.export.redact import PERSONAL, SECRETS, Redaction
from palestra.store.export.run import FORMATS, ExportReport, export, import_groups
from palestra.store.export.selection import Selection, statuses

__all__ = [
    "FORMATS",
    "PERSONAL",
    "SECRETS",
    "ExportReport",
    "Redaction",
    "Selection",
    "export",
    "import_groups",
    "statuses",
]
