"""Server-side Tables: the columns that kubectl prints."""

from kvestigate.cluster.plane.response.tables.table import blank, rows, table

__all__ = ["blank", "rows", "table"]
