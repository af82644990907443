"""Which kinds have pods in them, and where. Pure.

Built-in kinds are known; any other is given with the path to its pod templates, as
`kubeflow.org/v1/PyTorchJob:.spec.pytorchReplicaSpecs.*.template`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kvestigate.errors import UsageError


class Shape(enum.Enum):
    """Where the pod template is."""

    POD = "pod"
    TEMPLATE = "template"
    CRON = "cron"
    PATH = "path"


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    name: str
    group: str
    version: str
    shape: Shape
    path: tuple[str, ...] = ()
    """For `Shape.PATH`: keys from the object to its templates; `*` is every key or item."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


BUILT_IN = {
    kind.name: kind
    for kind in (
        WorkloadKind("Deployment", "apps", "v1", Shape.TEMPLATE),
        WorkloadKind("Job", "batch", "v1", Shape.TEMPLATE),
        WorkloadKind("CronJob", "batch", "v1", Shape.CRON),
        WorkloadKind("Pod", "", "v1", Shape.POD),
        WorkloadKind("StatefulSet", "apps", "v1", Shape.TEMPLATE),
        WorkloadKind("DaemonSet", "apps", "v1", Shape.TEMPLATE),
        WorkloadKind("ReplicaSet", "apps", "v1", Shape.TEMPLATE),
    )
}

DEFAULT = ("Deployment", "Job", "CronJob")

_KIND_PATH = re.compile(r"(?:([^/:]+)/)?([^/:]+)/([^/:.]+):\.?([^.]+(?:\.[^.]+)*)")


def parse_kind_path(text: str) -> WorkloadKind:
    """`GROUP/VERSION/KIND:PATH`; without the group for a core kind."""
    match = _KIND_PATH.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--kind-path: {text!r} is not GROUP/VERSION/KIND:PATH",
            hint="write kubeflow.org/v1/PyTorchJob:.spec.pytorchReplicaSpecs.*.template",
        )
    group, version, name, path = match.groups(default="")
    return WorkloadKind(name, group, version, Shape.PATH, tuple(path.split(".")))


def chosen(names: Iterable[str], custom: Iterable[WorkloadKind] = ()) -> tuple[WorkloadKind, ...]:
    """The kinds of these names, then the custom ones; each once."""
    chosen_kinds: dict[WorkloadKind, None] = {}
    for name in names:
        kind = next(
            (known for known in BUILT_IN.values() if known.name.lower() == name.lower()),
            None,
        )
        if kind is None:
            raise UsageError(
                f"--kinds: {name!r} is not a known kind of workload",
                hint=f"known kinds: {', '.join(BUILT_IN)}; --kind-path adds others",
            )
        chosen_kinds[kind] = None
    chosen_kinds.update(dict.fromkeys(custom))
    return tuple(chosen_kinds)


def kind_of(
    api_version: str, name: str, custom: Iterable[WorkloadKind] = ()
) -> WorkloadKind | None:
    """The kind of a manifest, in whichever version it is written; None if it has no pods."""
    group = api_version.rpartition("/")[0]
    if group == "extensions":  # where apps was before it had a group of its own
        group = "apps"
    for kind in (*custom, *BUILT_IN.values()):
        if (kind.group, kind.name) == (group, name):
            return kind
    return None
