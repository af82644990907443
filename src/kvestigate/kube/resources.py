"""What a resource is, and how to name one: `pods`, `po`, `deploy.apps`, `Deployment`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One REST resource of an API server, built in or custom."""

    group: str
    """Empty for the core group, else `apps`, `batch`, `kplane.dev`."""
    version: str
    plural: str
    """The name in paths: `deployments`."""
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """`status`, `scale`, `log`: what may follow the object's name in a path."""

    @property
    def api_version(self) -> str:
        """`v1` or `apps/v1`: the value of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`pods` or `deployments.apps`: how error messages name the resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, *, namespace: str | None = None, name: str | None = None, subresource: str = ""
    ) -> str:
        """The URL path of the collection, an object, or its subresource."""
        parts = [f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
