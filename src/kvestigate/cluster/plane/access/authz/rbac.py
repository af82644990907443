"""RBAC: who may do what, from the roles and bindings in a plane's state.

A request is allowed if any of these says yes, in this order: the user is in `system:masters`;
a rule that a binding gives to the user or one of its groups allows it; the user is a kubelet
and its node needs the object (`nodes`). There are no rules that deny.

kube-apiserver keeps informers on the four kinds of objects and walks all bindings for every
request. A server of planes cannot: thousands of planes, each with the 49 roles and bindings that
every cluster starts with, would cost both memory and time. So the four collections are compiled
into an `Index` from subject to rules. Two facts make that cheap and always correct:

- A plane's state is immutable, and so is every collection in it. An index depends on nothing
  but its four collections, so it can be found by their identity and is never out of date.
- States share the collections that a write did not touch. All planes that have the roles they
  started with share one index, and a write to a pod does not cost a new one.

An index also remembers its decisions (`_decisions`), for the same reason: they depend on the
index, the user's name and groups, and the attributes of the request that rules look at. What
kubelets may read depends on pods, so `nodes` is asked after the index and never remembered here.

Role references are resolved while the index is built: a binding to a role that does not exist
gives nothing, and creating the role makes another collection, hence another index. Aggregated
cluster roles are resolved in the same way, so they need no controller to be correct.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from kvestigate.cluster.plane.access.authz import nodes
from kvestigate.cluster.plane.access.authz.rules import Rule, Subject
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import MASTERS, User
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import EMPTY_COLLECTION, Collection, PlaneState
from kvestigate.errors import Forbidden
from kvestigate.kube import selectors

GROUP = "rbac.authorization.k8s.io"
_ROLES, _CLUSTER_ROLES = (GROUP, "roles"), (GROUP, "clusterroles")
_BINDINGS, _CLUSTER_BINDINGS = (GROUP, "rolebindings"), (GROUP, "clusterrolebindings")
_MAX_INDEXES = 256
_MAX_DECISIONS = 4096
"""Decisions that an index remembers before it forgets all of them."""

Identity: TypeAlias = tuple[str, str]
"""(`user` or `group`, its name)"""


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
    """A rule that a subject has, and the binding that gives it."""

    rule: Rule
    source: str
    """`ClusterRoleBinding "a" of ClusterRole "view" to User "jane"`"""


class Index:
    """The rules of every subject, cluster-wide and by namespace."""

    def __init__(
        self,
        roles: Collection,
        cluster_roles: Collection,
        bindings: Collection,
        cluster_bindings: Collection,
    ) -> None:
        self._roles = roles
        self._cluster_roles = cluster_roles
        self._cluster_wide: dict[Identity, list[Grant]] = {}
        self._by_namespace: dict[str, dict[Identity, list[Grant]]] = {}
        self._decisions: dict[tuple[object, ...], bool] = {}
        for item in cluster_bindings.items():
            self._bind(item, self._cluster_wide)
        for item in bindings.items():
            self._bind(item, self._by_namespace.setdefault(item.namespace, {}))

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
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= _MAX_DECISIONS:
                self._decisions.clear()
            decision = any(rule.allows(info) for rule in self.rules(user, info.namespace))
            self._decisions[key] = decision
        return decision

    def reason(self, user: User, info: RequestInfo) -> str:
        """The binding that allows a request, in kube-apiserver's words; empty if none does."""
        for rule, source in self._grants(user, info.namespace):
            if rule.allows(info):
                return f"RBAC: allowed by {source}"
        return ""

    def rules(self, user: User, namespace: str) -> Iterator[Rule]:
        """The user's rules in a namespace; without a namespace, the cluster-wide ones."""
        return (grant.rule for grant in self._grants(user, namespace))

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        in_namespace = self._by_namespace.get(namespace, {}) if namespace else {}
        for identity in (("user", user.name), *(("group", group) for group in user.groups)):
            yield from self._cluster_wide.get(identity, ())
            yield from in_namespace.get(identity, ())

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
        """The rules of a role; an aggregated role has those of the selected roles, not its own."""
        if role.aggregation_rule is None:
            yield from role.rules or ()
            return
        label_selectors = [
            selectors.from_label_selector(each)
            for each in role.aggregation_rule.cluster_role_selectors or ()
        ]
        for item in self._cluster_roles.items():
            selected = any(selector.matches(item.labels) for selector in label_selectors)
            if item.name in seen or not selected:
                continue
            seen.add(item.name)  # roles may select each other
            yield from self._rules_of(_role.decode(item.data), seen)

    def _bind(self, item: Item, grants: dict[Identity, list[Grant]]) -> None:
        binding = _binding.decode(item.data)
        ref = binding.role_ref
        rules = self.role(ref.kind, item.namespace, ref.name)
        kind = "RoleBinding" if item.namespace else "ClusterRoleBinding"
        name = f"{item.name}/{item.namespace}" if item.namespace else item.name
        source = f'{kind} "{name}" of {ref.kind} "{ref.name}" to'
        for subject in binding.subjects or ():
            granted = grants.setdefault(subject.identity, [])
            granted.extend(Grant(rule, f"{source} {subject}") for rule in rules)


_index = lru_cache(maxsize=_MAX_INDEXES)(Index)


def index(state: PlaneState) -> Index:
    """The index of a state's roles and bindings."""
    get = state.collections.get
    return _index(
        get(_ROLES, EMPTY_COLLECTION),
        get(_CLUSTER_ROLES, EMPTY_COLLECTION),
        get(_BINDINGS, EMPTY_COLLECTION),
        get(_CLUSTER_BINDINGS, EMPTY_COLLECTION),
    )


class Rbac:
    """The authorizer of planes with more than one user."""

    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        if MASTERS in user.groups or index(state).allows(user, info):
            return
        decision = nodes.authorize(state, user, info)
        if not decision.allowed:
            raise denial(user, info, decision.reason)


def allowed(state: PlaneState, user: User, info: RequestInfo) -> bool:
    return (
        MASTERS in user.groups
        or index(state).allows(user, info)
        or nodes.authorize(state, user, info).allowed
    )


def reason(state: PlaneState, user: User, info: RequestInfo) -> str:
    """The binding that allows a request, or why the kubelet of a node may not make it."""
    if MASTERS in user.groups:
        return ""
    decision = nodes.authorize(state, user, info)
    return "" if decision.allowed else index(state).reason(user, info) or decision.reason


def denial(user: User, info: RequestInfo, why: str = "") -> Forbidden:
    """Names the user, the verb and the resource, in kube-apiserver's words."""
    because = f": {why}" if why else ""
    if not info.resource:
        return Forbidden(
            f'forbidden: User "{user.name}" cannot {info.verb} path "{info.path}"{because}',
            details={},
        )
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    qualified = f"{info.resource}.{info.group}" if info.group else info.resource
    subject = f'{qualified} "{info.name}"' if info.name else qualified
    details = {"name": info.name} if info.name else {}
    if info.group:
        details["group"] = info.group
    return Forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {info.verb} resource "{resource}" '
        f'in API group "{info.group}" {where}{because}',
        details={**details, "kind": info.resource},
    )
