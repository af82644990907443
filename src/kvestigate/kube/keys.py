"""Which object of a kind: its namespace and name. Pure."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kvestigate.kube.views.meta import Metadata


class Named(Protocol):
    """A view that knows which object it is of."""

    @property
    def metadata(self) -> Metadata: ...


class Key(NamedTuple):
    """Which object: what queues hold and caches are asked for."""

    namespace: str
    """Empty for what is not in a namespace."""
    name: str

    def sibling(self, name: str) -> Key:
        """The key of another object in the same namespace."""
        return Key(self.namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(view: Named) -> Key:
    return Key(view.metadata.namespace, view.metadata.name)
