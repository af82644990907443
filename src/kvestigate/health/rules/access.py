"""Bindings that grant nothing, and bindings that grant too much. Pure.

What Kubernetes itself binds (label `kubernetes.io/bootstrapping`) is left alone. The rights of a
binding are those of its role; a role that could not be read is not judged.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Profile, Subject
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import BindingSubject, PolicyRule, RoleBinding
from kvestigate.snapshot.source import Listing

_ROLES: tuple[Listing[Any], ...] = (listings.ROLES, listings.CLUSTER_ROLES)
_BINDINGS = (listings.ROLE_BINDINGS, listings.CLUSTER_ROLE_BINDINGS)
_OURS = "kubernetes.io/bootstrapping"
_NOBODY = {"system:anonymous", "system:unauthenticated"}
_EVERYBODY = {"system:authenticated", "system:serviceaccounts"}
_SYSTEM = ("kube-", "system:")
_WRITES = {"*", "create", "update", "patch", "delete", "deletecollection"}
_ESCALATING = {"escalate", "bind", "impersonate"}


def _bindings(cluster: Cluster) -> Iterator[tuple[Subject, RoleBinding]]:
    """Those that somebody made, not Kubernetes."""
    for listing in _BINDINGS:
        for binding in cluster.of(listing):
            meta = binding.metadata
            if _OURS not in meta.labels:
                yield Subject(listing.resource.kind, meta.name, meta.namespace), binding


def _show(subject: Subject) -> str:
    where = f"-n {subject.namespace} " if subject.namespace else ""
    # Bindings and roles may be called anything, and people paste commands into shells.
    return f"kubectl {where}describe {subject.kind.lower()}/{shlex.quote(subject.name)}"


def _role(binding: RoleBinding) -> tuple[Listing[Any], str]:
    """The list that its role is in, and the role's namespace."""
    if binding.role_ref.kind == "ClusterRole":
        return listings.CLUSTER_ROLES, ""
    return listings.ROLES, binding.metadata.namespace


@rule(
    "binding-role-missing",
    "A binding refers to a role that does not exist.",
    *_BINDINGS,
    uses=_ROLES,
)
def roles_missing(cluster: Cluster) -> Iterator[Fault]:
    for subject, binding in _bindings(cluster):
        listing, namespace = _role(binding)
        reference = binding.role_ref
        if cluster.lacks(listing, reference.name, namespace):
            where = f"{namespace}/" if namespace else ""
            yield Fault(
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"{reference.kind} {where}{reference.name} does not exist (roleRef); "
                f"bound to {_who(binding.subjects)}.",
                why="The binding grants nothing. Whoever creates a role of this name decides what "
                "it grants.",
                command=_show(subject),
                since=binding.metadata.creation_timestamp,
            )


@rule(
    "binding-account-missing",
    "A binding names a ServiceAccount that does not exist.",
    *_BINDINGS,
    uses=[listings.SERVICE_ACCOUNTS, listings.NAMESPACES],
)
def accounts_missing(cluster: Cluster) -> Iterator[Fault]:
    for subject, binding in _bindings(cluster):
        missing = [
            f"{one.namespace or subject.namespace}/{one.name}"
            for one in binding.subjects
            if one.kind == "ServiceAccount"
            and cluster.lacks(
                listings.SERVICE_ACCOUNTS, one.name, one.namespace or subject.namespace
            )
        ]
        if missing:
            verb = "does" if len(missing) == 1 else "do"
            yield Fault(
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"ServiceAccount {', '.join(missing)} {verb} not exist; bound to "
                f"{binding.role_ref.kind} {binding.role_ref.name}.",
                why="The binding grants nothing to it now. Whoever creates a ServiceAccount of "
                "this name gets the rights.",
                command=_show(subject),
                since=binding.metadata.creation_timestamp,
            )


def _who(subjects: tuple[BindingSubject, ...]) -> str:
    names = [
        f"{one.kind} {one.namespace}/{one.name}" if one.namespace else f"{one.kind} {one.name}"
        for one in subjects
    ]
    return ", ".join(names) or "nobody"


@rule(
    "rights-of-default-account",
    "Every pod of a namespace gets wide rights through its default ServiceAccount.",
    *_BINDINGS,
    *_ROLES,
    profile=Profile.SECURITY,
)
def default_accounts(cluster: Cluster) -> Iterator[Fault]:
    for subject, binding in _bindings(cluster):
        for one in binding.subjects:
            namespace = one.namespace or subject.namespace
            if one.kind != "ServiceAccount" or one.name != "default":
                continue
            danger = _danger(cluster, binding)
            if danger and not namespace.startswith("kube-"):
                yield Fault(
                    severity=Severity.WARNING,
                    subject=subject,
                    evidence=f"ServiceAccount {namespace}/default {danger}.",
                    why=f"Every pod in namespace {namespace} that names no other ServiceAccount "
                    "has these rights (CIS 5.1.1, 5.1.5).",
                    command=_show(subject),
                    since=binding.metadata.creation_timestamp,
                    alike=namespace,
                )


@rule(
    "rights-of-everybody",
    "Anonymous users or all users get wide rights.",
    *_BINDINGS,
    *_ROLES,
    profile=Profile.SECURITY,
)
def everybody(cluster: Cluster) -> Iterator[Fault]:
    for subject, binding in _bindings(cluster):
        for one in binding.subjects:
            if one.kind not in ("User", "Group"):
                continue
            danger = _danger(cluster, binding)
            if one.name in _NOBODY:
                danger = danger or _grants(cluster, binding)
            elif one.name not in _EVERYBODY and not one.name.startswith("system:serviceaccounts:"):
                continue
            if danger:
                yield Fault(
                    severity=Severity.CRITICAL if one.name in _NOBODY else Severity.WARNING,
                    subject=subject,
                    evidence=f"{one.kind} {one.name} {danger}.",
                    why="Whoever reaches the API server has these rights, without a password."
                    if one.name in _NOBODY
                    else "Every user or every pod of the group has these rights (CIS 5.1.1).",
                    command=_show(subject),
                    since=binding.metadata.creation_timestamp,
                    alike=one.name,
                )


@rule(
    "rights-wide",
    "A ServiceAccount has rights with which it can become an administrator.",
    *_BINDINGS,
    *_ROLES,
    profile=Profile.SECURITY,
    strict=True,
)
def wide_rights(cluster: Cluster) -> Iterator[Fault]:
    for subject, binding in _bindings(cluster):
        danger = _danger(cluster, binding)
        accounts = [
            f"{one.namespace or subject.namespace}/{one.name}"
            for one in binding.subjects
            if one.kind == "ServiceAccount"
            and one.name != "default"
            and not (one.namespace or subject.namespace).startswith(_SYSTEM)
        ]
        if danger and accounts:
            yield Fault(
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"ServiceAccount {', '.join(accounts)} {danger}.",
                why="Whoever gets into one of its pods has these rights (CIS 5.1.1, 5.1.3, 5.1.8).",
                command=_show(subject),
                since=binding.metadata.creation_timestamp,
            )


def _rules(cluster: Cluster, binding: RoleBinding) -> tuple[PolicyRule, ...]:
    listing, namespace = _role(binding)
    role = cluster.find(listing, binding.role_ref.name, namespace)
    return role.rules if role is not None else ()


def _danger(cluster: Cluster, binding: RoleBinding) -> str:
    """The widest right of a binding, in words; empty if it has no dangerous one."""
    where = f" in namespace {binding.metadata.namespace}" if binding.metadata.namespace else ""
    reference = binding.role_ref
    if reference.kind == "ClusterRole" and reference.name == "cluster-admin":
        return f"may do everything{where} (ClusterRole cluster-admin)"
    role = f"({reference.kind} {reference.name})"
    for one in _rules(cluster, binding):
        said = _dangerous(one) or ("" if where else _dangerous_everywhere(one))
        if said:
            return f"may {said}{where} {role}"
    return ""


def _dangerous(one: PolicyRule) -> str:
    verbs, resources, groups = {*one.verbs}, {*one.resources}, {*one.api_groups}
    core = bool({"", "*"} & groups)
    if "*" in verbs and "*" in resources and "*" in groups:
        return "do everything"
    if "*" in resources and core and verbs & _WRITES:
        return "change every resource"
    if _ESCALATING & verbs:
        return f"{', '.join(sorted(_ESCALATING & verbs))} {', '.join(sorted(resources))}"
    if one.resource_names:
        return ""
    if core and {"secrets", "*"} & resources and {"*", "get", "list", "watch"} & verbs:
        return "read every Secret (secrets)"
    if core and {"pods/exec", "pods/attach", "*/exec"} & resources and {"*", "create"} & verbs:
        return "run commands in every pod (pods/exec)"
    if core and "nodes/proxy" in resources:
        return "run commands in every pod through kubelets (nodes/proxy)"
    if core and "serviceaccounts/token" in resources and {"*", "create"} & verbs:
        return "create tokens of ServiceAccounts"
    writes = verbs & _WRITES
    if writes and {"*", "rbac.authorization.k8s.io"} & groups:
        return f"change {', '.join(sorted(resources))} of rbac.authorization.k8s.io"
    if writes and {"*", "admissionregistration.k8s.io"} & groups:
        return "change admission webhooks"
    return ""


def _dangerous_everywhere(one: PolicyRule) -> str:
    """What is dangerous in all namespaces together, and usual in one."""
    verbs, resources = {*one.verbs}, {*one.resources}
    if {"", "*"} & {*one.api_groups} and "pods" in resources and {"*", "create"} & verbs:
        return "create pods with the ServiceAccount of any namespace"
    return ""


def _grants(cluster: Cluster, binding: RoleBinding) -> str:
    """Any right to objects that are not named one by one: too much for nobody."""
    for one in _rules(cluster, binding):
        if one.resources and not one.resource_names:
            role = f"{binding.role_ref.kind} {binding.role_ref.name}"
            return f"may {', '.join(one.verbs)} {', '.join(one.resources)} ({role})"
    return ""


RULES = (
    roles_missing,
    accounts_missing,
    default_accounts,
    everybody,
    wide_rights,
)
