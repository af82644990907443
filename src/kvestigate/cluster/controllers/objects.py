"""Objects as their controllers read and write them: workloads with the whole template.

The views of `kube.views` hold what reports read; these hold what a controller writes too, so a
status here has every field that its controller sets.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from kvestigate.kube.views.meta import Condition, Metadata, ObjectReference, View

Template = dict[str, Any]
"""A pod or job template as it is on the wire; never changed in place."""
Selector = dict[str, Any]

IntOrPercent = int | str


class RollingUpdate(View, frozen=True):
    max_surge: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None
    partition: int = 0
    """Of StatefulSets: ordinals below keep the old revision."""


class Strategy(View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class ReplicaSetSpec(View, frozen=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: Selector = field(default_factory=dict)
    template: Template = field(default_factory=dict)


class ReplicaSetStatus(View, frozen=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicationControllerSpec(View, frozen=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    labels: dict[str, str] = field(name="selector", default_factory=dict)
    template: Template = field(default_factory=dict)

    @property
    def selector(self) -> Selector:
        """The selector as ReplicaSets write it; empty if there are no labels."""
        return {"matchLabels": self.labels} if self.labels else {}


class ReplicationController(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class DeploymentSpec(View, frozen=True):
    replicas: int = 1
    selector: Selector = field(default_factory=dict)
    template: Template = field(default_factory=dict)
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    """None keeps every old ReplicaSet."""
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DatedCondition(Condition, frozen=True):
    last_update_time: datetime | None = None


class DeploymentStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[DatedCondition, ...] = ()
    collision_count: int | None = None


class Deployment(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ControllerRevision(View, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, Any] = field(default_factory=dict)
    revision: int = 0


class Ordinals(View, frozen=True):
    start: int = 0


class RetentionPolicy(View, frozen=True):
    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetSpec(View, frozen=True):
    replicas: int = 1
    selector: Selector = field(default_factory=dict)
    template: Template = field(default_factory=dict)
    volume_claim_templates: tuple[dict[str, Any], ...] = ()
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: Strategy = Strategy()
    revision_history_limit: int = 10
    min_ready_seconds: int = 0
    ordinals: Ordinals = Ordinals()
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()


class StatefulSetStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class StatefulSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(View, frozen=True):
    selector: Selector = field(default_factory=dict)
    template: Template = field(default_factory=dict)
    update_strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class DaemonSetStatus(View, frozen=True):
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ExitCodes(View, frozen=True):
    container_name: str = ""
    operator: str = ""
    values: tuple[int, ...] = ()


class ConditionPattern(View, frozen=True):
    type: str = ""
    status: str = "True"


class FailureRule(View, frozen=True):
    action: str = ""
    """`FailJob`, `FailIndex`, `Ignore` or `Count`."""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[ConditionPattern, ...] = ()


class FailurePolicy(View, frozen=True):
    rules: tuple[FailureRule, ...] = ()


class SuccessRule(View, frozen=True):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(View, frozen=True):
    rules: tuple[SuccessRule, ...] = ()


class JobSpec(View, frozen=True):
    parallelism: int = 1
    completions: int | None = None
    """None: done when one pod has succeeded and none is left."""
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    selector: Selector = field(default_factory=dict)
    template: Template = field(default_factory=dict)
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str = ""
    managed_by: str = ""


class UncountedPods(View, frozen=True):
    """Pods whose end is noted but not yet in the counters: by uid."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobCondition(Condition, frozen=True):
    last_probe_time: datetime | None = None


class JobStatus(View, frozen=True):
    conditions: tuple[JobCondition, ...] = ()
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    ready: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None


class Job(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(View, frozen=True):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: Template = field(default_factory=dict)
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class CronJobStatus(View, frozen=True):
    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class ScopeTerm(View, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(View, frozen=True):
    match_expressions: tuple[ScopeTerm, ...] = ()


class ResourceQuotaSpec(View, frozen=True):
    hard: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()


class ResourceQuotaStatus(View, frozen=True):
    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class ResourceQuota(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class ScaleTarget(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricTarget(View, frozen=True):
    type: str = ""
    average_utilization: int | None = None
    average_value: str | None = None


class ResourceMetric(View, frozen=True):
    name: str = ""
    target: MetricTarget = MetricTarget()


class ContainerMetric(View, frozen=True):
    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()


class Metric(View, frozen=True):
    type: str = ""
    resource: ResourceMetric | None = None
    container_resource: ContainerMetric | None = None


class ScalingPolicy(View, frozen=True):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(View, frozen=True):
    stabilization_window_seconds: int | None = None
    select_policy: str = "Max"
    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: str | None = None


class Behavior(View, frozen=True):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HorizontalPodAutoscalerSpec(View, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int = 1
    max_replicas: int = 1
    metrics: tuple[Metric, ...] = ()
    behavior: Behavior | None = None


class MetricValue(View, frozen=True):
    average_utilization: int | None = None
    average_value: str | None = None


class ResourceMetricStatus(View, frozen=True):
    name: str = ""
    current: MetricValue = MetricValue()


class ContainerMetricStatus(View, frozen=True):
    name: str = ""
    container: str = ""
    current: MetricValue = MetricValue()


class MetricStatus(View, frozen=True):
    type: str
    """Empty, and nothing else there, for a metric that is not known: it has its place."""
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerMetricStatus | None = None


class HorizontalPodAutoscalerStatus(View, frozen=True):
    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[MetricStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class HorizontalPodAutoscaler(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


class CertificateData(View, frozen=True):
    certificate: str = field(name="ca.crt", default="")


class RootCertificate(View, frozen=True):
    """A ConfigMap, of which only the one entry is kept."""

    metadata: Metadata = Metadata()
    data: CertificateData = CertificateData()


class SigningRequestSpec(View, frozen=True):
    request: str = ""
    """Base64 of PEM."""
    signer_name: str = ""
    usages: tuple[str, ...] = ()
    expiration_seconds: int | None = None
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


class SigningRequestStatus(View, frozen=True):
    conditions: tuple[DatedCondition, ...] = ()
    certificate: str = ""
    """Base64 of PEM."""


class SigningRequest(View, frozen=True):
    """A CertificateSigningRequest."""

    metadata: Metadata = Metadata()
    spec: SigningRequestSpec = SigningRequestSpec()
    status: SigningRequestStatus = SigningRequestStatus()


class ResourceClaimTemplate(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: Template = field(default_factory=dict)


class ApiServiceReference(View, frozen=True):
    namespace: str = ""
    name: str = ""
    port: int = 443


class ApiServiceSpec(View, frozen=True):
    group: str = ""
    version: str = ""
    service: ApiServiceReference | None = None
    """None: the API server serves the group itself."""


class ApiServiceStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class ApiService(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ApiServiceSpec = ApiServiceSpec()
    status: ApiServiceStatus = ApiServiceStatus()
