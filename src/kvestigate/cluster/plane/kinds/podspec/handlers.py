"""Probes and lifecycle hooks: what the kubelet does to a container, and when. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import NOT_NEGATIVE, port
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HEADER = "[-A-Za-z0-9]+"
_matches_header = re.compile(_HEADER).fullmatch


def validate_probe(path: str, probe: Object, name: str, grace: int) -> Causes:
    yield from _handler(path, probe, grace)
    for number in _NUMBERS:
        if number in probe and probe[number] < 0:
            yield causes.invalid(f"{path}.{number}", probe[number], NOT_NEGATIVE)
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield causes.invalid(
            f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0"
        )
    if name != "readinessProbe":
        if probe.get("successThreshold", 0) != 1:
            yield causes.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")
    elif seconds is not None:
        why = "must not be set for readinessProbes"
        yield causes.invalid(f"{path}.terminationGracePeriodSeconds", seconds, why)


def validate_lifecycle(path: str, lifecycle: Object, grace: int) -> Causes:
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            yield from _handler(f"{path}.{name}", lifecycle[name], grace)


def _handler(path: str, handler: Object, grace: int) -> Causes:
    actions = list(filter(HANDLERS.__contains__, handler))
    if not actions:
        yield causes.required(path, "must specify a handler type")
        return
    if len(actions) > 1:
        actions.sort(key=HANDLERS.index)
    first, *others = actions
    at, action = f"{path}.{first}", handler[first]
    if first == "exec":
        if not action.get("command"):
            yield causes.required(f"{at}.command")
    elif first == "httpGet":
        yield from _http(at, action)
    elif first == "sleep":
        seconds = action["seconds"]
        if not 0 <= seconds <= grace:
            why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            yield causes.invalid(at, seconds, why)
    else:
        yield from port(f"{at}.port", action["port"])
    for name in others:
        yield causes.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _http(path: str, action: Object) -> Causes:
    yield from port(f"{path}.port", action["port"])
    yield from checks.choice(f"{path}.scheme", action["scheme"], ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        if not _matches_header(header.get("name", "")):
            yield causes.invalid(
                f"{path}.httpHeaders",
                header.get("name", ""),
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                f"'X-Header-Name', regex used for validation is '{_HEADER}')",
            )
