"""From a SkyPilot task document to a `Task`; every mistake is named with its path. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kvestigate.errors import InputError
from kvestigate.jobs.tasks import amounts
from kvestigate.jobs.tasks.limits import read_limits
from kvestigate.jobs.tasks.model import Resources, Task, Upload
from kvestigate.jobs.tasks.strict import known_fields, mapping
from kvestigate.kube.names import env_name_problems, label_value_problems, qualified_name_problems

TASK_FIELDS = frozenset(
    [
        "name",
        "num_nodes",
        "workdir",
        "resources",
        "envs",
        "secrets",
        "file_mounts",
        "volumes",
        "setup",
        "run",
        "config",
    ]
)
TASK_WITHOUT_EFFECT = frozenset(["experimental", "event_callback", "inputs", "outputs"])
RESOURCE_FIELDS = frozenset(
    [
        "cpus",
        "memory",
        "accelerators",
        "gpus",
        "instance_type",
        "use_spot",
        "disk_size",
        "ports",
        "image_id",
        "labels",
        "any_of",
        "ordered",
    ]
)
RESOURCES_WITHOUT_EFFECT = frozenset(
    [
        "infra",
        "cloud",
        "region",
        "zone",
        "accelerator_args",
        "disk_tier",
        "network_tier",
        "autostop",
        "job_recovery",
        "spot_recovery",
        "priority",
        "max_hourly_cost",
        "local_disk",
    ]
)
WORKDIR = "~/sky_workdir"
"""Where SkyPilot puts an uploaded working directory."""

_MOST_NODES = 1000


def with_variables(
    document: Any, *, envs: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, Any]:
    """The document with `envs` and `secrets` from elsewhere on top of its own."""
    changed = dict(_task(document))
    for key, given in (("envs", envs), ("secrets", secrets)):
        if given:
            changed[key] = {**mapping(changed.get(key), key), **given}
    return changed


def parse_task(document: Any) -> Task:
    """The task that a document means."""
    document = _task(document)
    known_fields(document, TASK_FIELDS | TASK_WITHOUT_EFFECT, "")
    workdir, uploads = _files(document)
    choices, ignored = _resources(document.get("resources"))
    limits, unused = read_limits(document.get("config"))
    run = _text(document, "run")
    if not run.strip():
        raise InputError("run: the field is required", hint="write the command under `run:`")
    return Task(
        run=run,
        name=_text(document, "name"),
        num_nodes=_nodes(document.get("num_nodes")),
        workdir=workdir,
        uploads=uploads,
        choices=choices,
        envs=_variables(document.get("envs"), "envs", "--env"),
        secrets=_variables(document.get("secrets"), "secrets", "--secret"),
        volumes=_volumes(document.get("volumes")),
        setup=_text(document, "setup"),
        limits=limits,
        without_effect=(
            *(key for key in document if key in TASK_WITHOUT_EFFECT),
            *ignored,
            *unused,
        ),
    )


def _task(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InputError("a task is a mapping of fields", hint="a task needs at least `run:`")
    return document


def _files(document: Mapping[str, Any]) -> tuple[str, tuple[Upload, ...]]:
    """The working directory in the container, and what has to be uploaded."""
    uploads = [
        _upload(target, source)
        for target, source in mapping(document.get("file_mounts"), "file_mounts").items()
    ]
    workdir = document.get("workdir")
    if isinstance(workdir, dict):
        raise InputError("workdir: a repository cannot be cloned", hint="clone it in `setup`")
    workdir = _text(document, "workdir")
    if not workdir or workdir.startswith("/"):
        return workdir, tuple(uploads)
    return WORKDIR, (Upload(workdir, WORKDIR, "workdir"), *uploads)


def _upload(target: str, source: Any) -> Upload:
    where = f"file_mounts.{target}"
    if not isinstance(source, str) or "://" in source or not source:
        raise InputError(
            f"{where}: only local files and directories can be mounted, not {source!r}",
            hint="fetch from a bucket in `setup`, onto a volume to keep it",
        )
    if not target.startswith(("/", "~/")) or not target.strip("/~"):
        raise InputError(f"{where}: the target is not absolute", hint=f"write ~/{target}")
    return Upload(source, target, where)


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise InputError(f"{key}: {value!r} is not text")
    if "\0" in value:
        raise InputError(f"{key}: holds a NUL character")
    return value


def _nodes(value: Any) -> int:
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_NODES:
        raise InputError(f"num_nodes: {value!r} is not a whole number from 1 to {_MOST_NODES}")
    return value


def _variables(value: Any, path: str, flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, inner in mapping(value, path).items():
        if problems := env_name_problems(name):
            raise InputError(f"{path}.{name}: {problems[0]}")
        if inner is None:
            raise InputError(f"{path}.{name}: has no value", hint=f"give one: {flag} {name}=VALUE")
        if isinstance(inner, bool):
            inner = "true" if inner else "false"
        if not isinstance(inner, str | int | float):
            raise InputError(f"{path}.{name}: {inner!r} is not text")
        found[name] = str(inner)
    return found


def _volumes(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, name in mapping(value, "volumes").items():
        if not path.startswith("/") or ":" in path:
            raise InputError(f"volumes.{path}: the path is not absolute, or has a colon")
        if not isinstance(name, str) or not name:
            raise InputError(f"volumes.{path}: {name!r} is not the name of a volume")
        found[path] = name
    return found


def _resources(value: Any) -> tuple[tuple[Resources, ...], list[str]]:
    document = mapping(value, "resources")
    ignored: list[str] = []
    base = _one(document, "resources", ignored)
    choices: list[Resources] = []
    for key in ("any_of", "ordered"):
        inner = document.get(key)
        if inner is None:
            continue
        if not isinstance(inner, list) or not inner:
            raise InputError(f"resources.{key}: {inner!r} is not a list of resources")
        shared = {k: v for k, v in document.items() if k not in ("any_of", "ordered")}
        for index, candidate in enumerate(inner):
            path = f"resources.{key}[{index}]"
            if nested := {"any_of", "ordered"} & mapping(candidate, path).keys():
                raise InputError(f"{path}.{nested.pop()}: candidates have no candidates")
            choices += _one({**shared, **mapping(candidate, path)}, path, ignored)
    return tuple(choices or base), list(dict.fromkeys(ignored))


def _one(document: Mapping[str, Any], path: str, ignored: list[str]) -> list[Resources]:
    """One candidate, or several where it names several accelerators."""
    known_fields(document, RESOURCE_FIELDS | RESOURCES_WITHOUT_EFFECT, f"{path}.")
    ignored += [f"{path}.{key}" for key in document if key in RESOURCES_WITHOUT_EFFECT]
    made = Resources(
        use_spot=_flag(document, "use_spot", path),
        instance_type=_label(document.get("instance_type"), f"{path}.instance_type"),
        labels=_labels(document.get("labels"), f"{path}.labels"),
        **_given(document, path),
    )
    key = "accelerators" if document.get("accelerators") is not None else "gpus"
    if document.get(key) is None:
        return [made]
    found = amounts.accelerators(document[key], f"{path}.{key}")
    return [replace(made, accelerator=each) for each in found]


def _given(document: Mapping[str, Any], path: str) -> dict[str, Any]:
    readers: Mapping[str, tuple[str, Callable[[Any, str], Any]]] = {
        "cpus": ("cpus", amounts.cpus),
        "memory": ("memory", amounts.memory),
        "disk_size": ("disk", amounts.disk),
        "ports": ("ports", amounts.ports),
        "image_id": ("image", _image),
    }
    return {
        name: read(document[key], f"{path}.{key}")
        for key, (name, read) in readers.items()
        if document.get(key) is not None
    }


def _image(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or any(map(str.isspace, value)):
        raise InputError(
            f"{value!r} is no container image", where=where, hint="write python:3.13-slim"
        )
    return value.removeprefix("docker:")


def _flag(document: Mapping[str, Any], key: str, path: str) -> bool:
    value = document.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{path}.{key}: {value!r} is neither true nor false")
    return bool(value)


def _label(value: Any, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or label_value_problems(value):
        raise InputError(f"{value!r} cannot be the value of a label", where=where)
    return value


def _labels(value: Any, path: str) -> dict[str, str]:
    found = {}
    for key, inner in mapping(value, path).items():
        if problems := qualified_name_problems(key):
            raise InputError(f"{path}.{key}: {problems[0]}")
        found[key] = _label(str(inner), f"{path}.{key}")
    return found
