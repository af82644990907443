"""Jobs that have failed and are not retried. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.render.severity import Severity
from kvestigate.reports.findings.model import Finding, Subject, rule
from kvestigate.reports.findings.pods import how_it_ended
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.objects import Pod


@rule("job-failed", "A Job has failed.", listings.JOBS, listings.PODS)
def failed(snapshot: Snapshot) -> Iterator[Finding]:
    ends = _ends(snapshot)
    for job in snapshot.of(listings.JOBS):
        name, namespace = job.metadata.name, job.metadata.namespace
        for condition in job.status.conditions:
            if condition.type == "Failed" and condition.status == "True":
                last = ends.get((namespace, name), "")
                yield Finding(
                    severity=Severity.CRITICAL,
                    subject=Subject("Job", name, namespace),
                    evidence=f"{condition.reason}: {condition.message}"
                    + (last and f"; last failed pod: {last}"),
                    why="Kubernetes does not retry this Job.",
                    command=f"kvestigate logs job/{name} -n {namespace}",
                )


def _ends(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """(namespace, Job) -> how its last failed pod ended."""
    return {
        (pod.metadata.namespace, owner.name): how
        for pod in snapshot.of(listings.PODS)
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
