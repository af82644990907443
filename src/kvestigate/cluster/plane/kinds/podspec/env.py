"""Environment variables of containers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import each
from kvestigate.cluster.plane.kinds.podspec import downward, paths
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

Object = dict[str, Any]


def validate_env(path: str, variables: list[Object], volumes: Mapping[str, Object]) -> Causes:
    for index, variable in enumerate(variables):
        name = variable["name"]
        if not name:
            yield causes.required(f"{path}[{index}].name")
        elif problems := names.env_name_problems(name):
            yield from each(f"{path}[{index}].name", name, problems)
        if "valueFrom" in variable:
            yield from _source(f"{path}[{index}].valueFrom", variable, volumes)


def _source(path: str, variable: Object, volumes: Mapping[str, Object]) -> Causes:
    source = variable["valueFrom"]
    if "fieldRef" in source:
        ref = source["fieldRef"]
        yield from downward.validate_field_ref(f"{path}.fieldRef", ref, downward.ENV_FIELDS)
    if "resourceFieldRef" in source:
        ref = source["resourceFieldRef"]
        yield from downward.validate_resource_ref(f"{path}.resourceFieldRef", ref, volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from _key(f"{path}.{name}", source[name])
    if "fileKeyRef" in source:
        yield from _file(f"{path}.fileKeyRef", source["fileKeyRef"], volumes)
    if not source:
        yield causes.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`",
        )
    elif variable.get("value"):
        yield causes.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield causes.invalid(path, "", "may not have more than one field specified at a time")


def _key(path: str, ref: Object) -> Causes:
    name, key = ref.get("name", ""), ref.get("key", "")
    yield from each(f"{path}.name", name, names.subdomain_problems(name))
    yield from checks.needed(f"{path}.key", key, names.config_key_problems)


def _file(path: str, ref: Object, volumes: Mapping[str, Object]) -> Causes:
    key, volume, file = ref.get("key", ""), ref.get("volumeName", ""), ref.get("path", "")
    yield from checks.needed(f"{path}.key", key, names.env_name_problems)
    yield from checks.needed(f"{path}.volumeName", volume, names.label_problems)
    if volume not in volumes:
        yield causes.missing(f"{path}.volumeName", volume)
    elif "emptyDir" not in volumes[volume]:
        why = "referenced volume must be of type emptyDir"
        yield causes.invalid(f"{path}.volumeName", volume, why)
    if not file:
        yield causes.required(f"{path}.path")
    else:
        yield from paths.no_backsteps(f"{path}.path", file)


def validate_env_from(path: str, sources: list[Object]) -> Causes:
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if prefix := source.get("prefix"):
            yield from each(f"{at}.prefix", prefix, names.env_name_problems(prefix))
        refs = [name for name in ("configMapRef", "secretRef") if name in source]
        for ref in refs:
            name = source[ref].get("name", "")
            yield from checks.needed(f"{at}.{ref}.name", name, names.subdomain_problems)
        if not refs:
            yield causes.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(refs) > 1:
            yield causes.invalid(path, "", "may not have more than one field specified at a time")
