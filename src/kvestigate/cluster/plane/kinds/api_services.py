"""APIServices: who serves which group and version. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_GROUP_PRIORITY_MAX, _VERSION_PRIORITY_MAX = 20000, 1000


class APIServiceKind(Kind):
    has_plain_finalizers = True
    updates_unconditionally = False

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)

    def default(self, obj: Object) -> None:
        if "service" in obj["spec"]:
            obj["spec"]["service"].setdefault("port", 443)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return [*_name(obj), *_spec(obj["spec"])]


def _name(obj: Object) -> Causes:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted and not names.path_segment_problems(name):
        why = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        yield causes.invalid("metadata.name", name, why)


def _spec(spec: Object) -> Causes:
    group, version = spec.get("group", ""), spec.get("version", "")
    if group:
        yield from checks.subdomain("spec.group", group)
    elif version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        yield causes.required("spec.group", why)
    yield from checks.each("spec.version", version, names.label_1035_problems(version))
    limits = (
        ("groupPriorityMinimum", _GROUP_PRIORITY_MAX),
        ("versionPriority", _VERSION_PRIORITY_MAX),
    )
    for field, limit in limits:
        value = spec.get(field, 0)
        if not 0 < value <= limit:
            why = f"must be positive and less than {limit}"
            yield causes.invalid(f"spec.{field}", value, why)
    if "service" in spec:
        yield from _remote(spec)
    else:
        yield from _local(spec)


def _local(spec: Object) -> Causes:
    if spec.get("caBundle"):
        size = f"{len(spec['caBundle']) * 3 // 4} bytes"
        yield causes.invalid("spec.caBundle", size, "local APIServices may not have a caBundle")
    if spec.get("insecureSkipTLSVerify"):
        why = "local APIServices may not have insecureSkipTLSVerify"
        yield causes.invalid("spec.insecureSkipTLSVerify", True, why)


def _remote(spec: Object) -> Causes:
    for field in ("namespace", "name"):
        if not spec["service"].get(field):
            yield causes.required(f"spec.service.{field}")
    port = spec["service"]["port"]
    if not 1 <= port <= 65535:
        why = f"port is not valid: {checks.between(1, 65535)}"
        yield causes.invalid("spec.service.port", port, why)
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        why = "may not be true if caBundle is present"
        yield causes.invalid("spec.insecureSkipTLSVerify", True, why)
