"""Who set which field: `metadata.managedFields` after a write."""

from __future__ import annotations

from kvestigate.plane.call import Call
from kvestigate.plane.kinds.kind import Object


def track(call: Call, new: Object, old: Object | None) -> None:
    """Note the fields that this write changed as its manager's."""
