"""From a SkyPilot task document to a `Task`; every mistake is named with its path. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from kvestigate.errors import InputError
from kvestigate.jobs.tasks import amounts
from kvestigate.jobs.tasks.limits import Config, ignored_config
from kvestigate.jobs.tasks.model import (
    DEFAULT_IMAGE,
    Accelerator,
    Amount,
    Recovery,
    Resources,
    Task,
    Upload,
)
from kvestigate.kube.documents import known_fields, mapping, read
from kvestigate.kube.names import env_name_problems, label_value_problems, qualified_name_problems

WORKDIR = "~/sky_workdir"
"""Where SkyPilot puts an uploaded working directory."""

_MOST_NODES = 1000
_MOST_RESTARTS = 1000
_RECOVERY = ("strategy", "max_restarts_on_errors", "recover_on_exit_codes")
_FILLED = ("file_mounts", "workdir", "volumes", "service")
"""The fields in which SkyPilot puts the values of `envs` for `${NAME}` and `$NAME`."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def _nodes(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_NODES:
        raise InputError(f"{value!r} is not a whole number from 1 to {_MOST_NODES}", where=path)
    return value


def _workdir(value: Any, path: str) -> str:
    if isinstance(value, dict):
        raise InputError(
            "a repository cannot be cloned", where=path, hint="clone the repository in `setup`"
        )
    if not isinstance(value, str):
        raise InputError(f"{value!r} is not a directory", where=path)
    return value


def _uploads(value: Any, path: str) -> tuple[Upload, ...]:
    return tuple(
        _upload(target, source, f"{path}.{target}")
        for target, source in mapping(value, path).items()
    )


def _upload(target: str, source: Any, where: str) -> Upload:
    if not isinstance(source, str) or "://" in source or not source:
        raise InputError(
            f"only local files and directories can be mounted, not {source!r}",
            where=where,
            hint="fetch from a bucket in `setup`, onto a volume to keep it",
        )
    if not target.startswith(("/", "~/")) or not target.strip("/~"):
        raise InputError("the target is not absolute", where=where, hint=f"write ~/{target}")
    return Upload(source, target, where)


def _variables(value: Any, path: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    for name, inner in mapping(value, path).items():
        where = f"{path}.{name}"
        if problems := env_name_problems(name):
            raise InputError(problems[0], where=where)
        if inner is None:
            flag = f"--{path.removesuffix('s')}"  # --env for envs, --secret for secrets
            raise InputError("has no value", where=where, hint=f"give one: {flag} {name}=VALUE")
        if not isinstance(inner, str | int | float):
            raise InputError(f"{inner!r} is not text", where=where)
        variables[name] = str(inner)  # SkyPilot's rule too: `true` is True, 1.10 is 1.1
    return variables


def _volumes(value: Any, path: str) -> dict[str, str]:
    volumes: dict[str, str] = {}
    for target, name in mapping(value, path).items():
        where = f"{path}.{target}"
        if not target.startswith("/") or ":" in target:
            raise InputError("the path is not absolute, or has a colon", where=where)
        if not isinstance(name, str) or not name:
            raise InputError(f"{name!r} is not the name of a volume", where=where)
        volumes[target] = name
    return volumes


def _image(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value.strip() or any(map(str.isspace, value)):
        raise InputError(
            f"{value!r} is not a container image", where=path, hint="write python:3.13-slim"
        )
    return value.removeprefix("docker:")


def _label(value: Any, path: str) -> str:
    if not isinstance(value, str) or label_value_problems(value):
        raise InputError(f"{value!r} cannot be the value of a label", where=path)
    return value


def _labels(value: Any, path: str) -> dict[str, str]:
    labels = {}
    for key, inner in mapping(value, path).items():
        if problems := qualified_name_problems(key):
            raise InputError(problems[0], where=f"{path}.{key}")
        labels[key] = _label(str(inner), f"{path}.{key}")
    return labels


def _recovery(value: Any, path: str) -> Recovery:
    """`{max_restarts_on_errors: 3, recover_on_exit_codes: [33]}`, or a strategy alone."""
    if isinstance(value, str):
        return Recovery()
    fields = mapping(value, path)
    known_fields(fields, _RECOVERY, f"{path}.")
    restarts = fields.get("max_restarts_on_errors") or 0
    if isinstance(restarts, bool) or not isinstance(restarts, int) or restarts < 0:
        raise InputError(
            f"{restarts!r} is not a whole number from 0", where=f"{path}.max_restarts_on_errors"
        )
    given = fields.get("recover_on_exit_codes")
    codes = given if isinstance(given, list) else [] if given is None else [given]
    for code in codes:
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 255:
            raise InputError(
                f"{code!r} is not an exit code from 0 to 255", where=f"{path}.recover_on_exit_codes"
            )
    # 0 is success: nothing is to be recovered.
    return Recovery(min(restarts, _MOST_RESTARTS), tuple(sorted({*codes} - {0})))


def _candidates(value: Any, path: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value:
        raise InputError(f"{value!r} is not a list of resources", where=path)
    for index, candidate in enumerate(value):
        where = f"{path}[{index}]"
        if nested := {"any_of", "ordered"} & mapping(candidate, where).keys():
            raise InputError(
                "a candidate cannot have candidates of its own", where=f"{where}.{nested.pop()}"
            )
    return tuple(mapping(candidate, path) for candidate in value)


_KUBERNETES = frozenset({"kubernetes", "k8s", "*"})


@dataclass(frozen=True, slots=True)
class _ResourcesFields:
    """The fields of `resources`, and of each of its candidates."""

    IGNORED: ClassVar[Collection[str]] = (
        "infra",
        "cloud",
        "region",
        "zone",
        "accelerator_args",
        "disk_tier",
        "network_tier",
        "autostop",
        "spot_recovery",
        "priority",
        "priority_class",
        "ephemeral_storage",
        "volumes",
        "max_hourly_cost",
        "local_disk",
    )
    cpus: Annotated[Amount | None, amounts.cpus] = None
    memory: Annotated[Amount | None, amounts.memory] = None
    accelerators: Annotated[tuple[Accelerator, ...], amounts.accelerators] = ()
    gpus: Annotated[tuple[Accelerator, ...], amounts.accelerators] = ()
    instance_type: Annotated[str, _label] = ""
    use_spot: bool = False
    disk_size: Annotated[str, amounts.disk] = ""
    ports: Annotated[tuple[int, ...], amounts.ports] = ()
    image_id: Annotated[str, _image] = DEFAULT_IMAGE
    labels: Annotated[Mapping[str, str], _labels] = field(default_factory=dict)
    job_recovery: Annotated[Recovery, _recovery] = field(default_factory=Recovery)
    any_of: Annotated[tuple[Mapping[str, Any], ...], _candidates] = ()
    ordered: Annotated[tuple[Mapping[str, Any], ...], _candidates] = ()

    def choices(self) -> list[Resources]:
        """One choice, or several where several accelerators are named."""
        resources = Resources(
            cpus=self.cpus,
            memory=self.memory,
            instance_type=self.instance_type,
            use_spot=self.use_spot,
            disk=self.disk_size,
            ports=self.ports,
            image=self.image_id,
            labels=self.labels,
            recovery=self.job_recovery,
        )
        accelerators = self.accelerators or self.gpus
        return [replace(resources, accelerator=one) for one in accelerators] or [resources]


@dataclass(frozen=True, slots=True)
class _TaskFields:
    IGNORED: ClassVar[Collection[str]] = (
        "experimental",
        "event_callback",
        "inputs",
        "outputs",
        "service",
        "pool",
        "managed_secrets",
        "api_server_access",
    )
    run: str = ""
    name: str = ""
    num_nodes: Annotated[int, _nodes] = 1
    workdir: Annotated[str, _workdir] = ""
    resources: _ResourcesFields = field(default_factory=_ResourcesFields)
    envs: Annotated[Mapping[str, str], _variables] = field(default_factory=dict)
    secrets: Annotated[Mapping[str, str], _variables] = field(default_factory=dict)
    file_mounts: Annotated[tuple[Upload, ...], _uploads] = ()
    volumes: Annotated[Mapping[str, str], _volumes] = field(default_factory=dict)
    setup: str = ""
    config: Config = field(default_factory=Config)

    def __post_init__(self) -> None:
        if not self.run.strip():
            raise InputError(
                "the field is required", where="run", hint="write the command under `run:`"
            )
        for name in ("run", "name", "workdir", "setup"):
            if "\0" in getattr(self, name):
                raise InputError("contains a NUL character", where=name)


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
    document = _filled(_task(document))
    fields = read(_TaskFields, document)
    workdir, uploads = fields.workdir, fields.file_mounts
    if workdir and not workdir.startswith("/"):
        uploads = (Upload(workdir, WORKDIR, "workdir"), *uploads)
        workdir = WORKDIR
    ignored = [key for key in _TaskFields.IGNORED if document.get(key) is not None]
    choices = _choices(mapping(document.get("resources"), "resources"), fields.resources, ignored)
    return Task(
        run=fields.run,
        name=fields.name,
        num_nodes=fields.num_nodes,
        workdir=workdir,
        uploads=uploads,
        choices=choices,
        envs=fields.envs,
        secrets=fields.secrets,
        volumes=fields.volumes,
        setup=fields.setup,
        limits=fields.config.limits,
        ignored=(*dict.fromkeys(ignored), *ignored_config(document)),
    )


def _task(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InputError("a task is a mapping of fields", hint="a task needs at least `run:`")
    return document


def _choices(
    document: Mapping[str, Any], resources: _ResourcesFields, ignored: list[str]
) -> tuple[Resources, ...]:
    """The candidates of `any_of` and `ordered`, each on top of the fields that all share."""
    shared = {key: value for key, value in document.items() if key not in ("any_of", "ordered")}
    ignored += _ignored(document, "resources")
    choices: list[Resources] = []
    for key, candidates in (("any_of", resources.any_of), ("ordered", resources.ordered)):
        for index, candidate in enumerate(candidates):
            path = f"resources.{key}[{index}]"
            merged = {**shared, **candidate}
            choices += read(_ResourcesFields, merged, path).choices()
            ignored += _ignored(merged, path)
    return tuple(choices or resources.choices())


def _ignored(document: Mapping[str, Any], path: str) -> list[str]:
    ignored = [
        f"{path}.{key}"
        for key in _ResourcesFields.IGNORED
        if (value := document.get(key)) is not None and not _is_kubernetes(key, value)
    ]
    recovery = document.get("job_recovery")
    if isinstance(recovery, str):
        ignored.append(f"{path}.job_recovery")
    elif isinstance(recovery, Mapping) and recovery.get("strategy") is not None:
        ignored.append(f"{path}.job_recovery.strategy")  # regions, which a cluster has none of
    return ignored


def _is_kubernetes(key: str, value: Any) -> bool:
    """Whether a field asks for a Kubernetes cluster, whichever: that is what a task gets."""
    return key in ("cloud", "infra") and str(value).lower() in _KUBERNETES


def _filled(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the values of `envs` where some of its fields name them."""
    envs = document.get("envs")
    if not isinstance(envs, Mapping):
        return document
    values = {str(name): str(value) for name, value in envs.items() if value is not None}

    def value_of(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2], match[0])

    def fill(part: Any) -> Any:
        if isinstance(part, str):
            return _VARIABLE.sub(value_of, part)
        if isinstance(part, Mapping):
            return {fill(key): fill(inner) for key, inner in part.items()}
        return [fill(inner) for inner in part] if isinstance(part, list) else part

    return document | {key: fill(document[key]) for key in _FILLED if key in document}
