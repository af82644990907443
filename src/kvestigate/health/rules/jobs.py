"""Jobs that have failed and are not retried. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.pods import how_it_ended
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Pod


@rule("job-failed", "A Job has failed.", listings.JOBS, listings.PODS)
def failed(cluster: Cluster) -> Iterator[Fault]:
    ends = _ends(cluster)
    for job in cluster.of(listings.JOBS):
        name, namespace = job.metadata.name, job.metadata.namespace
        for condition in job.status.conditions:
            if condition.type == "Failed" and condition.status == "True":
                last = ends.get((namespace, name), "")
                yield Fault(
                    severity=Severity.CRITICAL,
                    subject=Subject("Job", name, namespace),
                    evidence=f"{condition.reason}: {condition.message}"
                    + (last and f"; last failed pod: {last}"),
                    why="Kubernetes does not retry this Job.",
                    command=f"kvestigate logs job/{name} -n {namespace}",
                )


def _ends(cluster: Cluster) -> dict[tuple[str, str], str]:
    """(namespace, Job) -> how its last failed pod ended."""
    return {
        (pod.metadata.namespace, owner.name): how
        for pod in cluster.of(listings.PODS)
        if pod.status.phase == "Failed"
        for owner in pod.metadata.owner_references
        if owner.kind == "Job" and (how := _end(pod))
    }


def _end(pod: Pod) -> str:
    for status in pod.status.all_statuses:
        ended = status.state.terminated
        if ended is not None and ended.exit_code:
            return f"container {status.name}: {how_it_ended(ended)}"
    return pod.status.reason


RULES = (failed,)
