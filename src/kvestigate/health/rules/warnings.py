"""Warnings that controllers repeat about objects which have no rule of their own. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import quoted, since
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import Event

_RECENT = timedelta(minutes=30)
_REPEATED = 3
"""A controller that warns as often has tried again each time."""
_ELSEWHERE = {
    "Pod", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController",
    "Job", "CronJob", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PersistentVolumeClaim",
    "PersistentVolume", "Namespace",
}  # fmt: skip
"""Kinds whose rules know what their events mean, and which of them have passed."""


@rule(
    "warning-event",
    "A controller warns again and again about an object.",
    listings.EVENTS,
    listings.SERVICES,
    uses=(listings.INGRESSES, listings.CUSTOM_OBJECTS),
)
def repeated(cluster: Cluster) -> Iterator[Fault]:
    custom = {
        (one.kind, one.metadata.namespace, one.metadata.name)
        for one in cluster.of(listings.CUSTOM_OBJECTS)
    }
    newest: dict[Subject, Event] = {}
    for event in cluster.of(listings.EVENTS):
        about = event.involved_object
        subject = Subject(about.kind, about.name, about.namespace)
        if about.kind in _ELSEWHERE or event.times < _REPEATED or event.last_seen is None:
            continue
        exists = cluster.object(subject) is not None or (
            (about.kind, about.namespace, about.name) in custom
        )
        if exists and not cluster.settled(event.last_seen, _RECENT):
            known = newest.get(subject)
            if known is None or known.last_seen is None or known.last_seen < event.last_seen:
                newest[subject] = event
    for subject, event in newest.items():
        yield _fault(subject, event)


def _fault(subject: Subject, event: Event) -> Fault:
    begun = event.first_timestamp
    by = event.source.component or "a controller"
    where = f"-n {subject.namespace} " if subject.namespace else ""
    return Fault(
        severity=Severity.WARNING,
        subject=subject,
        causes=(subject,),  # a rule that knows more of the object says it
        evidence=f"{by} warned {event.times} times{since(begun)}: {event.reason}: "
        f"{quoted(event.message)}",
        why="The controller tries again and again, and fails each time.",
        command=f"kubectl {where}describe {subject.kind.lower()}/{shlex.quote(subject.name)}",
        since=begun,
        alike=event.reason,
    )


RULES = (repeated,)
