"""The objects that a scenario puts into a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.cluster.node.gpu.slices import device_classes
from kvestigate.cluster.scenarios.model import Scenario, Workload
from kvestigate.cluster.scenarios.templates import filled
from kvestigate.errors import InputError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource


def objects(scenario: Scenario) -> list[dict[str, Any]]:
    """Complete manifests, in the order in which they are to be created.

    GPUs for dynamic allocation come with the classes of their driver.
    """
    made = device_classes() if scenario.spec.claims_gpus else []
    for index, workload in enumerate(scenario.spec.workloads):
        made += _manifests(workload, f"spec.workloads[{index}]")
    return made


def resource_of(manifest: Mapping[str, Any]) -> Resource:
    """The built-in resource of a manifest that `objects` returned."""
    resource = builtins.registry().for_kind(manifest["apiVersion"], manifest["kind"])
    assert resource is not None
    return resource


def _manifests(workload: Workload, path: str) -> Iterator[dict[str, Any]]:
    for values in _rounds(workload):
        for index, manifest in enumerate(workload.manifests):
            at = f"{path}.manifests[{index}]"
            made = filled(manifest, values, at)
            _check(made, at)
            yield made


def _rounds(workload: Workload) -> Iterator[Mapping[str, Any]]:
    if workload.each:
        for number, values in enumerate(workload.each, workload.first):
            yield {"n": number, **values}
    elif workload.times is not None:
        for number in range(workload.first, workload.first + workload.times):
            yield {"n": number}
    else:
        yield {}


def _check(manifest: dict[str, Any], path: str) -> None:
    for name in ("apiVersion", "kind"):
        if not isinstance(manifest.get(name), str):
            raise InputError("is missing", where=f"{path}.{name}")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise InputError("is missing", where=f"{path}.metadata.name")
    if builtins.registry().for_kind(manifest["apiVersion"], manifest["kind"]) is None:
        kind = f"{manifest['kind']} of {manifest['apiVersion']}"
        raise InputError(f"{kind} is not a built-in kind of Kubernetes", where=f"{path}.kind")
