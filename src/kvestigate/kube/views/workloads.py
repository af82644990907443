"""What makes pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs."""

from __future__ import annotations

from datetime import datetime

from kvestigate.kube.views.meta import Condition, LabelSelector, Metadata, ObjectReference, View
from kvestigate.kube.views.pods import PodTemplate
from kvestigate.kube.views.storage import PersistentVolumeClaim


class Strategy(View, frozen=True):
    type: str = ""


class DeploymentSpec(View, frozen=True):
    replicas: int = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    strategy: Strategy = Strategy()
    paused: bool = False


class DeploymentStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(View, frozen=True):
    replicas: int = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSetStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(View, frozen=True):
    replicas: int = 1
    selector: LabelSelector | None = None
    service_name: str = ""
    template: PodTemplate = PodTemplate()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    update_strategy: Strategy = Strategy()


class StatefulSetStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Condition, ...] = ()


class StatefulSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(View, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    update_strategy: Strategy = Strategy()


class DaemonSetStatus(View, frozen=True):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    number_misscheduled: int = 0
    updated_number_scheduled: int = 0
    conditions: tuple[Condition, ...] = ()


class DaemonSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(View, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    """None: done when one pod has succeeded and none is left."""
    completion_mode: str = ""
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(View, frozen=True):
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()


class CronJobSpec(View, frozen=True):
    schedule: str = ""
    time_zone: str = ""
    suspend: bool = False
    concurrency_policy: str = "Allow"
    job_template: JobTemplate = JobTemplate()


class CronJobStatus(View, frozen=True):
    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
