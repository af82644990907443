"""The scenarios that come with the package, and those in files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from kvestigate.cluster.scenarios.model import Scenario, parse
from kvestigate.cluster.scenarios.node_objects import node_objects
from kvestigate.cluster.scenarios.nodes import nodes
from kvestigate.cluster.scenarios.objects import objects
from kvestigate.errors import InputError, UsageError
from kvestigate.kube.documents import one_document
from kvestigate.kube.yaml_scalars import Dialect

_SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True)
class Source:
    """A scenario as it was written."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    nodes: int
    gpus: int
    objects: int
    summary: str


def names() -> list[str]:
    files = (file.name for file in resources.files(__package__).joinpath("shipped").iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))


def listed() -> list[Listed]:
    return [_listed(checked(find(name))) for name in names()]


def find(name_or_file: str) -> Source:
    """By name, or from a file: whatever has a slash or a suffix is one."""
    if "/" in name_or_file or name_or_file.endswith((".yaml", ".yml", ".json")):
        try:
            return Source(name_or_file, Path(name_or_file).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=name_or_file, hint="check the path"
            ) from error
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8 text", where=name_or_file) from error
    if name_or_file not in names():
        raise UsageError(
            f'scenario "{name_or_file}" does not exist',
            hint=f"use one of {', '.join(names())}, or the path of a file: ./{name_or_file}.yaml",
        )
    file = resources.files(__package__).joinpath("shipped", f"{name_or_file}{_SUFFIX}")
    return Source(name_or_file, file.read_text(encoding="utf-8"))


def checked(source: Source) -> Scenario:
    """The scenario, validated with everything that would be made from it."""
    # A scenario is an object of Kubernetes' form, with manifests in it.
    file = one_document(source.text.encode(), source.name, "scenario", Dialect.KUBECTL)
    with file.mistakes():
        scenario = parse(file)
        nodes(scenario)
        objects(scenario)
    return scenario


def objects_of(name: str) -> list[dict[str, Any]]:
    """The nodes and objects of a scenario that comes with the package; never those of a file."""
    if name not in names():
        known = ", ".join(names())
        raise UsageError(f'scenario "{name}" does not exist; use one of {known}')
    scenario = checked(find(name))
    return [*node_objects(scenario), *objects(scenario)]


def _listed(scenario: Scenario) -> Listed:
    plans = nodes(scenario)
    gpus = sum(len(plan.config.gpus) for plan in plans)
    made = len(objects(scenario))
    return Listed(scenario.name, len(plans), gpus, made, scenario.spec.summary)
