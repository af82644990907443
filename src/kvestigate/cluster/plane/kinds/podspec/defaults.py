"""What a pod spec means when it does not say: the same for pods and for templates. Pure.

Objects are in normal form (see `kube.normal`): absent, not empty, is what was left out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kvestigate.kube import quantities

Object = dict[str, Any]

DEFAULT_MODE = 0o644
TOKEN_SECONDS = 3600

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MILLI = 10**6


def default_pod_template(template: Object) -> None:
    default_pod_spec(template.setdefault("spec", {"containers": None}))


def default_pod_spec(spec: Object) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    spec.pop("schedulingGroup", None)  # behind a feature gate that is off by default
    name_account(spec, spec.get("serviceAccountName") or spec.get("serviceAccount"))
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for name in CONTAINER_LISTS:
        for container in spec.get(name) or ():
            default_container(container)
    if "overhead" in spec:
        round_amounts(spec["overhead"])
    if "resources" in spec:
        _round_requirements(spec["resources"])


def name_account(spec: Object, name: str | None) -> None:
    """Set `serviceAccountName` and its deprecated alias `serviceAccount`."""
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def default_container(container: Object) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if "valueFrom" in variable:
            _default_variable(variable["valueFrom"])
    _round_requirements(container["resources"])
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    if "lifecycle" in container:
        _default_lifecycle(container)


def default_volume(volume: Object) -> None:
    if len(volume) == 1:  # a name and nothing else
        volume["emptyDir"] = {}
        return
    for source, value in volume.items():
        if source in _VOLUMES:
            _VOLUMES[source](value)


def default_claim_spec(spec: Object) -> None:
    """Of a PersistentVolumeClaim, or of the template for one."""
    spec.setdefault("volumeMode", "Filesystem")
    _round_requirements(spec.get("resources") or {})


def round_amounts(amounts: Object) -> None:
    """Round amounts up to whole thousandths, in place."""
    for name, text in amounts.items():
        if text[-1:] in "nu" or "." in text:
            amount = quantities.parse(text)
            if amount.nanos % _MILLI:
                nanos = -(-abs(amount.nanos) // _MILLI) * _MILLI
                nanos = nanos if amount.nanos > 0 else -nanos
                amounts[name] = str(quantities.Quantity(nanos, amount.notation))


def request_limits(containers: list[Object]) -> None:
    """Use a limit as the request if there is none. Not for templates."""
    for container in containers:
        resources = container["resources"]
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}


def open_host_ports(containers: list[Object]) -> None:
    """Set `hostPort` of pods on the host network. Not for templates."""
    for container in containers:
        for port in container.get("ports") or ():
            port.setdefault("hostPort", port["containerPort"])


def _default_variable(source: Object) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "fileKeyRef" in source:
        source["fileKeyRef"].setdefault("optional", False)


def _default_lifecycle(container: Object) -> None:
    lifecycle = container["lifecycle"]
    # Behind a feature gate that is off by default: the server forgets it.
    if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]
    for handler in lifecycle.values():
        if "httpGet" in handler:
            _default_http(handler["httpGet"])


def _default_probe(probe: Object) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "httpGet" in probe:
        _default_http(probe["httpGet"])
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _default_http(action: Object) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _round_requirements(requirements: Object) -> None:
    for name in ("limits", "requests"):
        if name in requirements:
            round_amounts(requirements[name])


def _mode(source: Object) -> None:
    source.setdefault("defaultMode", DEFAULT_MODE)


def _host_path(source: Object) -> None:
    source.setdefault("type", "")


def _downward(source: Object) -> None:
    _mode(source)
    _downward_items(source)


def _downward_items(source: Object) -> None:
    for item in source.get("items") or ():
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _projected(source: Object) -> None:
    _mode(source)
    for each in source.get("sources") or ():
        for gated in ("clusterTrustBundle", "podCertificate"):
            each.pop(gated, None)
        if "downwardAPI" in each:
            _downward_items(each["downwardAPI"])
        if "serviceAccountToken" in each:
            each["serviceAccountToken"].setdefault("expirationSeconds", TOKEN_SECONDS)


def _ephemeral(source: Object) -> None:
    if "volumeClaimTemplate" in source:
        default_claim_spec(source["volumeClaimTemplate"]["spec"])


def _image(source: Object) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


def _iscsi(source: Object) -> None:
    source.setdefault("iscsiInterface", "default")


def _rbd(source: Object) -> None:
    source.setdefault("pool", "rbd")
    source.setdefault("user", "admin")
    source.setdefault("keyring", "/etc/ceph/keyring")


def _azure_disk(source: Object) -> None:
    source.setdefault("cachingMode", "ReadWrite")
    source.setdefault("fsType", "ext4")
    source.setdefault("readOnly", False)
    source.setdefault("kind", "Shared")


def _scale_io(source: Object) -> None:
    source.setdefault("storageMode", "ThinProvisioned")
    source.setdefault("fsType", "xfs")


_VOLUMES = {
    "configMap": _mode,
    "secret": _mode,
    "projected": _projected,
    "hostPath": _host_path,
    "downwardAPI": _downward,
    "ephemeral": _ephemeral,
    "image": _image,
    "iscsi": _iscsi,
    "rbd": _rbd,
    "azureDisk": _azure_disk,
    "scaleIO": _scale_io,
}


_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"

_REFERENCE = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    rf"(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_NAME_MAX = 255
_IDENTIFIER = re.compile("[a-f0-9]{64}")


@lru_cache(maxsize=4096)
def tag_of(image: str) -> str:
    """The tag an image is pulled by: `latest` if neither tag nor digest says otherwise.

    Empty for a digest without a tag, and for what is no reference at all.
    """
    match = _REFERENCE.fullmatch(image)
    if match is None or _IDENTIFIER.fullmatch(image) or match.end("path") > _NAME_MAX:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def pull_policy(image: str) -> str:
    """The default `imagePullPolicy` for an image."""
    return "Always" if tag_of(image) == "latest" else "IfNotPresent"
