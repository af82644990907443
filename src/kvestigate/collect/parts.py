"""The parts of workloads that a record is made of. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, field

from kvestigate.kube.views.meta import View
from kvestigate.kube.views.placement import NodeAffinity
from kvestigate.kube.views.pods import ResourceRequirements


class Meta(View, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Identified(View, frozen=True):
    """Any object, seen by its metadata alone."""

    metadata: Meta = Meta()


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    """`Always` on an init container makes it a sidecar."""


class Affinity(View, frozen=True):
    node_affinity: NodeAffinity | None = None


class PodSpec(View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    overhead: dict[str, str] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volumes: tuple[dict[str, Any], ...] = ()
    """Only the keys are read: a name and the type of the source."""
    runtime_class_name: str = ""


class PodTemplate(View, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()


_NOTHING = Raw(b"{}")


class TemplatedSpec(View, frozen=True):
    template: Raw = _NOTHING
    """A `PodTemplate`, unread: most events leave it as it was."""
    parallelism: int | None = None
    completions: int | None = None


class Templated(View, frozen=True):
    """Deployment, StatefulSet, DaemonSet, ReplicaSet, Job."""

    metadata: Meta = Meta()
    spec: TemplatedSpec = TemplatedSpec()


class JobTemplate(View, frozen=True):
    spec: TemplatedSpec = TemplatedSpec()


class CronSpec(View, frozen=True):
    job_template: JobTemplate = JobTemplate()


class CronJob(View, frozen=True):
    metadata: Meta = Meta()
    spec: CronSpec = CronSpec()


class Pod(View, frozen=True):
    metadata: Meta = Meta()
    spec: Raw = _NOTHING
    """A `PodSpec`, unread."""
