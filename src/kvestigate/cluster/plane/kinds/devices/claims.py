"""ResourceClaims, templates for them, and the DeviceClasses that they name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.claim_spec import validate_template_metadata
from kvestigate.cluster.plane.kinds.devices import parts as devices
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_REQUESTS_MAX, _ALTERNATIVES_MAX, _CONSTRAINTS_MAX, _CONFIGS_MAX = 32, 8, 32, 32
_RESERVATIONS_MAX = 256
_MODES = ("All", "ExactCount")
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"

Names = Mapping[str, Sequence[str]]
"""Of requests, and under each those of its alternatives."""


class DeviceClassKind(Kind):
    takes_long = True
    counts_generations = True
    returns_deleted = True

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        yield from devices.selectors("spec.selectors", spec.get("selectors") or [])
        configs = spec.get("config") or []
        yield from devices.few("spec.config", configs, _CONFIGS_MAX, devices.configuration)
        name = spec.get("extendedResourceName")
        if name is not None and not resource_names.is_extended(name):
            why = "must be a valid extended resource name"
            yield causes.invalid("spec.extendedResourceName", name, why)


class ResourceClaimKind(Kind):
    takes_long = True
    returns_deleted = True

    def default(self, obj: Object) -> None:
        _default(obj["spec"])
        for result in _results(obj.get("status") or {}):
            _default_tolerations(result)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _claim("spec.devices", obj["spec"]["devices"])

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        namespace = obj["metadata"].get("namespace", "")
        return _admin(obj["spec"]["devices"], namespace, scene.state)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, "spec")

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        _drop_freed_devices(new, old)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        status, before = new.get("status") or {}, old.get("status") or {}
        yield from _reservations(new, status.get("reservedFor") or [], before)
        if "allocation" in status and "allocation" in before:
            yield from checks.immutable("status", status, before, "allocation")


class ResourceClaimTemplateKind(Kind):
    takes_long = True
    returns_deleted = True

    def default(self, obj: Object) -> None:
        _default(obj["spec"]["spec"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        template = obj["spec"]
        return [
            *validate_template_metadata("spec.metadata", template.get("metadata") or {}),
            *_claim("spec.spec.devices", template["spec"]["devices"]),
        ]

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        claim, namespace = obj["spec"]["spec"], obj["metadata"].get("namespace", "")
        return _admin(claim["devices"], namespace, scene.state)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, "spec")


def _drop_freed_devices(new: Object, old: Object) -> None:
    """What drivers said of a device goes with its allocation."""
    status = new.get("status") or {}
    if "devices" not in status:
        return
    freed = _devices(old.get("status") or {}) - _devices(status)
    status["devices"] = [each for each in status["devices"] if _device(each) not in freed]
    if not status["devices"]:
        del status["devices"]


def _devices(status: Object) -> set[tuple[str, ...]]:
    """Those that a claim is allocated."""
    return set(map(_device, _results(status)))


def _results(status: Object) -> Sequence[Object]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()


def _device(place: Object) -> tuple[str, ...]:
    return tuple(place.get(name, "") for name in ("driver", "pool", "device", "shareID"))


def _reservations(claim: Object, reserved: list[Object], before: Object) -> Causes:
    path = "status.reservedFor"
    yield from devices.few(path, reserved, _RESERVATIONS_MAX, _consumer)
    yield from devices.once(path, [each.get("uid", "") for each in reserved])
    if reserved and "allocation" not in claim["status"]:
        yield causes.forbidden(path, "may not be specified when `allocated` is not set")
    elif "deletionTimestamp" in claim["metadata"]:
        known = before.get("reservedFor") or []
        if any(each not in known for each in reserved):
            why = (
                "new entries may not be added while `deallocationRequested` or "
                "`deletionTimestamp` are set"
            )
            yield causes.forbidden(path, why)


def _consumer(path: str, consumer: Object) -> Causes:
    for name in ("resource", "name", "uid"):
        if not consumer.get(name):
            yield causes.required(f"{path}.{name}")


def _default(spec: Object) -> None:
    for request in spec["devices"].get("requests") or ():
        for each in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if each is None:
                continue
            mode = each.setdefault("allocationMode", "ExactCount")
            if mode == "ExactCount" and not each.get("count"):
                each["count"] = 1
            _default_tolerations(each)


def _default_tolerations(holder: Object) -> None:
    for toleration in holder.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def _claim(path: str, spec: Object) -> Causes:
    requests = spec.get("requests") or []
    known = {
        request.get("name", ""): [each.get("name", "") for each in _alternatives(request)]
        for request in requests
    }

    def constraint(at: str, each: Object) -> Causes:
        yield from _references(f"{at}.requests", each.get("requests") or [], known)
        yield from _attribute(at, each)

    def config(at: str, each: Object) -> Causes:
        yield from _references(f"{at}.requests", each.get("requests") or [], known)
        yield from devices.configuration(at, each)

    yield from devices.few(f"{path}.requests", requests, _REQUESTS_MAX, _request)
    yield from devices.once(f"{path}.requests", [each.get("name", "") for each in requests])
    constraints = spec.get("constraints") or []
    yield from devices.few(f"{path}.constraints", constraints, _CONSTRAINTS_MAX, constraint)
    yield from devices.few(f"{path}.config", spec.get("config") or [], _CONFIGS_MAX, config)


def _alternatives(request: Object) -> Sequence[Object]:
    return request.get("firstAvailable") or ()


def _request(path: str, request: Object) -> Causes:
    yield from checks.label(f"{path}.name", request.get("name", ""))
    alternatives = list(_alternatives(request))
    why = "exactly one of `exactly` or `firstAvailable` is required"
    if alternatives and "exactly" in request:
        yield causes.invalid(path, None, f"{why}, but multiple fields are set")
    elif alternatives:
        at = f"{path}.firstAvailable"
        yield from devices.few(at, alternatives, _ALTERNATIVES_MAX, _alternative)
        yield from devices.once(at, [each.get("name", "") for each in alternatives])
    elif "exactly" in request:
        yield from _wanted(f"{path}.exactly", request["exactly"])
    else:
        yield causes.required(path, why)


def _alternative(path: str, request: Object) -> Causes:
    yield from checks.label(f"{path}.name", request.get("name", ""))
    yield from _wanted(path, request)


def _wanted(path: str, request: Object) -> Causes:
    name, mode = request.get("deviceClassName", ""), request["allocationMode"]
    count = request.get("count")
    yield from checks.needed(f"{path}.deviceClassName", name, names.subdomain_problems)
    yield from devices.selectors(f"{path}.selectors", request.get("selectors") or [])
    if mode not in _MODES:
        yield causes.unsupported(f"{path}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        why = "must not be specified when allocationMode is 'All'"
        yield causes.invalid(f"{path}.count", count, why)
    elif mode == "ExactCount" and (count or 0) <= 0:
        yield causes.invalid(f"{path}.count", count, checks.POSITIVE)
    for index, toleration in enumerate(request.get("tolerations") or ()):
        yield from devices.toleration(f"{path}.tolerations[{index}]", toleration)


def _attribute(path: str, constraint: Object) -> Causes:
    for field in ("matchAttribute", "distinctAttribute"):
        if field in constraint:
            yield from devices.fully_qualified_name(f"{path}.{field}", constraint[field])
            return
    # The words are the server's: nothing is set.
    why = (
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields '
        "are set"
    )
    yield causes.required(path, why)


def _references(path: str, listed: list[str], known: Names) -> Causes:
    def check(at: str, name: str) -> Causes:
        parts = name.split("/")
        if len(parts) <= 2:
            for part in parts:
                yield from checks.label(at, part)
        if not _is_known(parts, known):
            why = (
                "must be the name of a request in the claim or the name of a request and a "
                "subrequest separated by '/'"
            )
            yield causes.invalid(at, name, why)

    yield from devices.few(path, listed, _REQUESTS_MAX, check)
    yield from devices.once(path, listed)


def _is_known(parts: list[str], known: Names) -> bool:
    request, *alternative = parts
    if len(alternative) > 1 or request not in known:
        return False
    return not alternative or alternative[0] in known[request]


def _admin(claim: Object, namespace: str, state: PlaneState) -> Causes:
    """Only in namespaces that say so may claims ask for devices that are in use."""
    item = state.get(("", "namespaces"), "", namespace)
    if item is not None and dict(item.labels).get(_ADMIN_LABEL) == "true":
        return
    why = (
        f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing "
        "namespace"
    )
    for index, request in enumerate(claim.get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            # The path is the server's, for templates too.
            yield causes.forbidden(f"spec.devices.requests[{index}].adminAccess", why)
