"""Advice about workloads that work: images, limits, probes, replicas, secrets, leftovers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kvestigate.health.cluster import Cluster, as_selector
from kvestigate.health.model import Fault, Profile, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.jobs import has_ended
from kvestigate.health.rules.podsecurity import SYSTEM, command
from kvestigate.kube.selectors import LabelSelector
from kvestigate.render.human import listed
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import HIDDEN, Container, PodSpec
from kvestigate.snapshot.source import Listing

_TEMPLATES = (
    listings.DEPLOYMENTS,
    listings.STATEFUL_SETS,
    listings.DAEMON_SETS,
    listings.REPLICA_SETS,
    listings.JOBS,
    listings.CRON_JOBS,
)
_SERVING = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController")
"""Workloads that are meant to run for ever."""
_REPLICATED: dict[str, Listing[Any]] = {
    "Deployment": listings.DEPLOYMENTS,
    "StatefulSet": listings.STATEFUL_SETS,
}
_WITH_TEMPLATE: tuple[Listing[Any], ...] = (*_REPLICATED.values(), listings.JOBS)
"""Also of those that want no pods now: what they will need is in use."""
_SECRET_NAME = re.compile(
    r"(^|_)(PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY"
    r"|ENCRYPTION_KEY|CREDENTIALS?)$",
    re.IGNORECASE,
)
_MANY_JOBS = 10
_MADE = ("kube-root-ca.crt", "sh.helm.release.", "default-token-", "istio-ca-root-cert")
"""Names of ConfigMaps and Secrets that programs make and read by themselves."""


def _workloads(cluster: Cluster) -> Iterator[tuple[Subject, PodSpec]]:
    for subject, spec in cluster.templates():
        if subject.namespace not in SYSTEM:
            yield subject, spec


def _listed(containers: list[Container]) -> str:
    names = ", ".join(container.name for container in containers)
    return f"Container {names} has" if len(containers) == 1 else f"Containers {names} have"


@rule(
    "secret-in-variable",
    "A password or token stands as plain text in an environment variable.",
    listings.PODS,
    uses=_TEMPLATES,
    profile=Profile.SECURITY,
)
def secrets_in_variables(cluster: Cluster) -> Iterator[Fault]:
    """By the names of variables; their values are not read."""
    for subject, spec in _workloads(cluster):
        names = [
            f"{container.name}: {variable.name}"
            for container in spec.all_containers
            for variable in container.env
            if variable.value == HIDDEN and _SECRET_NAME.search(variable.name)
        ]
        if names:
            yield Fault(
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"The value of {', '.join(names)} stands as plain text in the pod "
                "template (env.value).",
                why="Everybody who may read the workload or its pods reads the value; use "
                "valueFrom.secretKeyRef (CIS 5.4.1).",
                command=command(subject),
            )


@rule(
    "image-tag",
    "An image has no tag, the tag latest, or no digest.",
    listings.PODS,
    uses=_TEMPLATES,
    profile=Profile.SECURITY,
    strict=True,
)
def image_tags(cluster: Cluster) -> Iterator[Fault]:
    for subject, spec in _workloads(cluster):
        loose = dict.fromkeys(
            f"{container.image} ({reason})"
            for container in spec.all_containers
            if (reason := _looseness(container.image))
        )
        if loose:
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence=f"Images that may change: {', '.join(loose)}.",
                why="A restart may run another program than the one that was tested; a digest "
                "(@sha256:...) names one image for ever.",
                command=command(subject),
            )


def _looseness(image: str) -> str:
    if "@sha256:" in image:
        return ""
    _, _, last = image.rpartition("/")
    _, colon, tag = last.partition(":")
    if not colon:
        return "no tag"
    return "tag latest" if tag == "latest" else "no digest"


@rule(
    "no-limits",
    "A container has no memory limit.",
    listings.PODS,
    uses=_TEMPLATES,
    profile=Profile.COST,
    strict=True,
)
def no_limits(cluster: Cluster) -> Iterator[Fault]:
    for subject, spec in _workloads(cluster):
        bare = [one for one in spec.containers if "memory" not in one.resources.limits]
        if bare and spec.resources is None:
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence=f"{_listed(bare)} no memory limit.",
                why="A leak takes the memory of the whole node, and other pods are evicted.",
                command=command(subject),
            )


@rule(
    "no-probes",
    "A container that serves has no readiness probe.",
    listings.PODS,
    listings.SERVICES,
    uses=_TEMPLATES,
    strict=True,
)
def no_probes(cluster: Cluster) -> Iterator[Fault]:
    for subject, spec in _workloads(cluster):
        bare = [one for one in spec.containers if one.ports and one.readiness_probe is None]
        if bare and subject.kind in _SERVING:
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence=f"{_listed(bare)} ports but no readiness probe.",
                why="Services send requests to the container before it can answer them.",
                command=command(subject),
            )


@rule(
    "token-mounted",
    "A pod has a token of the default ServiceAccount that it hardly needs.",
    listings.PODS,
    uses=_TEMPLATES,
    profile=Profile.SECURITY,
    strict=True,
)
def mounted_tokens(cluster: Cluster) -> Iterator[Fault]:
    for subject, spec in _workloads(cluster):
        default = spec.service_account_name in ("", "default")
        if default and spec.automount_service_account_token is not False:
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence="It mounts a token of the ServiceAccount default "
                "(automountServiceAccountToken is not false).",
                why="Whoever gets into the container can talk to the API server with it "
                "(CIS 5.1.5, 5.1.6).",
                command=command(subject),
            )


@rule(
    "single-replica",
    "A Service has one pod only.",
    listings.DEPLOYMENTS,
    listings.SERVICES,
    listings.PODS,
    strict=True,
)
def single_replicas(cluster: Cluster) -> Iterator[Fault]:
    selecting = _selectors(cluster)
    for deployment in cluster.of(listings.DEPLOYMENTS):
        meta, labels = deployment.metadata, deployment.spec.template.metadata.labels
        served = [
            name
            for name, selector in selecting.get(meta.namespace, ())
            if selector.items() <= labels.items()
        ]
        if deployment.spec.replicas == 1 and served and meta.namespace not in SYSTEM:
            subject = Subject("Deployment", meta.name, meta.namespace)
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence=f"1 replica serves Service {', '.join(served)}.",
                why="While this pod restarts or moves, nobody answers.",
                command=f"kubectl -n {meta.namespace} scale deployment {meta.name} --replicas=2 "
                "--dry-run=server",
            )


@rule(
    "no-controller",
    "A pod has no controller.",
    listings.PODS,
    strict=True,
)
def bare_pods(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.pods:
        meta = pod.metadata
        if not meta.owner_references and meta.namespace not in SYSTEM:
            subject = Subject("Pod", meta.name, meta.namespace)
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence="No controller owns the pod.",
                why="If its node fails or is drained, nothing recreates the pod.",
                command=command(subject),
                since=meta.creation_timestamp,
            )


@rule(
    "jobs-left",
    "Finished Jobs are never deleted.",
    listings.JOBS,
    profile=Profile.COST,
    strict=True,
)
def finished_jobs(cluster: Cluster) -> Iterator[Fault]:
    left: dict[str, list[str]] = {}
    for job in cluster.of(listings.JOBS):
        kept = job.spec.ttl_seconds_after_finished is None and not job.metadata.owner_references
        if kept and has_ended(job):
            left.setdefault(job.metadata.namespace, []).append(job.metadata.name)
    for namespace, names in left.items():
        if len(names) >= _MANY_JOBS:
            yield Fault(
                severity=Severity.INFO,
                subject=Subject("Job", names[0], namespace),
                evidence=f"{len(names)} finished Jobs are left in namespace {namespace} "
                f"({listed(names)}): they have no ttlSecondsAfterFinished.",
                why="Every one keeps its pods and their logs, and makes listings slower.",
                command=f"kubectl -n {namespace} get jobs",
            )


def _selectors(cluster: Cluster) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """Namespace -> (Service, its selector)."""
    found: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for service in cluster.of(listings.SERVICES):
        if service.spec.selector:
            entry = (service.metadata.name, service.spec.selector)
            found.setdefault(service.metadata.namespace, []).append(entry)
    return found


@rule(
    "no-budget",
    "A workload of several replicas has no PodDisruptionBudget.",
    listings.DEPLOYMENTS,
    listings.STATEFUL_SETS,
    listings.BUDGETS,
    strict=True,
)
def no_budgets(cluster: Cluster) -> Iterator[Fault]:
    budgets: dict[str, list[LabelSelector]] = {}
    for budget in cluster.of(listings.BUDGETS):
        selector = as_selector(budget.spec.selector)
        budgets.setdefault(budget.metadata.namespace, []).append(selector)
    for kind, listing in _REPLICATED.items():
        for workload in cluster.of(listing):
            meta = workload.metadata
            labels = workload.spec.template.metadata.labels
            guarded = any(one.matches(labels) for one in budgets.get(meta.namespace, ()))
            if workload.spec.replicas < 2 or guarded or meta.namespace in SYSTEM:
                continue
            yield Fault(
                severity=Severity.INFO,
                subject=Subject(kind, meta.name, meta.namespace),
                evidence=f"{workload.spec.replicas} replicas, but no PodDisruptionBudget selects "
                "them.",
                why="Drains of several nodes may stop all replicas at once.",
                command=f"kubectl -n {meta.namespace} create pdb {meta.name} --min-available=1 "
                f"--selector={_written(labels)} --dry-run=server",
            )


def _written(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


@rule(
    "unused",
    "No workload uses a ConfigMap or Secret.",
    listings.CONFIG_MAPS,
    listings.SECRETS,
    listings.PODS,
    *_TEMPLATES,
    listings.INGRESSES,
    listings.SERVICE_ACCOUNTS,
    profile=Profile.COST,
    strict=True,
)
def unused(cluster: Cluster) -> Iterator[Fault]:
    used = _used(cluster)
    for kind, listing in (("ConfigMap", listings.CONFIG_MAPS), ("Secret", listings.SECRETS)):
        for item in cluster.of(listing):
            meta = item.metadata
            own = meta.owner_references or meta.name.startswith(_MADE)
            token = "kubernetes.io/service-account.name" in meta.annotations
            if own or token or meta.namespace.startswith("kube-"):
                continue
            if (kind, meta.namespace, meta.name) not in used:
                yield Fault(
                    severity=Severity.INFO,
                    subject=Subject(kind, meta.name, meta.namespace),
                    evidence="No workload, Ingress or image pull refers to it.",
                    why="It may be a leftover. Programs that read it through the API are not seen.",
                    command=f"kubectl -n {meta.namespace} get {kind.lower()} {meta.name} -o yaml",
                    since=meta.creation_timestamp,
                )


def _used(cluster: Cluster) -> set[tuple[str, str, str]]:
    specs = [(subject.namespace, spec) for subject, spec in cluster.templates()]
    specs += [
        (workload.metadata.namespace, workload.spec.template.spec)
        for listing in _WITH_TEMPLATE
        for workload in cluster.of(listing)
    ]
    specs += [(pod.metadata.namespace, pod.spec) for pod in cluster.of(listings.PODS)]
    found = {
        (kind, namespace, name) for namespace, spec in specs for kind, name in _references(spec)
    }
    for ingress in cluster.of(listings.INGRESSES):
        for tls in ingress.spec.tls:
            found.add(("Secret", ingress.metadata.namespace, tls.secret_name))
    return found


def _references(spec: PodSpec) -> Iterator[tuple[str, str]]:
    for pull in spec.image_pull_secrets:
        yield "Secret", pull.name
    for volume in spec.volumes:
        if volume.secret is not None:
            yield "Secret", volume.secret.secret_name
        if volume.config_map is not None:
            yield "ConfigMap", volume.config_map.name
        for source in volume.projected.sources if volume.projected is not None else ():
            if source.secret is not None:
                yield "Secret", source.secret.name
            if source.config_map is not None:
                yield "ConfigMap", source.config_map.name
    for container in spec.all_containers:
        yield from _variables(container)


def _variables(container: Container) -> Iterator[tuple[str, str]]:
    for everything in container.env_from:
        if everything.secret_ref is not None:
            yield "Secret", everything.secret_ref.name
        if everything.config_map_ref is not None:
            yield "ConfigMap", everything.config_map_ref.name
    for variable in container.env:
        source = variable.value_from
        if source is not None and source.secret_key_ref is not None:
            yield "Secret", source.secret_key_ref.name
        if source is not None and source.config_map_key_ref is not None:
            yield "ConfigMap", source.config_map_key_ref.name


RULES = (
    secrets_in_variables,
    image_tags,
    no_limits,
    no_probes,
    mounted_tokens,
    single_replicas,
    bare_pods,
    finished_jobs,
    no_budgets,
    unused,
)
