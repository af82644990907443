"""What a resource is, and how to name one: `pods`, `po`, `deploy.apps`, `Deployment`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from msgspec import Struct

from kvestigate.errors import UsageError


class Resource(Struct, frozen=True):
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
    def singular_name(self) -> str:
        """`deployment`: the kind in lower case unless the resource says otherwise."""
        return self.singular or self.kind.lower()

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
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def _segment(name: str) -> str:
    """A name as one part of a path. Proxies resolve `..`, and so would ask for something else."""
    if name in (".", ".."):
        raise UsageError(f"{name!r} is not a valid name", hint="names have letters and digits")
    return quote(name, safe="")


class Registry:
    """Finds resources by the names people type.

    The order of the resources is the order of preference: of two groups or versions that
    serve the same name, the earlier one is meant.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources = tuple(resources)
        self._by_name: dict[str, list[Resource]] = {}
        self._by_kind: dict[tuple[str, str, str], Resource] = {}
        for resource in self._resources:
            for name in {resource.plural, resource.singular_name, *resource.short_names}:
                self._by_name.setdefault(name, []).append(resource)
            self._by_kind.setdefault((resource.group, resource.version, resource.kind), resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources)

    def __len__(self) -> int:
        return len(self._resources)

    def for_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of an object with this `apiVersion` and `kind`."""
        group, _, version = api_version.rpartition("/")
        return self._by_kind.get((group, version, kind))

    def find(self, name: str) -> list[Resource]:
        """All resources that a name can mean, the preferred one first.

        A name is a plural, singular, kind or short name in any case, alone or qualified:
        `deploy`, `Deployment.apps`, `deployments.v1.apps`, `pods.v1.` for the core group.
        The start of a group is enough: `roles.rbac`.
        """
        word, _, qualifier = name.lower().partition(".")
        named = self._by_name.get(word, [])
        matching = _qualified(named, qualifier) if "." in name else list(named)
        if not matching:
            raise self._unknown(name, word, named)
        return matching

    def _unknown(self, name: str, word: str, named: Sequence[Resource]) -> UsageError:
        import difflib  # only ever needed on the way out

        if named:
            choices = [resource.qualified for resource in named]
        else:
            close = difflib.get_close_matches(word, sorted(self._by_name), n=5)
            choices = [self._by_name[name][0].plural for name in close]
        return UsageError(
            f'there is no resource type "{name}"',
            hint=f"did you mean {' or '.join(dict.fromkeys(choices))}?"
            if choices
            else "`kubectl api-resources` lists those that there are",
        )


def _qualified(named: Sequence[Resource], qualifier: str) -> list[Resource]:
    """Those of the resources that `version.group`, `group` or the start of a group selects."""
    version, dot, group = qualifier.partition(".")
    if dot:
        matching = [
            resource
            for resource in named
            if resource.version == version and resource.group == group
        ]
        if matching:
            return matching
    exact = [resource for resource in named if resource.group == qualifier]
    return exact or [
        resource for resource in named if qualifier and resource.group.startswith(qualifier)
    ]
