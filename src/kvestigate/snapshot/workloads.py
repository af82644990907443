"""What makes and keeps pods, as a snapshot keeps it: what is wanted, and what was reached."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views.meta import Condition, LabelSelector, View
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate.snapshot.meta import WrittenMeta
from kvestigate.snapshot.pods import PodTemplate


class DeploymentSpec(View, frozen=True):
    replicas: int = 1
    paused: bool = False
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    progress_deadline_seconds: int = 600
    min_ready_seconds: int = 0


class DeploymentStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(View, frozen=True):
    replicas: int = 1
    template: PodTemplate = PodTemplate()
    min_ready_seconds: int = 0


class ReplicaSetStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(View, frozen=True):
    """Also a ReplicationController, which has the same fields."""

    metadata: WrittenMeta = WrittenMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdate(View, frozen=True):
    partition: int = 0


class UpdateStrategy(View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class StatefulSetSpec(View, frozen=True):
    replicas: int = 1
    service_name: str = ""
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    update_strategy: UpdateStrategy = UpdateStrategy()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    min_ready_seconds: int = 0
    pod_management_policy: str = "OrderedReady"


class StatefulSetStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Condition, ...] = ()


class StatefulSet(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(View, frozen=True):
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0


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
    metadata: WrittenMeta = WrittenMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(View, frozen=True):
    suspend: bool = False
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(View, frozen=True):
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    failed_indexes: str = ""
    """Of a Job with an index for each pod: `1,3-5`."""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(View, frozen=True):
    spec: JobSpec = JobSpec()


class CronJobSpec(View, frozen=True):
    schedule: str = ""
    time_zone: str = ""
    suspend: bool = False
    concurrency_policy: str = "Allow"
    starting_deadline_seconds: int | None = None
    job_template: JobTemplate = JobTemplate()


class JobReference(View, frozen=True):
    name: str = ""
    namespace: str = ""


class CronJobStatus(View, frozen=True):
    active: tuple[JobReference, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class ScaleTarget(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricTarget(View, frozen=True):
    type: str = ""
    average_utilization: int | None = None


class ResourceMetric(View, frozen=True):
    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()


class Metric(View, frozen=True):
    type: str = ""
    """`Resource`, `ContainerResource`, `Pods`, `Object` or `External`."""
    resource: ResourceMetric | None = None
    container_resource: ResourceMetric | None = None


class AutoscalerSpec(View, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int = 1
    max_replicas: int = 0
    metrics: tuple[Metric, ...] = ()


class AutoscalerStatus(View, frozen=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: datetime | None = None
    conditions: tuple[Condition, ...] = field(default=())


class Autoscaler(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: AutoscalerSpec = AutoscalerSpec()
    status: AutoscalerStatus = AutoscalerStatus()
