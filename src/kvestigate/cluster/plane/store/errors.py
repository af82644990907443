"""Why the store says no.

    StoreError
    x Refused            the object is not what the writer expected; nothing was written
      + Exists           it should have been absent
      + Missing          it should have been there
      + Mismatch         it has another revision
    x NoPlane            no plane of that name
    x PlaneExists        a plane of that name is there already
    x Compacted          the history no longer reaches back to that revision
    x Lagged             a watcher did not read fast enough and was cut
    x StoreFailed        the backend could not make a write durable
      + Overtaken        another server wrote to the plane first

These speak of revisions and planes; the verbs turn them into Kubernetes Status.
"""

from __future__ import annotations

from kvestigate.cluster.plane.store.model import ResourceKey
from kvestigate.errors import KvestigateError


class StoreError(KvestigateError):
    pass


class Refused(StoreError):
    """A condition of the write does not hold."""

    def __init__(
        self, resource: ResourceKey, namespace: str, name: str, expected: int, actual: int
    ) -> None:
        kind = f"{resource[1]}.{resource[0]}" if resource[0] else resource[1]
        where = f"{namespace}/{name}" if namespace else name
        super().__init__(f'{kind} "{where}" {self._clash(expected, actual)}')
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.expected = expected
        self.actual = actual

    def _clash(self, expected: int, actual: int) -> str:
        raise NotImplementedError


class Exists(Refused):
    def _clash(self, expected: int, actual: int) -> str:
        return f"exists already, at revision {actual}"


class Missing(Refused):
    def _clash(self, expected: int, actual: int) -> str:
        return f"does not exist; revision {expected} was expected"


class Mismatch(Refused):
    def _clash(self, expected: int, actual: int) -> str:
        return f"is at revision {actual}; {expected} was expected"


class NoPlane(StoreError):
    def __init__(self, plane: str) -> None:
        super().__init__(f'there is no plane "{plane}"')
        self.plane = plane


class PlaneExists(StoreError):
    def __init__(self, plane: str) -> None:
        super().__init__(f'the plane "{plane}" exists already')
        self.plane = plane


class Compacted(StoreError):
    """The history starts later than asked for: list anew and watch from there."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


class Lagged(StoreError):
    """Resume from the last revision that was read: the history may still have the rest."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the watcher fell more than {limit} changes behind")


class StoreFailed(StoreError):
    pass


class Overtaken(StoreFailed):
    """What was decided rested on less than there is. Decide again: all of it is known by now."""

    def __init__(self, plane: str) -> None:
        super().__init__(f'another server has written to the plane "{plane}"')


def refusal(
    resource: ResourceKey, namespace: str, name: str, expected: int, actual: int
) -> Refused:
    """The error for an object found at revision `actual` (0: not found)."""
    kind = Missing if not actual else Mismatch if expected else Exists
    return kind(resource, namespace, name, expected, actual)
