"""Metadata as a snapshot keeps it, with who wrote the object last."""

from __future__ import annotations

from datetime import datetime

from kvestigate.kube.views.meta import Metadata, View


class FieldsManager(View, frozen=True):
    """One client that wrote to an object, and the API version it used."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""
    time: datetime | None = None


class WrittenMeta(Metadata, frozen=True):
    managed_fields: tuple[FieldsManager, ...] = ()

    @property
    def last_written(self) -> datetime | None:
        """When the object was last written, but for its status; as far as is known."""
        times = [entry.time for entry in self.managed_fields if not entry.subresource]
        known = [moment for moment in times if moment is not None]
        return max(known, default=self.creation_timestamp)


class Named(View, frozen=True):
    """An object of which only the metadata is used."""

    metadata: WrittenMeta = WrittenMeta()
