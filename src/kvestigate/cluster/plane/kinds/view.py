"""A kind at a version other than the one in which its objects are kept.

Objects are converted at the edge: a request's body right after it was decoded, an answer just
before it is encoded. In between, and in the store, there is only the stored version, so rules,
defaults, selectors and tables are written once.
"""

from __future__ import annotations

from typing import ClassVar

from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.kube.resources import Resource


class View(Kind):
    """Subclasses define `to_stored` and `from_stored`; both may change what they are given.

    What only this version defaults belongs into `to_stored`, and what only it asks of new
    objects into `validate_create`, which sees them in their stored form.
    """

    renamed_fields: ClassVar[dict[str, str]] = {}
    """Field selectors that this version knows by another name: stored name to own name."""

    def __init__(self, resource: Resource, stored: Kind) -> None:
        super().__init__(resource)
        self.stored = stored
        self.key = stored.key
        self.field_names = tuple(self.renamed_fields.get(name, name) for name in stored.field_names)
