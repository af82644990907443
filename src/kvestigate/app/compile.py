"""From an App to the Kubernetes objects that run it. Pure."""

from __future__ import annotations

from typing import Any, Final

from kvestigate.app.check import file_name
from kvestigate.app.digest import digest
from kvestigate.app.fence import Fence
from kvestigate.app.launch import CONFIG_VARIABLE
from kvestigate.app.spec import (
    AppSpec,
    ExposeMode,
    Lifecycle,
    Port,
    RestartPolicy,
    Toleration,
    WorkloadKind,
)
from kvestigate.errors import InputError
from kvestigate.jobs.tasks.script import literal

Manifest = dict[str, Any]

APP_LABEL: Final = "kvestigate.dev/app"
"""On everything that an App is made of: how it is found again."""
MANAGER_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "kvestigate"
CONFIG_DIGEST: Final = "kvestigate.dev/config-digest"
"""Annotation of pods: other config files mean other pods."""
KINDS: Final = ("deployments", "statefulsets", "jobs", "services", "configmaps")
"""All that `compile_to_k8s` makes, what needs others first."""
GPU: Final = "nvidia.com/gpu"
CONFIG_DIR: Final = "/etc/app-config"

_OPEN = Fence()
_RETRIES = 6
"""How often a Job with `restart: on-failure` is tried again."""
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_TYPES = {
    ExposeMode.CLUSTER: "ClusterIP",
    ExposeMode.NODE_PORT: "NodePort",
    ExposeMode.LOAD_BALANCER: "LoadBalancer",
}


def compile_to_k8s(spec: AppSpec, fence: Fence = _OPEN) -> list[Manifest]:
    """What can be applied as it is: config, services, the workload, last."""
    if not spec.k8s.image:
        raise InputError(
            "k8s.image: is needed to run in pods",
            hint="k8s: {image: python:3.13-slim}, or name workspace.node to run on a host",
        )
    found: list[Manifest] = []
    if spec.shared_config_files:
        found.append(_config(spec))
    if spec.distributed is not None or workload_kind(spec) is WorkloadKind.STATEFUL_SET:
        found.append(_peers(spec))
    if spec.k8s.ports and spec.k8s.expose is not ExposeMode.NONE:
        found.append(_service(spec))
    found.append(_workload(spec, fence))
    if fence.annotations:
        for manifest in found:
            manifest["metadata"].setdefault("annotations", {}).update(fence.annotations)
    return found


def workload_kind(spec: AppSpec) -> WorkloadKind:
    """What the App says, or what its lifecycle means; InputError if they cannot go together."""
    ends = spec.lifecycle is Lifecycle.BATCH or spec.distributed is not None
    kind = spec.k8s.kind or (WorkloadKind.JOB if ends else WorkloadKind.DEPLOYMENT)
    if spec.distributed is not None and kind is not WorkloadKind.JOB:
        raise InputError(
            f"k8s.kind: {kind.value!r} knows no ranks, and distributed.shards is set",
            hint="write k8s.kind: job, or leave it out",
        )
    if kind is WorkloadKind.JOB and spec.restart is RestartPolicy.ALWAYS:
        raise InputError(
            "restart: 'always' contradicts a job, which ends",
            hint="write restart: on-failure, or lifecycle: service",
        )
    if kind is not WorkloadKind.JOB and spec.restart not in (None, RestartPolicy.ALWAYS):
        raise InputError(
            f"restart: {spec.restart.value!r} cannot be had from a {kind.value}",
            hint="write lifecycle: batch, or leave restart out",
        )
    return kind


def _workload(spec: AppSpec, fence: Fence) -> Manifest:
    match workload_kind(spec):
        case WorkloadKind.DEPLOYMENT:
            return _replicated(spec, fence, "Deployment", {})
        case WorkloadKind.STATEFUL_SET:
            return _replicated(spec, fence, "StatefulSet", {"serviceName": _peers_name(spec)})
        case WorkloadKind.JOB:
            return _job(spec, fence)


def _object(api_version: str, kind: str, spec: AppSpec, name: str, part: Manifest) -> Manifest:
    metadata: Manifest = {
        "name": name,
        "namespace": spec.metadata.namespace,
        "labels": _labels(spec),
    }
    if spec.metadata.annotations:
        metadata["annotations"] = dict(spec.metadata.annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **part}


def _labels(spec: AppSpec) -> dict[str, str]:
    return {
        **spec.metadata.labels,
        "app.kubernetes.io/name": spec.metadata.name,
        MANAGER_LABEL: MANAGER,
        **_selector(spec),
    }


def _selector(spec: AppSpec) -> dict[str, str]:
    return {APP_LABEL: spec.metadata.name}


def _replicated(spec: AppSpec, fence: Fence, kind: str, more: Manifest) -> Manifest:
    body = {
        "replicas": spec.k8s.replicas,
        "selector": {"matchLabels": _selector(spec)},
        "template": _template(spec, fence.pod, _environment(spec)),
        **more,
    }
    return _object("apps/v1", kind, spec, spec.metadata.name, {"spec": body})


def _job(spec: AppSpec, fence: Fence) -> Manifest:
    """Its template can never be changed: what is another Job has another name."""
    unnamed = _job_named(spec, fence, spec.metadata.name)
    return _job_named(spec, fence, f"{spec.metadata.name}-{digest(unnamed)[:8]}")


def _job_named(spec: AppSpec, fence: Fence, name: str) -> Manifest:
    retried = spec.restarts is RestartPolicy.ON_FAILURE
    count = spec.distributed.shards if spec.distributed is not None else spec.k8s.replicas
    pod: Manifest = {"restartPolicy": "OnFailure" if retried else "Never", **fence.pod}
    environment = _environment(spec)
    body: Manifest = {
        "completions": count,
        "parallelism": count,
        "backoffLimit": _RETRIES if retried else 0,
    }
    if spec.distributed is not None:
        body["completionMode"] = "Indexed"
        pod["subdomain"] = _peers_name(spec)
        environment += _ranks(spec, name, count)
    body["template"] = _template(spec, pod, environment)
    return _object("batch/v1", "Job", spec, name, {"spec": body})


def _ranks(spec: AppSpec, job: str, count: int) -> list[Manifest]:
    """A pod of an indexed Job is called like the job and its index."""
    hosts = [f"{job}-{rank}.{_peers_name(spec)}" for rank in range(count)]
    return [
        {"name": "DIST_RANK", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}},
        {"name": "DIST_WORLD_SIZE", "value": str(count)},
        {"name": "DIST_PEERS", "value": ",".join(hosts)},
        {"name": "DIST_COORDINATOR", "value": hosts[0]},
    ]


def _template(spec: AppSpec, pod: Manifest, environment: list[Manifest]) -> Manifest:
    metadata: Manifest = {"labels": _labels(spec)}
    annotations = dict(spec.metadata.annotations)
    if spec.shared_config_files:
        annotations[CONFIG_DIGEST] = digest(_contents(spec))[:16]
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {**pod, **_pod(spec, environment)}}


def _pod(spec: AppSpec, environment: list[Manifest]) -> Manifest:
    part = spec.k8s
    pod: Manifest = {}
    if part.service_account:
        pod["serviceAccountName"] = part.service_account
    else:
        pod["automountServiceAccountToken"] = False
    if part.node_selector:
        pod["nodeSelector"] = dict(part.node_selector)
    if part.tolerations:
        pod["tolerations"] = [_toleration(toleration) for toleration in part.tolerations]
    volumes, mounts = _volumes(spec)
    container = _container(spec, environment)
    if volumes:
        pod["volumes"] = volumes
        container["volumeMounts"] = mounts
    return {**pod, "containers": [container]}


def _toleration(toleration: Toleration) -> Manifest:
    parts = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return {key: value for key, value in parts.items() if value}


def _container(spec: AppSpec, environment: list[Manifest]) -> Manifest:
    container: Manifest = {"name": spec.metadata.name, "image": spec.k8s.image}
    if spec.command:
        container["command"] = [literal(word) for word in spec.command]
    if environment:
        container["env"] = environment
    if spec.k8s.env_from_secrets:
        container["envFrom"] = [
            {"secretRef": {"name": secret}} for secret in spec.k8s.env_from_secrets
        ]
    if spec.k8s.ports:
        container["ports"] = [_container_port(port) for port in spec.k8s.ports]
    if spec.k8s.health_path:
        probe = {"path": spec.k8s.health_path, "port": _port_name(spec.k8s.ports[0])}
        container["readinessProbe"] = {"httpGet": probe}
    if needed := _resources(spec):
        container["resources"] = needed
    if spec.lifecycle is Lifecycle.INTERACTIVE:
        container |= {"stdin": True, "tty": True}
    return container


def _environment(spec: AppSpec) -> list[Manifest]:
    own = {CONFIG_VARIABLE: CONFIG_DIR} if spec.shared_config_files else {}
    variables = own | {name: literal(value) for name, value in spec.env.items()}
    return [{"name": name, "value": value} for name, value in variables.items()]


def _resources(spec: AppSpec) -> Manifest:
    wanted = {"cpu": spec.resources.cpu, "memory": spec.resources.memory}
    amounts = {name: amount for name, amount in wanted.items() if amount}
    gpus = {GPU: str(spec.resources.gpu)} if spec.resources.gpu else {}
    parts = {"requests": amounts, "limits": amounts | gpus}
    return {key: dict(value) for key, value in parts.items() if value}


def _volumes(spec: AppSpec) -> tuple[list[Manifest], list[Manifest]]:
    volumes: dict[str, Manifest] = {}
    mounts: list[Manifest] = []
    if spec.shared_config_files:
        volumes["config"] = {"name": "config", "configMap": {"name": _config_name(spec)}}
        mounts.append({"name": "config", "mountPath": CONFIG_DIR, "readOnly": True})
    numbers = {claim: f"volume-{number}" for number, claim in enumerate(_claims(spec))}
    for claim, name in numbers.items():
        volumes[name] = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    for path, claim in spec.k8s.volumes.items():
        mounts.append({"name": numbers[claim], "mountPath": path})
    return list(volumes.values()), mounts


def _claims(spec: AppSpec) -> list[str]:
    return list(dict.fromkeys(spec.k8s.volumes.values()))


def _config_name(spec: AppSpec) -> str:
    return f"{spec.metadata.name}-config"


def _contents(spec: AppSpec) -> dict[str, str]:
    found = {}
    for file in spec.shared_config_files:
        if file.content is None:
            raise InputError(
                f"shared_config_files: {file.local!r} was not read",
                hint="load_app reads it, or resolve_shared_config_files(spec, directory)",
            )
        found[file_name(file)] = file.content
    return found


def _config(spec: AppSpec) -> Manifest:
    return _object("v1", "ConfigMap", spec, _config_name(spec), {"data": _contents(spec)})


def _peers_name(spec: AppSpec) -> str:
    return f"{spec.metadata.name}-peers"


def _peers(spec: AppSpec) -> Manifest:
    """Gives each pod a name that the others find it by, before it is ready."""
    body: Manifest = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": _selector(spec),
    }
    return _object("v1", "Service", spec, _peers_name(spec), {"spec": body})


def _service(spec: AppSpec) -> Manifest:
    body: Manifest = {
        "type": _TYPES[spec.k8s.expose],
        "selector": _selector(spec),
        "ports": [_service_port(port) for port in spec.k8s.ports],
    }
    return _object("v1", "Service", spec, spec.metadata.name, {"spec": body})


def _port_name(port: Port) -> str:
    ending = "" if port.protocol == "TCP" else f"-{port.protocol.lower()}"
    return port.name or f"port-{port.port}{ending}"


def _container_port(port: Port) -> Manifest:
    return {
        "name": _port_name(port),
        "containerPort": port.target_port or port.port,
        "protocol": port.protocol,
    }


def _service_port(port: Port) -> Manifest:
    return {
        "name": _port_name(port),
        "port": port.port,
        "targetPort": _port_name(port),
        "protocol": port.protocol,
    }
