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


class Named(View, frozen=True):
    """An object of which only the metadata is used."""

    metadata: WrittenMeta = WrittenMeta()
