"""Whether a pod spec makes sense, in the order in which the server looks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.checks import each, label, subdomain
from kvestigate.cluster.plane.kinds.podspec import resources, scheduling, security, volumes
from kvestigate.cluster.plane.kinds.podspec.annotations import validate_pod_annotations
from kvestigate.cluster.plane.kinds.podspec.containers import (
    Surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

_NAMESERVERS_MAX, _SEARCHES_MAX, _SEARCH_LETTERS_MAX = 3, 32, 2048
_HOSTNAME_MAX = 64


def validate_pod_template(template: Object, path: str) -> Causes:
    """A defaulted template at a path such as `spec.template`."""
    meta, spec = template.get("metadata") or {}, template["spec"]
    yield from checks.labels(f"{path}.labels", meta.get("labels") or {})
    annotations = meta.get("annotations") or {}
    yield from checks.annotation_keys(f"{path}.annotations", annotations)
    yield from validate_pod_annotations(f"{path}.annotations", annotations, spec)
    yield from validate_pod_spec(spec, f"{path}.spec", None)
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        yield causes.forbidden(f"{path}.spec.ephemeralContainers", why)


def validate_pod_spec(spec: Object, path: str, pod: Object | None) -> Causes:
    """A defaulted spec; `pod` is the metadata of the pod, None if it is only a template's."""
    yield from _contents(spec, path, pod)
    if spec["securityContext"] or spec.get("shareProcessNamespace"):
        context = spec["securityContext"]
        yield from security.validate_pod_security(f"{path}.securityContext", context, spec)
    yield from checks.fields(path, spec, _RULES)
    if "dnsConfig" in spec or spec["dnsPolicy"] == "None":
        yield from _dns(f"{path}.dnsConfig", spec)
    if not spec.get("hostUsers", True):
        yield from _without_host_users(spec, path)
    if "hostnameOverride" in spec:
        yield from _hostname_override(spec, f"{path}.hostnameOverride")


def _contents(spec: Object, path: str, pod: Object | None) -> Causes:
    """Volumes, containers and what they share."""
    by_name: dict[str, Object] = {}
    if "volumes" in spec:
        yield from volumes.validate_volumes(f"{path}.volumes", spec["volumes"], pod, by_name)
    claims = spec.get("resourceClaims", ())
    if claims:
        yield from _claims(f"{path}.resourceClaims", claims)
    around = Surroundings(
        volumes=by_name,
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")),
        grace=spec["terminationGracePeriodSeconds"],
        restart_policy=spec["restartPolicy"],
        host_users=spec.get("hostUsers", True),
        is_pod=pod is not None,
    )
    containers = spec["containers"] or []
    yield from validate_containers(f"{path}.containers", containers, around)
    if "initContainers" in spec:
        init = spec["initContainers"]
        yield from validate_init_containers(f"{path}.initContainers", init, containers, around)
    if "ephemeralContainers" in spec:
        yield from validate_ephemeral_containers(f"{path}.ephemeralContainers", spec, around)
    if "resources" in spec:
        yield from resources.validate_pod_resources(f"{path}.resources", spec, around.claims)
    if spec.get("hostNetwork"):
        yield from _host_network(f"{path}.containers", containers, is_pod=pod is not None)


def _overhead(path: str, amounts: dict[str, str]) -> Causes:
    for name, amount in amounts.items():
        at = f"{path}.limits[{name}]"
        yield from resource_names.validate_container_name(at, name)
        if quantities.parse(amount).nanos < 0:
            yield causes.invalid(at, amount, checks.NOT_NEGATIVE)


def _readiness_gate(path: str, gate: Object) -> Causes:
    return checks.label_key(f"{path}.conditionType", gate["conditionType"])


def _host_alias(path: str, alias: Object) -> Causes:
    yield from checks.ip(f"{path}.ip", alias["ip"])
    for position, name in enumerate(alias.get("hostnames") or ()):
        yield from subdomain(f"{path}.hostnames[{position}]", name)


_RULES: dict[str, checks.Rule] = {
    "restartPolicy": checks.choice_of("Always", "OnFailure", "Never"),
    "dnsPolicy": checks.choice_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "nodeSelector": checks.labels,
    "affinity": scheduling.validate_affinity,
    "readinessGates": checks.items(_readiness_gate),
    "schedulingGates": scheduling.validate_gates,
    "topologySpreadConstraints": scheduling.validate_spreading,
    "serviceAccountName": subdomain,
    "nodeName": subdomain,
    "activeDeadlineSeconds": checks.within(1, checks.INT32_MAX),
    "hostname": label,
    "subdomain": label,
    "tolerations": scheduling.validate_tolerations,
    "hostAliases": checks.items(_host_alias),
    "priorityClassName": subdomain,
    "runtimeClassName": subdomain,
    "preemptionPolicy": checks.choice_of("PreemptLowerPriority", "Never"),
    "overhead": _overhead,
    "os": lambda path, system: checks.one_of(path, system["name"], ("linux", "windows")),
}
"""What concerns one field only, in the order in which the server looks."""


def _claims(path: str, claims: list[Object]) -> Causes:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            yield causes.required(f"{at}.name")
        elif name in seen:
            yield causes.duplicate(f"{at}.name", name)
        else:
            yield from label(f"{at}.name", name)
        seen.add(name)
        sources = ("resourceClaimName", "resourceClaimTemplateName")
        given = [source for source in sources if source in claim]
        if len(given) == 2:
            why = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            yield causes.invalid(at, claim, why)
        if not given:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield causes.invalid(at, claim, why)
        for source in given:
            yield from subdomain(f"{at}.{source}", claim[source])


def _host_network(path: str, containers: list[Object], *, is_pod: bool) -> Causes:
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port["containerPort"]:
                why = "must match `containerPort` when `hostNetwork` is true"
                yield causes.invalid(f"{path}[{index}].ports[{position}].hostPort", host, why)


def _dns(path: str, spec: Object) -> Causes:
    config = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if config is None:
            yield causes.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield causes.required(f"{path}.nameservers", why)
            return
    if config is None:
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _NAMESERVERS_MAX:
        why = f"must not have more than {_NAMESERVERS_MAX} nameservers"
        yield causes.invalid(f"{path}.nameservers", servers, why)
    for index, server in enumerate(servers):
        yield from checks.ip(f"{path}.nameservers[{index}]", server)
    yield from _searches(f"{path}.searches", searches)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield causes.required(f"{path}.options[{index}]", "must not be empty")


def _searches(path: str, searches: list[str]) -> Causes:
    if len(searches) > _SEARCHES_MAX:
        why = f"must not have more than {_SEARCHES_MAX} search paths"
        yield causes.invalid(path, searches, why)
    if len(" ".join(searches)) > _SEARCH_LETTERS_MAX:
        why = (
            f"must not have more than {_SEARCH_LETTERS_MAX} characters (including spaces) in the "
            "search list"
        )
        yield causes.invalid(path, searches, why)
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from each(f"{path}[{index}]", name, names.search_domain_problems(name))


def _without_host_users(spec: Object, path: str) -> Causes:
    why = "when `hostUsers` is false"
    # The capitals are the server's.
    for field, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(field):
            yield causes.forbidden(f"{path}.{shown}", why)
    for at, container in each_container(spec, path):
        if container.get("volumeDevices"):
            yield causes.forbidden(f"{at}.volumeDevices", why)


def _hostname_override(spec: Object, path: str) -> Causes:
    name = spec["hostnameOverride"]
    if spec.get("setHostnameAsFQDN"):
        yield causes.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield causes.forbidden(path, "may not be specified when hostNetwork is true")
    if len(name) > _HOSTNAME_MAX:
        yield causes.too_long(path, _HOSTNAME_MAX)
    yield from subdomain(path, name)


def each_container(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    """Every container of a spec with its path: init containers first."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{path}.{field}[{index}]", container
