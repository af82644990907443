"""Containers, init containers and ephemeral containers of a pod. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import each, one_of, port_number
from kvestigate.cluster.plane.kinds.podspec import env, handlers, mounts, resources, security
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

_EPHEMERAL_BARRED = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_SIDECARS_ONLY = "may not be set for init containers without restartPolicy=Always"
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RULES: dict[str, checks.Rule] = {
    "terminationMessagePolicy": checks.choice_of("File", "FallbackToLogsOnError"),
    "envFrom": env.validate_env_from,
    "imagePullPolicy": checks.choice_of("Always", "IfNotPresent", "Never"),
}
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_RULES_MAX, _EXIT_CODES_MAX = 20, 255
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


class Surroundings(msgspec.Struct, frozen=True):
    """What a container's validity depends on besides itself."""

    volumes: dict[str, Object]
    """The valid ones by name."""
    claims: frozenset[str]
    grace: int
    restart_policy: str
    host_users: bool
    is_pod: bool
    """Not a template, which may have blanks around the name of an image."""


def validate_containers(path: str, containers: list[Object], around: Surroundings) -> Causes:
    if not containers:
        yield causes.required(path)
        return
    seen: set[str] = set()
    taken: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        yield from _common(at, container, around, taken)
        if container["name"] in seen:
            yield causes.duplicate(f"{at}.name", container["name"])
        seen.add(container["name"])
        yield from _hooks(at, container, around)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            yield from _restarts(at, container)


def validate_init_containers(
    path: str, containers: list[Object], others: list[Object], around: Surroundings
) -> Causes:
    seen = {container["name"] for container in others}
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        yield from _common(at, container, around, set())
        yield from _restarts(at, container, inits=True)
        if container["name"] in seen:
            yield causes.duplicate(f"{at}.name", container["name"])
        elif container["name"]:
            seen.add(container["name"])
        if container.get("restartPolicy") == "Always":
            yield from _hooks(at, container, around)
        else:
            for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if name in container:
                    yield causes.forbidden(f"{at}.{name}", _SIDECARS_ONLY)
            yield from _restarting_resizes(at, container.get("resizePolicy") or [])


def validate_ephemeral_containers(path: str, spec: Object, around: Surroundings) -> Causes:
    others = {c["name"] for c in (*(spec["containers"] or ()), *(spec.get("initContainers") or ()))}
    seen = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at, name = f"{path}[{index}]", container["name"]
        yield from _common(at, container, around, set())
        if name in seen:
            yield causes.duplicate(f"{at}.name", name)
        seen.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in others:
            yield causes.missing(f"{at}.targetContainerName", target)
        for barred in _EPHEMERAL_BARRED:
            # Resources are always there, if only to say nothing.
            if barred in container and (barred != "resources" or container[barred]):
                yield causes.forbidden(f"{at}.{barred}", _NOT_EPHEMERAL)
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            for barred in ("subPath", "subPathExpr"):
                if mount.get(barred):
                    place = f"{at}.volumeMounts[{position}].{barred}"
                    yield causes.forbidden(place, _NOT_EPHEMERAL)


def _common(path: str, container: Object, around: Surroundings, taken: set[str]) -> Causes:
    """`taken` are the host ports of other containers."""
    yield from checks.needed(f"{path}.name", container["name"], names.label_problems)
    image = container.get("image", "")
    if not image:
        yield causes.required(f"{path}.image")
    elif around.is_pod and image != image.strip():
        yield causes.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from checks.fields(path, container, _RULES)
    if "ports" in container:
        yield from _ports(f"{path}.ports", container["ports"], taken)
    if "env" in container:
        yield from env.validate_env(f"{path}.env", container["env"], around.volumes)
    if "volumeMounts" in container:
        yield from mounts.validate_mounts(path, container, around.volumes)
    if "volumeDevices" in container:
        yield from mounts.validate_devices(path, container, around.volumes)
    if container["resources"]:
        yield from resources.validate_container_resources(
            f"{path}.resources", container["resources"], around.claims
        )
    if "resizePolicy" in container:
        policies = container["resizePolicy"]
        yield from _resizing(f"{path}.resizePolicy", policies, around.restart_policy)
    if "securityContext" in container:
        yield from security.validate_container_security(
            f"{path}.securityContext", container["securityContext"], host_users=around.host_users
        )


def _hooks(path: str, container: Object, around: Surroundings) -> Causes:
    if "lifecycle" in container:
        yield from handlers.validate_lifecycle(
            f"{path}.lifecycle", container["lifecycle"], around.grace
        )
    for name in _PROBES:
        if name in container:
            yield from handlers.validate_probe(
                f"{path}.{name}", container[name], name, around.grace
            )


def _ports(path: str, ports: list[Object], taken: set[str]) -> Causes:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if name := port.get("name"):
            problems = names.port_name_problems(name)
            yield from each(f"{at}.name", name, problems)
            if not problems and name in seen:
                yield causes.duplicate(f"{at}.name", name)
            seen.add(name)
        if not port["containerPort"]:
            yield causes.required(f"{at}.containerPort")
        else:
            yield from port_number(f"{at}.containerPort", port["containerPort"])
        if "hostPort" in port:
            yield from port_number(f"{at}.hostPort", port["hostPort"])
            key = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                yield causes.duplicate(f"{at}.hostPort", key)
            taken.add(key)
        yield from checks.choice(f"{at}.protocol", port["protocol"], _PROTOCOLS)


def _resizing(path: str, policies: list[Object], restart_policy: str) -> Causes:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            yield causes.duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        yield from one_of(path, resource, ("cpu", "memory"))
        yield from one_of(path, restart, _RESIZE_POLICIES)
        if restart_policy == "Never" and restart != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield causes.invalid(path, restart, why)


def _restarting_resizes(path: str, policies: list[Object]) -> Causes:
    for index, policy in enumerate(policies):
        restart = policy.get("restartPolicy")
        if restart == "RestartContainer":
            why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield causes.invalid(f"{path}.resizePolicy[{index}].restartPolicy", restart, why)


def _restarts(path: str, container: Object, *, inits: bool = False) -> Causes:
    """A container's own restart policy and the rules that refine it."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        if not rules:
            return
        why = "must specify restartPolicy when restart rules are used"
        yield causes.required(f"{path}.restartPolicy", why)
        if inits:
            return
    elif policy not in _RESTART_POLICIES:
        yield causes.unsupported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > _RULES_MAX:
        yield causes.too_many(f"{path}.restartPolicyRules", len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _restart_rule(f"{path}.restartPolicyRules[{index}]", rule)


def _restart_rule(path: str, rule: Object) -> Causes:
    actions = ("Restart", "RestartAllContainers")
    yield from checks.choice(f"{path}.action", rule.get("action", ""), actions)
    codes = rule.get("exitCodes")
    if codes is None:
        yield causes.required(f"{path}.exitCodes", "must be specified")
        return
    operator, values = codes.get("operator", ""), codes.get("values") or []
    yield from checks.choice(f"{path}.exitCodes.operator", operator, ("In", "NotIn"))
    if len(values) > _EXIT_CODES_MAX:
        yield causes.too_many(f"{path}.exitCodes.values", len(values), _EXIT_CODES_MAX)
