"""A container's environment and command line. What the spec refers to was fetched before. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kvestigate.cluster.node.spec.pod import (
    CONFIG_MAP,
    SECRET,
    Container,
    EnvSource,
    FieldRef,
    KeyRef,
    NameRef,
    Pod,
    Reference,
    ResourceRef,
)
from kvestigate.kube import quantities
from kvestigate.kube.views.network import Service

Data = Mapping[str, bytes]

_EXPANSION = re.compile(r"\$(\$|\(([^()$]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")


class MissingReference(Exception):
    """The spec names something that is not there: the container has to wait."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a pod's environment is made from, beside its own spec."""

    data: Mapping[Reference, Data | None]
    """ConfigMaps and Secrets; None for those that do not exist."""
    binary: Mapping[Reference, frozenset[str]] = field(default_factory=dict)
    """The keys of ConfigMaps that are no text: volumes show them, an environment does not."""
    services: tuple[Service, ...] = ()
    host_ip: str = ""
    pod_ip: str = ""
    allocatable: Mapping[str, str] = field(default_factory=dict)
    api: tuple[str, int] | None = None
    """Where containers reach the API server, if not at its service's address."""

    def text(self, plural: str, name: str) -> Data | None:
        """What an environment may be made from."""
        reference = (plural, name)
        data, left_out = self.data.get(reference), self.binary.get(reference)
        if data is None or not left_out:
            return data
        return {key: value for key, value in data.items() if key not in left_out}


def references(container: Container) -> set[Reference]:
    """The ConfigMaps and Secrets that the environment is made from."""
    names: set[Reference] = set()
    for source in container.env_from:
        if source.config_map_ref is not None:
            names.add((CONFIG_MAP, source.config_map_ref.name))
        if source.secret_ref is not None:
            names.add((SECRET, source.secret_ref.name))
    for variable in container.env:
        if variable.value_from is None:
            continue
        if variable.value_from.config_map_key_ref is not None:
            names.add((CONFIG_MAP, variable.value_from.config_map_key_ref.name))
        if variable.value_from.secret_key_ref is not None:
            names.add((SECRET, variable.value_from.secret_key_ref.name))
    return names


def environment(pod: Pod, container: Container, around: Surroundings) -> dict[str, str]:
    """Services first, then whole ConfigMaps and Secrets, then the variables in their order."""
    env = service_variables(pod, around)
    for source in container.env_from:
        if source.config_map_ref is not None:
            env |= _all_of(CONFIG_MAP, source.config_map_ref, source.prefix, around)
        if source.secret_ref is not None:
            env |= _all_of(SECRET, source.secret_ref, source.prefix, around)
    own: dict[str, str] = {}
    for variable in container.env:
        if variable.value_from is None:
            value: str | None = expand(variable.value, env | own)
        else:
            value = _from(pod, container, variable.value_from, around)
        if value is not None:
            own[variable.name] = value
    return {"HOSTNAME": hostname(pod), **env, **own}


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` becomes its value, `$$` a dollar sign; unknown names stay as they are."""

    def value(match: re.Match[str]) -> str:
        if match.group(1) == "$":
            return "$"
        return env.get(match.group(2), match.group())

    return _EXPANSION.sub(value, text)


def names_in(text: str) -> set[str]:
    """The variables that `expand` would look for."""
    return {match.group(2) for match in _EXPANSION.finditer(text) if match.group(1) != "$"}


def hostname(pod: Pod) -> str:
    """Its own, or its node's where it is in the node's network."""
    if pod.spec.host_network and pod.spec.node_name:
        return pod.spec.node_name
    return pod.spec.hostname or pod.metadata.name[:63].rstrip("-.")


def field_value(pod: Pod, path: str, around: Surroundings) -> str:
    """The downward API's fields, each as text."""
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        kept = pod.metadata.labels if subscript[1] == "labels" else pod.metadata.annotations
        return kept.get(subscript[2], "")
    fields = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "metadata.labels": _as_lines(pod.metadata.labels),
        "metadata.annotations": _as_lines(pod.metadata.annotations),
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": around.host_ip,
        "status.hostIPs": around.host_ip,
        "status.podIP": around.pod_ip,
        "status.podIPs": around.pod_ip,
    }
    if path not in fields:
        raise MissingReference(f'fieldPath "{path}" is not supported by the downward API')
    return fields[path]


def resource_value(pod: Pod, own: Container | None, ref: ResourceRef, around: Surroundings) -> str:
    """A request or limit in units of the divisor, rounded up."""
    container = pod.container(ref.container_name) if ref.container_name else own
    if container is None:
        raise MissingReference(f'the pod has no container "{ref.container_name}"')
    kind, _, name = ref.resource.partition(".")
    amounts = container.resources.limits if kind == "limits" else container.resources.requests
    amount = amounts.get(name)
    if amount is None:
        # An absent limit means all that the node has.
        amount = around.allocatable.get(name, "0") if kind == "limits" else "0"
    divisor = quantities.parse("1" if ref.divisor in ("", "0") else ref.divisor)
    return str(-(-quantities.parse(amount).nanos // divisor.nanos))


def service_variables(pod: Pod, around: Surroundings) -> dict[str, str]:
    env: dict[str, str] = {}
    for service in around.services:
        master = (service.metadata.namespace, service.metadata.name) == ("default", "kubernetes")
        linked = (
            pod.spec.enable_service_links and service.metadata.namespace == pod.metadata.namespace
        )
        if (master or linked) and service.spec.cluster_ip not in ("", "None"):
            env |= _links(service)
    if around.api is not None:
        host, port = around.api
        env |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
        env |= {"KUBERNETES_SERVICE_PORT_HTTPS": str(port)}
    return env


def _links(service: Service) -> dict[str, str]:
    if not service.spec.ports:
        return {}
    name = service.metadata.name.upper().replace("-", "_")
    address = service.spec.cluster_ip
    first = service.spec.ports[0]
    env = {
        f"{name}_SERVICE_HOST": address,
        f"{name}_SERVICE_PORT": str(first.port),
        f"{name}_PORT": f"{first.protocol.lower()}://{address}:{first.port}",
    }
    for port in service.spec.ports:
        if port.name:
            word = port.name.upper().replace("-", "_")
            env[f"{name}_SERVICE_PORT_{word}"] = str(port.port)
        link = f"{name}_PORT_{port.port}_{port.protocol.upper()}"
        env[link] = f"{port.protocol.lower()}://{address}:{port.port}"
        env[f"{link}_PROTO"] = port.protocol.lower()
        env[f"{link}_PORT"] = str(port.port)
        env[f"{link}_ADDR"] = address
    return env


def _all_of(plural: str, ref: NameRef, prefix: str, around: Surroundings) -> dict[str, str]:
    data = around.text(plural, ref.name)
    if data is None:
        if ref.optional:
            return {}
        raise MissingReference(f'{_noun(plural)} "{ref.name}" not found')
    return {prefix + key: value.decode("utf-8", "replace") for key, value in data.items()}


def _from(pod: Pod, own: Container, source: EnvSource, around: Surroundings) -> str | None:
    if source.field_ref is not None:
        return _field(pod, source.field_ref, around)
    if source.resource_field_ref is not None:
        return resource_value(pod, own, source.resource_field_ref, around)
    if source.config_map_key_ref is not None:
        return _key(CONFIG_MAP, source.config_map_key_ref, pod, around)
    if source.secret_key_ref is not None:
        return _key(SECRET, source.secret_key_ref, pod, around)
    return None


def _field(pod: Pod, ref: FieldRef, around: Surroundings) -> str:
    return field_value(pod, ref.field_path, around)


def _key(plural: str, ref: KeyRef, pod: Pod, around: Surroundings) -> str | None:
    data = around.text(plural, ref.name)
    if data is not None and ref.key in data:
        return data[ref.key].decode("utf-8", "replace")
    if ref.optional:
        return None
    if data is None:
        raise MissingReference(f'{_noun(plural)} "{ref.name}" not found')
    where = f"{pod.metadata.namespace}/{ref.name}"
    raise MissingReference(f"couldn't find key {ref.key} in {_title(plural)} {where}")


def _as_lines(pairs: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(pairs.items()))


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _noun(plural: str) -> str:
    return plural.removesuffix("s")


def _title(plural: str) -> str:
    return {CONFIG_MAP: "ConfigMap", SECRET: "Secret"}[plural]
