"""Whether a pod spec makes sense, in the order in which the server looks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.checks import each, label, label_key, one_of, subdomain
from kvestigate.cluster.plane.kinds.podspec import resources, scheduling, security, volumes, windows
from kvestigate.cluster.plane.kinds.podspec.annotations import validate_pod_annotations
from kvestigate.cluster.plane.kinds.podspec.containers import (
    Surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Cause, Causes

Object = dict[str, Any]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMESERVERS_MAX, _SEARCHES_MAX, _SEARCH_LETTERS_MAX = 3, 32, 2048
_HOSTNAME_MAX = 64


def validate_pod_template(template: Object, path: str) -> list[Cause]:
    """A defaulted template at a path such as `spec.template`."""
    return list(_template(template, path))


def validate_pod_spec(spec: Object, path: str, pod: Object | None) -> list[Cause]:
    """A defaulted spec; `pod` is the metadata of the pod, None if it is only a template's."""
    return list(_spec(spec, path, pod))


def _template(template: Object, path: str) -> Causes:
    meta, spec = template.get("metadata") or {}, template["spec"]
    yield from checks.labels(f"{path}.labels", meta.get("labels") or {})
    annotations = meta.get("annotations") or {}
    yield from checks.annotation_keys(f"{path}.annotations", annotations)
    yield from validate_pod_annotations(f"{path}.annotations", annotations, spec)
    yield from _spec(spec, f"{path}.spec", None)
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        yield causes.forbidden(f"{path}.spec.ephemeralContainers", why)


def _spec(spec: Object, path: str, pod: Object | None) -> Causes:
    yield from _contents(spec, path, pod)
    yield from one_of(f"{path}.restartPolicy", spec["restartPolicy"], RESTART_POLICIES)
    yield from one_of(f"{path}.dnsPolicy", spec["dnsPolicy"], DNS_POLICIES)
    if "nodeSelector" in spec:
        yield from checks.labels(f"{path}.nodeSelector", spec["nodeSelector"])
    if spec["securityContext"] or spec.get("shareProcessNamespace"):
        context = spec["securityContext"]
        yield from security.validate_pod_security(f"{path}.securityContext", context, spec)
    yield from _placement(spec, path)
    yield from _names(spec, path)
    if "tolerations" in spec:
        yield from scheduling.validate_tolerations(f"{path}.tolerations", spec["tolerations"])
    if "hostAliases" in spec:
        yield from _host_aliases(f"{path}.hostAliases", spec["hostAliases"])
    yield from _classes(spec, path)
    if "os" in spec:
        yield from windows.validate_system(path, spec, list(each_container(spec, path)))
    yield from _file_volumes(spec, path)


def _contents(spec: Object, path: str, pod: Object | None) -> Causes:
    """Volumes, containers and what they share."""
    found: dict[str, Object] = {}
    if "volumes" in spec:
        yield from volumes.validate_volumes(f"{path}.volumes", spec["volumes"], pod, found)
    claims = spec.get("resourceClaims") or []
    if claims:
        yield from _claims(f"{path}.resourceClaims", claims)
    around = Surroundings(
        volumes=found,
        claims=frozenset(it["name"] for it in claims if it.get("name")),
        grace=spec["terminationGracePeriodSeconds"],
        restart_policy=spec["restartPolicy"],
        host_users=spec.get("hostUsers", True),
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


def _placement(spec: Object, path: str) -> Causes:
    if "affinity" in spec:
        yield from scheduling.validate_affinity(f"{path}.affinity", spec["affinity"])
    if "dnsConfig" in spec or spec["dnsPolicy"] == "None":
        yield from _dns(f"{path}.dnsConfig", spec)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        at = f"{path}.readinessGates[{index}].conditionType"
        yield from label_key(at, gate["conditionType"])
    if "schedulingGates" in spec:
        yield from scheduling.validate_gates(f"{path}.schedulingGates", spec["schedulingGates"])
    if "topologySpreadConstraints" in spec:
        constraints = spec["topologySpreadConstraints"]
        yield from scheduling.validate_spreading(f"{path}.topologySpreadConstraints", constraints)
    yield from windows.validate_host_processes(path, spec, list(each_container(spec, path)))
    if not spec.get("hostUsers", True):
        yield from _without_host_users(spec, path)


def _names(spec: Object, path: str) -> Causes:
    if spec.get("hostnameOverride") is not None:
        yield from _hostname_override(spec, f"{path}.hostnameOverride")
    for field in ("serviceAccountName", "nodeName"):
        if field in spec:
            yield from subdomain(f"{path}.{field}", spec[field])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= checks.INT32_MAX:
        why = checks.between(1, checks.INT32_MAX)
        yield causes.invalid(f"{path}.activeDeadlineSeconds", deadline, why)
    for field in ("hostname", "subdomain"):
        if field in spec:
            yield from label(f"{path}.{field}", spec[field])


def _classes(spec: Object, path: str) -> Causes:
    if "priorityClassName" in spec:
        yield from subdomain(f"{path}.priorityClassName", spec["priorityClassName"])
    if "runtimeClassName" in spec:
        yield from subdomain(f"{path}.runtimeClassName", spec["runtimeClassName"])
    if "preemptionPolicy" in spec:
        policies = ("PreemptLowerPriority", "Never")
        yield from one_of(f"{path}.preemptionPolicy", spec["preemptionPolicy"], policies)
    for name, amount in (spec.get("overhead") or {}).items():
        at = f"{path}.overhead.limits[{name}]"
        yield from resource_names.validate_container_name(at, name)
        if quantities.parse(amount).nanos < 0:
            yield causes.invalid(at, amount, checks.NOT_NEGATIVE)


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
    for field, told in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(field):
            yield causes.forbidden(f"{path}.{told}", why)
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


def _host_aliases(path: str, aliases: list[Object]) -> Causes:
    for index, alias in enumerate(aliases):
        yield from checks.ip(f"{path}[{index}].ip", alias["ip"])
        for position, name in enumerate(alias.get("hostnames") or ()):
            yield from subdomain(f"{path}[{index}].hostnames[{position}]", name)


def _file_volumes(spec: Object, path: str) -> Causes:
    """Variables read from a file take it from an emptyDir."""
    by_name = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for at, container in each_container(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            ref = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if ref is None:
                continue
            name = ref.get("volumeName", "")
            place = f"{at}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in by_name:
                yield causes.missing(place, name)
            elif "emptyDir" not in by_name[name]:
                yield causes.invalid(place, name, "referenced volume must be of type emptyDir")


def each_container(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    """Every container of a spec with its path: init containers first."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{path}.{field}[{index}]", container
