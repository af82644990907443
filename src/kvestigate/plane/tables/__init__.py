"""Server-side Tables: the columns that kubectl prints."""

from kvestigate.plane.tables.table import table

__all__ = ["table"]
