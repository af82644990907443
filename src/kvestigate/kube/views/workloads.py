"""What makes pods: Deployments, StatefulSets, DaemonSets and Jobs."""

from __future__ import annotations

from datetime import datetime

from kvestigate.kube.views.meta import Condition, Metadata, View
from kvestigate.kube.views.pods import PodTemplate


class DeploymentSpec(View, frozen=True):
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class DeploymentStatus(View, frozen=True):
    ready_replicas: int = 0
    updated_replicas: int = 0


class Deployment(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class StatefulSetSpec(View, frozen=True):
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class StatefulSetStatus(View, frozen=True):
    ready_replicas: int = 0
    updated_replicas: int = 0


class StatefulSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(View, frozen=True):
    template: PodTemplate = PodTemplate()


class DaemonSetStatus(View, frozen=True):
    desired_number_scheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(View, frozen=True):
    template: PodTemplate = PodTemplate()


class JobStatus(View, frozen=True):
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    """Pods that are being deleted; None if the server does not count them."""
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
