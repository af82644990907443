"""Probes and lifecycle hooks: what the kubelet does to a container, and when. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.kube import causes
from kvestigate.plane.kinds.checks import Causes, not_negative, port

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

_SIGNALS = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX "
    "RTMAX-1 RTMAX-10 RTMAX-11 RTMAX-12 RTMAX-13 RTMAX-14 RTMAX-2 RTMAX-3 RTMAX-4 RTMAX-5 "
    "RTMAX-6 RTMAX-7 RTMAX-8 RTMAX-9 RTMIN RTMIN+1 RTMIN+10 RTMIN+11 RTMIN+12 RTMIN+13 "
    "RTMIN+14 RTMIN+15 RTMIN+2 RTMIN+3 RTMIN+4 RTMIN+5 RTMIN+6 RTMIN+7 RTMIN+8 RTMIN+9 SEGV "
    "STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"
)
STOP_SIGNALS = {
    "linux": tuple(f"SIG{name}" for name in _SIGNALS.split()),
    "windows": ("SIGKILL", "SIGTERM"),
}


def validate_probes(path: str, container: Object, grace: int) -> Causes:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            yield from _probe(f"{path}.{name}", container[name], name, grace)


def _probe(path: str, probe: Object, name: str, grace: int) -> Causes:
    yield from _handler(path, probe, grace)
    for number in _NUMBERS:
        yield from not_negative(f"{path}.{number}", probe.get(number, 0))
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


def validate_lifecycle(path: str, lifecycle: Object, grace: int, system: str) -> Causes:
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            yield from _handler(f"{path}.{name}", lifecycle[name], grace)
    if "stopSignal" in lifecycle:
        at, signal = f"{path}.stopSignal", lifecycle["stopSignal"]
        if not system:
            yield causes.forbidden(at, "may not be set for containers with empty `spec.os.name`")
        elif signal not in STOP_SIGNALS.get(system, (signal,)):
            yield causes.unsupported(at, signal, STOP_SIGNALS[system])


def _handler(path: str, handler: Object, grace: int) -> Causes:
    found = [name for name in HANDLERS if name in handler]
    if not found:
        yield causes.required(path, "must specify a handler type")
        return
    first, *others = found
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
    if action["scheme"] not in ("HTTP", "HTTPS"):
        yield causes.unsupported(f"{path}.scheme", action["scheme"], ["HTTP", "HTTPS"])
    for header in action.get("httpHeaders") or ():
        if not _matches_header(header.get("name", "")):
            yield causes.invalid(
                f"{path}.httpHeaders",
                header.get("name", ""),
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                f"'X-Header-Name', regex used for validation is '{_HEADER}')",
            )
