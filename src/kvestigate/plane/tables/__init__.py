"""Server-side Tables: the columns that kubectl prints."""

from kvestigate.plane.tables.table import blank, table

__all__ = ["blank", "table"]
