"""The containers of a pod: image, command, resources, state. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from kvestigate.inspection.sections import Section
from kvestigate.kube.redaction import masked_words, names_a_secret
from kvestigate.kube.views.pods import Container, ContainerState, Pod

_SOURCES = {
    "configMapKeyRef": "ConfigMap {name}, key {key}",
    "secretKeyRef": "Secret {name}, key {key}",
    "fieldRef": "field {fieldPath}",
    "resourceFieldRef": "resource {resource}",
}
_WHOLE = {"configMapRef": "ConfigMap {name}", "secretRef": "Secret {name}"}


def container_sections(pod: Pod, body: dict[str, Any]) -> list[Section]:
    """`body` is the same pod as the server's object."""
    raw = [*(body["spec"].get("initContainers") or ()), *(body["spec"].get("containers") or ())]
    return [
        _states(pod),
        _resources(pod),
        Section("Commands", ("container", "command"), tuple(_commands(pod))),
        Section("Ports", ("container", "port", "name"), tuple(_ports(pod))),
        Section("Environment", ("container", "name", "value"), tuple(_environment(raw))),
        Section("Mounts", ("container", "path", "volume", "mode"), tuple(_mounts(raw))),
    ]


def _states(pod: Pod) -> Section:
    statuses = {
        status.name: status
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    rows = []
    for kind, container in _each(pod):
        status = statuses.get(container.name)
        rows.append(
            (
                container.name,
                kind,
                container.image,
                _state(status.state) if status else "-",
                str(status.restart_count) if status else "0",
                _state(status.last_state) if status else "-",
            )
        )
    return Section(
        "Containers", ("name", "kind", "image", "state", "restarts", "last state"), tuple(rows)
    )


def _resources(pod: Pod) -> Section:
    rows = []
    for _, container in _each(pod):
        requests, limits = container.resources.requests, container.resources.limits
        for name in sorted({*requests, *limits}):
            rows.append((container.name, name, requests.get(name, "-"), limits.get(name, "-")))
    return Section("Resources", ("container", "resource", "request", "limit"), tuple(rows))


def _commands(pod: Pod) -> Iterator[tuple[str, ...]]:
    for _, container in _each(pod):
        words = shlex.join(masked_words((*container.command, *container.args)))
        if container.command:
            yield container.name, words
        elif words:
            yield container.name, f"(entrypoint of the image) {words}"


def _ports(pod: Pod) -> Iterator[tuple[str, ...]]:
    for _, container in _each(pod):
        for port in container.ports:
            yield (
                container.name,
                f"{port.container_port}/{port.protocol or 'TCP'}",
                port.name or "-",
            )


def _environment(containers: Iterable[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for container in containers:
        for whole in container.get("envFrom") or ():
            prefix = whole.get("prefix") or ""
            yield container["name"], f"{prefix}*", f"all of {_reference(whole, _WHOLE)}"
        for variable in container.get("env") or ():
            yield container["name"], variable["name"], _value(variable)


def _value(variable: dict[str, Any]) -> str:
    source = variable.get("valueFrom")
    if source:
        return f"from {_reference(source, _SOURCES)}"
    value = str(variable.get("value") or "")
    return "(hidden)" if value and names_a_secret(variable["name"]) else value


def _reference(source: dict[str, Any], known: dict[str, str]) -> str:
    for field, words in known.items():
        if field in source:
            return words.format_map(source[field])
    return next(iter(source), "unknown")


def _mounts(containers: Iterable[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for container in containers:
        for mount in container.get("volumeMounts") or ():
            part = mount.get("subPath")
            volume = f"{mount['name']}, path {part}" if part else mount["name"]
            mode = "read only" if mount.get("readOnly") else "read/write"
            yield container["name"], mount["mountPath"], volume, mode


def _each(pod: Pod) -> Iterator[tuple[str, Container]]:
    for container in pod.spec.init_containers:
        yield "sidecar" if container.restart_policy == "Always" else "init", container
    for container in pod.spec.containers:
        yield "main", container


def _state(state: ContainerState) -> str:
    if state.running is not None:
        since = state.running.started_at
        return f"running since {since:%Y-%m-%d %H:%M:%S} UTC" if since else "running"
    if state.waiting is not None:
        message = f": {state.waiting.message}" if state.waiting.message else ""
        return f"waiting: {state.waiting.reason or 'reason unknown'}{message}"
    if state.terminated is not None:
        ended = state.terminated
        return f"exit code {ended.exit_code} ({ended.reason or 'reason unknown'})"
    return "-"
