"""Roles and their bindings. Whether one may grant what they grant is the authoriser's concern.
Pure."""

from __future__ import annotations

from typing import ClassVar

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.workloads import shared
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

GROUP = "rbac.authorization.k8s.io"


class _Named(Kind):
    """Kinds whose names only need to fit a URL path, such as `system:node`."""

    creates_on_update = True

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)


class RoleKind(_Named):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _rules(obj, namespaced=True)


class ClusterRoleKind(_Named):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        return [*_rules(obj, namespaced=False), *_aggregation(obj.get("aggregationRule"))]


class RoleBindingKind(_Named):
    roles: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")

    def default(self, obj: Object) -> None:
        role = obj["roleRef"]
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return self._problems(obj)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        if new["roleRef"] != old["roleRef"]:
            yield causes.invalid("roleRef", new["roleRef"], "cannot change roleRef")

    def _problems(self, obj: Object) -> Causes:
        role = obj["roleRef"]
        if role["apiGroup"] != GROUP:
            yield causes.unsupported("roleRef.apiGroup", role["apiGroup"], [GROUP])
        if role.get("kind") not in self.roles:
            yield causes.unsupported("roleRef.kind", role.get("kind", ""), self.roles)
        yield from checks.path_segment("roleRef.name", role.get("name", ""))
        for index, subject in enumerate(obj.get("subjects") or ()):
            namespaced = self.resource.namespaced
            yield from _subject(f"subjects[{index}]", subject, namespaced=namespaced)


class ClusterRoleBindingKind(RoleBindingKind):
    roles = ("ClusterRole",)


def _subject(path: str, subject: Object, *, namespaced: bool) -> Causes:
    kind, group, name = subject.get("kind", ""), subject.get("apiGroup", ""), subject.get("name")
    if not name:
        yield causes.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from checks.subdomain(f"{path}.name", name)
        if group:
            yield causes.unsupported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield causes.required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != GROUP:
            yield causes.unsupported(f"{path}.apiGroup", group, [GROUP])
    else:
        yield causes.unsupported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"])


def _rules(obj: Object, *, namespaced: bool) -> Causes:
    for index, rule in enumerate(obj.get("rules") or ()):
        yield from _rule(f"rules[{index}]", rule, namespaced=namespaced)


def _rule(path: str, rule: Object, *, namespaced: bool) -> Causes:
    if not rule.get("verbs"):
        yield causes.required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield causes.invalid(f"{path}.nonResourceURLs", urls, why)
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield causes.invalid(f"{path}.nonResourceURLs", urls, why)
        return
    if not rule.get("apiGroups"):
        why = "resource rules must supply at least one api group"
        yield causes.required(f"{path}.apiGroups", why)
    if not rule.get("resources"):
        why = "resource rules must supply at least one resource"
        yield causes.required(f"{path}.resources", why)


def _aggregation(rule: Object | None) -> Causes:
    if rule is None:
        return
    path, selectors = "aggregationRule.clusterRoleSelectors", rule.get("clusterRoleSelectors") or []
    if not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield causes.required(path, why)
    for index, selector in enumerate(selectors):
        yield from checks.label_selector(f"{path}[{index}]", selector)
        if shared.parse_selector(selector) is None:
            yield causes.invalid(f"{path}[{index}]", None, "invalid label selector.")
