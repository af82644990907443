"""RBAC rules and subjects: which requests a rule allows, and which rules cover others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kvestigate.cluster.plane.model.request_info import RequestInfo

ALL = "*"


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """`pods`, `pods/log`, `*/scale`, `*`"""
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    """`/healthz`, `/metrics/*`"""

    def allows(self, info: RequestInfo) -> bool:
        if ALL not in self.verbs and info.verb not in self.verbs:
            return False
        if not info.resource:
            return any(_covers_url(rule, info.path) for rule in self.non_resource_urls)
        return (
            (ALL in self.api_groups or info.group in self.api_groups)
            and self._covers_resource(info.resource, info.subresource)
            and (not self.resource_names or info.name in self.resource_names)
        )

    def _covers_resource(self, resource: str, subresource: str) -> bool:
        full = f"{resource}/{subresource}" if subresource else resource
        if ALL in self.resources or full in self.resources:
            return True
        return bool(subresource) and f"*/{subresource}" in self.resources


class Subject(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    """User, Group or ServiceAccount"""
    name: str
    namespace: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """(`user` or `group`, name), as in the User of a request."""
        if self.kind == "ServiceAccount":
            return "user", f"system:serviceaccount:{self.namespace}:{self.name}"
        return ("group" if self.kind == "Group" else "user"), self.name

    def __str__(self) -> str:
        namespace = f"/{self.namespace}" if self.kind == "ServiceAccount" else ""
        return f'{self.kind} "{self.name}{namespace}"'


def _covers_url(rule: str, path: str) -> bool:
    if rule.endswith(ALL):
        return path.startswith(rule[:-1])
    return rule == path


def atoms(rules: Iterable[Rule]) -> Iterable[Rule]:
    """The same permissions as rules with one verb on one resource or path each."""
    for rule in rules:
        for verb in rule.verbs:
            for group in rule.api_groups:
                for resource in rule.resources:
                    names: Sequence[tuple[str, ...]] = [(name,) for name in rule.resource_names]
                    for only in names or [()]:
                        yield Rule((verb,), (group,), (resource,), only)
            for url in rule.non_resource_urls:
                yield Rule((verb,), non_resource_urls=(url,))


def covered(atom: Rule, owned: Iterable[Rule]) -> bool:
    """Whether the rules `owned` give the permission that `atom` (one of `atoms`) gives."""
    return any(_covers(rule, atom) for rule in owned)


def _covers(rule: Rule, atom: Rule) -> bool:
    if ALL not in rule.verbs and atom.verbs[0] not in rule.verbs:
        return False
    if atom.non_resource_urls:
        url = atom.non_resource_urls[0]
        return any(_covers_url(owned, url) or owned == url for owned in rule.non_resource_urls)
    resource = atom.resources[0]
    _, _, subresource = resource.partition("/")
    return (
        (ALL in rule.api_groups or atom.api_groups[0] in rule.api_groups)
        and (
            ALL in rule.resources
            or resource in rule.resources
            or (bool(subresource) and f"*/{subresource}" in rule.resources)
        )
        and (
            not rule.resource_names
            or (bool(atom.resource_names) and atom.resource_names[0] in rule.resource_names)
        )
    )
