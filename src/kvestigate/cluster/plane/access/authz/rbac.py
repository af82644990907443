"""RBAC, evaluated over a plane's state; where it says no, kubelets may still have their rights.

What the four kinds of objects add up to is worked out once for each distinct set of them:
states share their collections, so thousands of planes with the roles of the template share
one index, and a write elsewhere in the plane costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from kvestigate.cluster.plane.access.authz import nodes
from kvestigate.cluster.plane.access.authz.rules import Rule, Subject
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import MASTERS, User
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import EMPTY, EMPTY_COLLECTION, Collection, PlaneState
from kvestigate.errors import Forbidden
from kvestigate.kube import selectors

GROUP = "rbac.authorization.k8s.io"
_ROLES, _CLUSTER_ROLES = (GROUP, "roles"), (GROUP, "clusterroles")
_BINDINGS, _CLUSTER_BINDINGS = (GROUP, "rolebindings"), (GROUP, "clusterrolebindings")
_INDEXES = 256
_DECISIONS = 4096

Identity: TypeAlias = tuple[str, str]


class _RoleRef(msgspec.Struct):
    kind: str
    name: str


class _Binding(msgspec.Struct, rename="camel"):
    role_ref: _RoleRef
    subjects: tuple[Subject, ...] | None = ()


class _Aggregation(msgspec.Struct, rename="camel"):
    cluster_role_selectors: list[dict[str, object]] | None = None


class _Role(msgspec.Struct, rename="camel"):
    rules: tuple[Rule, ...] | None = ()
    aggregation_rule: _Aggregation | None = None


_binding = msgspec.json.Decoder(_Binding)
_role = msgspec.json.Decoder(_Role)


class Grant(NamedTuple):
    """A rule that somebody has, and where they have it from."""

    rule: Rule
    source: str
    """`ClusterRoleBinding "a" of ClusterRole "view" to User "jane"`"""


class Index:
    """The rules of every subject, by where they apply."""

    def __init__(
        self,
        roles: Collection,
        cluster_roles: Collection,
        bindings: Collection,
        cluster_bindings: Collection,
    ) -> None:
        self._roles = roles
        self._cluster_roles = cluster_roles
        self._everywhere: dict[Identity, list[Grant]] = {}
        self._within: dict[str, dict[Identity, list[Grant]]] = {}
        self._decisions: dict[tuple[object, ...], bool] = {}
        for item in cluster_bindings.items():
            self._bind(item, self._everywhere)
        for item in bindings.items():
            self._bind(item, self._within.setdefault(item.namespace, {}))

    def allows(self, user: User, info: RequestInfo) -> bool:
        key = (
            user.name,
            user.groups,
            info.verb,
            info.group,
            info.resource or info.path,
            info.subresource,
            info.namespace,
            info.name,
        )
        known = self._decisions.get(key)
        if known is None:
            if len(self._decisions) >= _DECISIONS:
                self._decisions.clear()
            known = any(rule.allows(info) for rule in self.rules(user, info.namespace))
            self._decisions[key] = known
        return known

    def reason(self, user: User, info: RequestInfo) -> str:
        """Why something is allowed; empty if it is not."""
        for rule, source in self._grants(user, info.namespace):
            if rule.allows(info):
                return f"RBAC: allowed by {source}"
        return ""

    def rules(self, user: User, namespace: str) -> Iterator[Rule]:
        """Every rule that a user has in a namespace (empty: cluster-wide ones only)."""
        return (grant.rule for grant in self._grants(user, namespace))

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        within = self._within.get(namespace, {}) if namespace else {}
        for identity in _identities(user):
            yield from self._everywhere.get(identity, ())
            yield from within.get(identity, ())

    def role(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...]:
        """The rules of a Role or ClusterRole, aggregated ones included."""
        if kind == "Role":
            item = self._roles.get(namespace, name)
        else:
            item = self._cluster_roles.get("", name)
        if item is None:
            return ()
        return tuple(self._rules_of(_role.decode(item.data), set()))

    def _rules_of(self, role: _Role, seen: set[str]) -> Iterator[Rule]:
        """Those of an aggregating role are what the chosen ones add up to, whatever it says."""
        if role.aggregation_rule is None:
            yield from role.rules or ()
            return
        wanted = role.aggregation_rule.cluster_role_selectors or ()
        chosen = [selectors.from_label_selector(each) for each in wanted]
        for item in self._cluster_roles.items():
            if item.name in seen or not any(each.matches(item.labels) for each in chosen):
                continue
            seen.add(item.name)  # roles may choose each other
            yield from self._rules_of(_role.decode(item.data), seen)

    def _bind(self, item: Item, into: dict[Identity, list[Grant]]) -> None:
        binding = _binding.decode(item.data)
        ref = binding.role_ref
        rules = self.role(ref.kind, item.namespace, ref.name)
        kind = "RoleBinding" if item.namespace else "ClusterRoleBinding"
        name = f"{item.name}/{item.namespace}" if item.namespace else item.name
        source = f'{kind} "{name}" of {ref.kind} "{ref.name}" to'
        for subject in binding.subjects or ():
            granted = into.setdefault(subject.identity, [])
            granted.extend(Grant(rule, f"{source} {subject}") for rule in rules)


def _identities(user: User) -> Iterable[Identity]:
    yield "user", user.name
    for group in user.groups:
        yield "group", group


_index = lru_cache(maxsize=_INDEXES)(Index)


def index(state: PlaneState) -> Index:
    get = state.collections.get
    return _index(
        get(_ROLES, EMPTY_COLLECTION),
        get(_CLUSTER_ROLES, EMPTY_COLLECTION),
        get(_BINDINGS, EMPTY_COLLECTION),
        get(_CLUSTER_BINDINGS, EMPTY_COLLECTION),
    )


class Rbac:
    """The authorizer of planes with more than one user."""

    def __init__(self) -> None:
        self._state = EMPTY
        self._index = index(EMPTY)
        """Of that state: reads mostly find the state that the one before them found."""

    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        if MASTERS in user.groups:
            return
        if state is not self._state:
            self._state, self._index = state, index(state)
        if not self._index.allows(user, info):
            kubelet = nodes.opinion(state, user, info)
            if not kubelet.allowed:
                raise denial(user, info, kubelet.why)


def allowed(state: PlaneState, user: User, info: RequestInfo) -> bool:
    return (
        MASTERS in user.groups
        or index(state).allows(user, info)
        or nodes.opinion(state, user, info).allowed
    )


def reason(state: PlaneState, user: User, info: RequestInfo) -> str:
    """Which binding allows it, or why a kubelet may not; mostly there is nothing to say."""
    if MASTERS in user.groups:
        return ""
    kubelet = nodes.opinion(state, user, info)
    return "" if kubelet.allowed else index(state).reason(user, info) or kubelet.why


def denial(user: User, info: RequestInfo, why: str = "") -> Forbidden:
    """Says which verb on which resource, in kube-apiserver's words."""
    because = f": {why}" if why else ""
    if not info.resource:
        return Forbidden(
            f'forbidden: User "{user.name}" cannot {info.verb} path "{info.path}"{because}',
            details={},
        )
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    qualified = f"{info.resource}.{info.group}" if info.group else info.resource
    shown = f'{qualified} "{info.name}"' if info.name else qualified
    details = {"name": info.name} if info.name else {}
    if info.group:
        details["group"] = info.group
    return Forbidden(
        f'{shown} is forbidden: User "{user.name}" cannot {info.verb} resource "{resource}" '
        f'in API group "{info.group}" {where}{because}',
        details={**details, "kind": info.resource},
    )
