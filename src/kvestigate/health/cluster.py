"""A snapshot as rules read it: objects by name, by owner and by label, and what was said of them.

Pure. An index is made when a rule first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from kvestigate.errors import InputError
from kvestigate.health.model import Subject
from kvestigate.kube import selectors
from kvestigate.kube.views.meta import CondensedMetadata, Condition, LabelSelector
from kvestigate.kube.views.network import EndpointSlice, Service
from kvestigate.kube.views.pods import CondensedContainerStatus
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.objects import Event
from kvestigate.snapshot.pods import Pod, PodSpec
from kvestigate.snapshot.source import Listing, Source
from kvestigate.snapshot.workloads import Job

T = TypeVar("T")
C = TypeVar("C", bound=Condition)

_EQUAL = (selectors.Operator.EQUALS, selectors.Operator.DOUBLE_EQUALS, selectors.Operator.IN)
SERVICE_LABEL = "kubernetes.io/service-name"
_STARTING = timedelta(minutes=5)
"""What is younger may still be on its way."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A workload, with the labels of the pods that it makes."""

    subject: Subject
    labels: dict[str, str]
    spec: PodSpec
    wants_pods: bool
    """False: scaled to 0, suspended or finished."""


class Cluster:
    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now = snapshot.captured_at
        self._named: dict[Source[Any], dict[tuple[str, str], Any]] = {}
        self._topmost_of: dict[tuple[str, str, str], Subject] = {}
        """Kind, name and namespace of a pod's owner -> the workload that the pod belongs to."""

    def of(self, source: Source[T]) -> tuple[T, ...]:
        """All that was read of it; nothing if it could not be read or was not asked for."""
        return self.snapshot.of(source) if self.knows(source) else ()

    def knows(self, *sources: Source[Any]) -> bool:
        return all(source in self.snapshot.listed for source in sources)

    def find(self, listing: Listing[T], name: str, namespace: str = "") -> T | None:
        return self._by_name(listing).get((namespace, name))

    def object(self, subject: Subject) -> Any:
        """The object, if its kind was read and it exists; None otherwise."""
        listing = self._kinds.get(subject.kind)
        return self.find(listing, subject.name, subject.namespace) if listing else None

    def annotations(self, subject: Subject) -> Mapping[str, str]:
        found = self.object(subject)
        return found.metadata.annotations if found is not None else {}

    @cached_property
    def _kinds(self) -> dict[str, Listing[Any]]:
        """Kind -> the listing that has all objects of it."""
        return {
            source.resource.kind: source
            for source in self.snapshot.listed
            if isinstance(source, Listing) and not source.fields
        }

    def lacks(self, listing: Listing[Any], name: str, namespace: str = "") -> bool:
        """Whether it surely does not exist: its kind was read, where it would be, without it."""
        only = self.snapshot.namespace
        read = self.knows(listing) and (not only or not namespace or only == namespace)
        return read and (namespace, name) not in self._by_name(listing)

    def _by_name(self, listing: Listing[T]) -> dict[tuple[str, str], T]:
        if listing not in self._named:
            items: Iterable[Any] = self.of(listing)
            self._named[listing] = {
                (item.metadata.namespace, item.metadata.name): item for item in items
            }
        return self._named[listing]

    def settled(self, moment: datetime | None, within: timedelta = _STARTING) -> bool:
        """Whether something has been so for longer than it may take to change by itself."""
        return moment is not None and self.now - moment >= within

    # Pods and what they belong to

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Those that have not ended for good."""
        return tuple(pod for pod in self.of(listings.PODS) if not pod.finished)

    @cached_property
    def troubled(self) -> tuple[tuple[Pod, CondensedContainerStatus], ...]:
        """Containers that do not run now, or that ended at least once."""
        return tuple(
            (pod, status)
            for pod in self.of(listings.PODS)
            for status in pod.status.all_statuses
            if not status.state.running or status.last_state.terminated or status.restart_count
        )

    def workload(self, pod: Pod) -> Subject:
        """What to edit: the Deployment of a pod, not its ReplicaSet; the pod if it has no owner."""
        namespace = pod.metadata.namespace
        for owner in pod.metadata.owner_references:
            if owner.controller:
                key = (owner.kind, owner.name, namespace)
                if key not in self._topmost_of:
                    self._topmost_of[key] = self._topmost(*key, pod.metadata.labels)
                return self._topmost_of[key]
        return Subject("Pod", pod.metadata.name, namespace)

    def _topmost(self, kind: str, name: str, namespace: str, labels: dict[str, str]) -> Subject:
        listing = _OWNED.get(kind)
        owned = self.find(listing, name, namespace) if listing is not None else None
        for owner in owned.metadata.owner_references if owned is not None else ():
            if owner.controller:
                return Subject(owner.kind, owner.name, namespace)
        # The ReplicaSets could not be read, or this one is gone already.
        hashed = labels.get("pod-template-hash", "")
        if owned is None and kind == "ReplicaSet" and hashed and name.endswith(f"-{hashed}"):
            return Subject("Deployment", name.removesuffix(f"-{hashed}"), namespace)
        return Subject(kind, name, namespace)

    @cached_property
    def _pods_by_workload(self) -> dict[Subject, list[Pod]]:
        found: dict[Subject, list[Pod]] = {}
        for pod in self.of(listings.PODS):
            found.setdefault(self.workload(pod), []).append(pod)
        return found

    def pods_of(self, workload: Subject) -> tuple[Pod, ...]:
        """Its pods, those that ended included."""
        return tuple(self._pods_by_workload.get(workload, ()))

    @cached_property
    def _pods_by_namespace(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.pods:
            found.setdefault(pod.metadata.namespace, []).append(pod)
        return found

    def pods_in(self, namespace: str) -> tuple[Pod, ...]:
        """Those that have not ended for good."""
        return tuple(self._pods_by_namespace.get(namespace, ()))

    def selected(self, selector: selectors.LabelSelector, namespace: str) -> tuple[Pod, ...]:
        """The pods that a selector matches, of those that have not ended for good."""
        pods: Sequence[Pod] = self._pods_by_namespace.get(namespace, ())
        for each in selector.requirements:
            if each.operator in _EQUAL and len(each.values) == 1:
                pods = self._pods_by_label.get((namespace, each.key, each.values[0]), ())
                break
        return tuple(pod for pod in pods if selector.matches(pod.metadata.labels))

    @cached_property
    def _pods_by_label(self) -> dict[tuple[str, str, str], list[Pod]]:
        pods: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in self.pods:
            for key, value in pod.metadata.labels.items():
                pods.setdefault((pod.metadata.namespace, key, value), []).append(pod)
        return pods

    def templates(self) -> Iterator[tuple[Subject, PodSpec]]:
        """Every workload that wants pods, with their spec; pods without an owner too."""
        for kind, (listing, wanted) in _TEMPLATES.items():
            for workload in self.of(listing):
                meta = workload.metadata
                owned = any(owner.controller for owner in meta.owner_references)
                if not owned and wanted(workload):
                    yield Subject(kind, meta.name, meta.namespace), workload.spec.template.spec
        for cron_job in self.of(listings.CRON_JOBS):
            meta = cron_job.metadata
            if not cron_job.spec.suspend:
                job = cron_job.spec.job_template.spec
                yield Subject("CronJob", meta.name, meta.namespace), job.template.spec
        for pod in self.pods:
            if not any(owner.controller for owner in pod.metadata.owner_references):
                yield subject_of("Pod", pod.metadata), pod.spec

    @cached_property
    def _makers(self) -> dict[str, list[Maker]]:
        makers: dict[str, list[Maker]] = {}
        for kind, (listing, wanted) in _TEMPLATES.items():
            for workload in self.of(listing):
                meta, template = workload.metadata, workload.spec.template
                if not any(owner.controller for owner in meta.owner_references):
                    makers.setdefault(meta.namespace, []).append(
                        Maker(
                            subject_of(kind, meta),
                            template.metadata.labels,
                            template.spec,
                            wanted(workload),
                        )
                    )
        for cron_job in self.of(listings.CRON_JOBS):
            meta, template = cron_job.metadata, cron_job.spec.job_template.spec.template
            makers.setdefault(meta.namespace, []).append(
                Maker(subject_of("CronJob", meta), template.metadata.labels, template.spec, False)
            )
        return makers

    def makers(self, selector: selectors.LabelSelector, namespace: str) -> tuple[Maker, ...]:
        """The workloads whose pods, also future ones, a selector matches."""
        makers = self._makers.get(namespace, ())
        return tuple(maker for maker in makers if selector.matches(maker.labels))

    @cached_property
    def _pods_by_claim(self) -> dict[tuple[str, str], list[Pod]]:
        pods: dict[tuple[str, str], list[Pod]] = {}
        for pod in self.pods:
            for name in claims_of(pod):
                pods.setdefault((pod.metadata.namespace, name), []).append(pod)
        return pods

    def mounting(self, claim: str, namespace: str) -> tuple[Pod, ...]:
        """The pods that mount a claim, of those that have not ended for good."""
        return tuple(self._pods_by_claim.get((namespace, claim), ()))

    @cached_property
    def _slices(self) -> dict[tuple[str, str], list[EndpointSlice]]:
        slices: dict[tuple[str, str], list[EndpointSlice]] = {}
        for each in self.of(listings.ENDPOINT_SLICES):
            key = (each.metadata.namespace, each.metadata.labels.get(SERVICE_LABEL, ""))
            slices.setdefault(key, []).append(each)
        return slices

    def slices_of(self, service: Service) -> tuple[EndpointSlice, ...]:
        """The EndpointSlices of a Service."""
        return tuple(self._slices.get((service.metadata.namespace, service.metadata.name), ()))

    # Leases

    @cached_property
    def newest_renewal(self) -> datetime | None:
        """When the last lease was renewed: the present, by the clocks of the cluster."""
        times = (lease.spec.renew_time for lease in self.of(listings.LEASES))
        return max((moment for moment in times if moment is not None), default=None)

    def ready_endpoints(self, name: str, namespace: str) -> int:
        """How many endpoints of a Service are ready."""
        return sum(
            endpoint.conditions.ready is not False and bool(endpoint.addresses)
            for piece in self._slices.get((namespace, name), ())
            for endpoint in piece.endpoints
        )

    # Events

    @cached_property
    def _events(self) -> dict[tuple[str, str, str], list[Event]]:
        found: dict[tuple[str, str, str], list[Event]] = {}
        for event in self.of(listings.EVENTS):
            about = event.involved_object
            found.setdefault((about.kind, about.namespace, about.name), []).append(event)
        for events in found.values():
            events.sort(key=_when, reverse=True)
        return found

    def events(self, subject: Subject, *reasons: str) -> tuple[Event, ...]:
        """Warnings about the object, the newest first; only those of `reasons` if any is given."""
        events = self._events.get((subject.kind, subject.namespace, subject.name), ())
        return tuple(event for event in events if not reasons or event.reason in reasons)


def subject_of(kind: str, meta: CondensedMetadata, container: str = "") -> Subject:
    return Subject(kind, meta.name, meta.namespace, container)


def condition(conditions: Iterable[C], type: str) -> C | None:
    return next((condition for condition in conditions if condition.type == type), None)


def is_ready(pod: Pod) -> bool:
    """Whether the pod serves; a snapshot keeps only conditions that are not True."""
    return (
        pod.status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
        and all(one.status == "True" for one in pod.status.conditions if one.type == "Ready")
    )


def claims_of(pod: Pod) -> Iterator[str]:
    """The names of the claims that a pod mounts, ephemeral ones included."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def as_selector(selector: LabelSelector | None) -> selectors.LabelSelector:
    """The selector of an object's field; None selects nothing, nor does an invalid one."""
    try:
        return selectors.from_label_selector(
            msgspec.to_builtins(selector) if selector is not None else None
        )
    except InputError:
        return selectors.NOTHING


def _when(event: Event) -> float:
    moment = event.last_seen
    return moment.timestamp() if moment is not None else 0.0


_OWNED: dict[str, Listing[Any]] = {"ReplicaSet": listings.REPLICA_SETS, "Job": listings.JOBS}


def _has_replicas(workload: Any) -> bool:
    return bool(workload.spec.replicas)


def _always(workload: Any) -> bool:
    return True


def _is_under_way(job: Job) -> bool:
    return not job.spec.suspend and not any(
        condition.type in ("Complete", "Failed") and condition.status == "True"
        for condition in job.status.conditions
    )


_TEMPLATES: dict[str, tuple[Listing[Any], Callable[[Any], bool]]] = {
    "Deployment": (listings.DEPLOYMENTS, _has_replicas),
    "StatefulSet": (listings.STATEFUL_SETS, _has_replicas),
    "DaemonSet": (listings.DAEMON_SETS, _always),
    "ReplicaSet": (listings.REPLICA_SETS, _has_replicas),
    "ReplicationController": (listings.REPLICATION_CONTROLLERS, _has_replicas),
    "Job": (listings.JOBS, _is_under_way),
}
"""Kind -> its objects, and whether one of them wants pods now."""
