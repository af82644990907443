"""Ingresses and their classes. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import each, label
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_AT_ENDS = ("/..", "/.")
_CONTROLLER_MAX = 250
_NOT_AN_ADDRESS = "must be a DNS name, not an IP address"


class IngressKind(Kind):
    counts_generations = True
    status_carries_metadata = True
    warns_on_update = False

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        if not spec.get("rules") and "defaultBackend" not in spec:
            why = "either `defaultBackend` or `rules` must be specified"
            yield causes.invalid("spec", None, why)
        if "defaultBackend" in spec:
            yield from _backend("spec.defaultBackend", spec["defaultBackend"])
        for index, rule in enumerate(spec.get("rules") or ()):
            yield from _rule(f"spec.rules[{index}]", rule)
        for index, tls in enumerate(spec.get("tls") or ()):
            for position, host in enumerate(tls.get("hosts") or ()):
                yield from _host(f"spec.tls[{index}].hosts[{position}]", host)
            if tls.get("secretName"):
                yield from checks.subdomain(f"spec.tls[{index}].secretName", tls["secretName"])
        if "ingressClassName" in spec:
            yield from checks.subdomain("spec.ingressClassName", spec["ingressClassName"])

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        name = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
        if name in (None, obj["spec"].get("ingressClassName", name)):
            return []
        why = "must match `ingressClassName` when both are specified"
        return [causes.invalid(f"annotations.{CLASS_ANNOTATION}", name, why)]

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        backends = [spec.get("defaultBackend") or {}]
        for rule in spec.get("rules") or ():
            paths = (rule.get("http") or {}).get("paths") or ()
            backends += [path["backend"] for path in paths]
        for backend in backends:
            if "resource" in backend:
                # Such a reference spells out that it has no group.
                backend["resource"].setdefault("apiGroup", None)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        status = new["status"]["loadBalancer"]
        for index, ingress in enumerate(status.get("ingress") or ()):
            path, host = f"status.loadBalancer.ingress[{index}]", ingress.get("hostname", "")
            if ingress.get("ip"):
                yield from checks.ip(f"{path}.ip", ingress["ip"])
            if host:
                yield from checks.subdomain(f"{path}.hostname", host)
                if checks.address(host) is not None:
                    yield causes.invalid(f"{path}.hostname", host, _NOT_AN_ADDRESS)

    def warnings(self, obj: Object) -> list[str]:
        annotated = CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {})
        if not annotated or "ingressClassName" in obj["spec"]:
            return []
        return [
            f'annotation "{CLASS_ANNOTATION}" is deprecated, please use '
            "'spec.ingressClassName' instead"
        ]


class IngressClassKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        if "parameters" in obj["spec"]:
            obj["spec"]["parameters"].setdefault("scope", "Cluster")

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        controller = spec.get("controller", "")
        if len(controller) > _CONTROLLER_MAX:
            yield causes.too_long("spec.controller", _CONTROLLER_MAX)
        yield from checks.domain_prefixed_path("spec.controller", controller)
        if "parameters" not in spec:
            return
        path, parameters = "spec.parameters", spec["parameters"]
        yield from _reference(path, parameters)
        scope, namespace = parameters["scope"], parameters.get("namespace")
        if scope not in ("Cluster", "Namespace"):
            yield causes.unsupported(f"{path}.scope", scope, ["Cluster", "Namespace"])
        elif scope == "Cluster":
            if namespace is not None:
                yield causes.forbidden(
                    f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"
                )
        elif namespace is None:
            yield causes.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            yield from label(f"{path}.namespace", namespace)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        yield from checks.immutable("spec", new["spec"], old["spec"], "controller")
        yield from self.validate(new, scene)


def _host(path: str, host: str) -> Causes:
    judge = names.wildcard_problems if "*" in host else names.subdomain_problems
    return each(path, host, judge(host))


def _rule(path: str, rule: Object) -> Causes:
    host = rule.get("host", "")
    if host:
        if checks.address(host) is not None:
            yield causes.invalid(f"{path}.host", host, _NOT_AN_ADDRESS)
        yield from _host(f"{path}.host", host)
    if "http" not in rule:
        return
    paths = rule["http"].get("paths") or []
    if not paths:
        yield causes.required(f"{path}.http.paths")
    for index, each_path in enumerate(paths):
        yield from _path(f"{path}.http.paths[{index}]", each_path)


def _path(path: str, entry: Object) -> Causes:
    kind, text = entry.get("pathType"), entry.get("path", "")
    if kind is None:
        yield causes.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in PATH_TYPES:
        yield causes.unsupported(f"{path}.pathType", kind, PATH_TYPES)
    else:
        yield from _url_path(f"{path}.path", text, free=kind == "ImplementationSpecific")
    yield from _backend(f"{path}.backend", entry["backend"])


def _url_path(path: str, text: str, *, free: bool) -> Causes:
    if not text.startswith("/") and (text or not free):
        yield causes.invalid(path, text, "must be an absolute path")
    if free:
        return
    for part in _FORBIDDEN_IN_PATHS:
        if part in text:
            yield causes.invalid(path, text, f"must not contain '{part}'")
    for end in _FORBIDDEN_AT_ENDS:
        if text.endswith(end):
            yield causes.invalid(path, text, f"cannot end with '{end}'")


def _backend(path: str, backend: Object) -> Causes:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield causes.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference(f"{path}.resource", resource)
    elif service is not None:
        yield from _service(path, service)
    else:
        yield causes.invalid(path, "", "resource or service backend is required")


def _service(path: str, service: Object) -> Causes:
    at, name = f"{path}.service", service.get("name", "")
    yield from checks.needed(f"{at}.name", name, names.label_problems)
    port = service["port"]
    if port.get("name") and port.get("number"):
        yield causes.invalid(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from checks.port(f"{at}.port.name", port["name"])
    elif port.get("number"):
        yield from checks.port(f"{at}.port.number", port["number"])
    else:
        yield causes.required(path, "port name or number is required")


def _reference(path: str, reference: Object) -> Causes:
    if reference.get("apiGroup") is not None:
        yield from checks.subdomain(f"{path}.apiGroup", reference["apiGroup"])
    for field in ("kind", "name"):
        yield from checks.path_segment(f"{path}.{field}", reference.get(field, ""))
