"""Pods that have a node but do not start: images, volumes, configuration, init containers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import (
    container_of,
    describe,
    how_it_ended,
    is_init,
    is_seen_by_kubelet,
    logs,
    quoted,
    sentence,
    since,
    subject,
    titled,
    troubled_node,
)
from kvestigate.health.references import CLAIM, KINDS, missing
from kvestigate.health.rule import rule
from kvestigate.kube.views.pods import CondensedContainerStatus, WaitingState
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import Event
from kvestigate.snapshot.pods import Pod

_IMAGE_REASONS = {
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
    "ImageInspectError",
    "SignatureValidationFailed",
}
_CONFIG_REASONS = {
    "CreateContainerConfigError",
    "CreateContainerError",
    "CreatePodSandboxError",
    "RunContainerError",
    "StartError",
    "ContainerCannotRun",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
    "UnexpectedAdmissionError",
    "ImageEntrypointUnknown",
}
_ON_THE_WAY = {"", "ContainerCreating", "PodInitializing"}
_PREPARING = (
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "FailedCreatePodContainer",
    "FailedPodSandBoxStatus",
    "FailedPrepareDynamicResources",
    "NetworkNotReady",
    "UnexpectedAdmissionError",
    "FailedSync",
)
"""Events about what a pod needs before its first container."""
_TRANSIENT = re.compile(r"not registered|failed to sync|Multi-Attach|network is not ready")
"""What passes by itself, as a rule."""
_MANY_TRIES = 5
"""What was tried as often does not pass by itself."""
_INIT_PATIENCE = timedelta(minutes=1)

_PULL_CAUSES = (
    (r"toomanyrequests|429|rate limit", "the registry refuses more pulls (rate limit)"),
    (
        r"couldn't parse image|invalid reference format|InvalidImageName",
        "the image name is invalid",
    ),
    (
        r"ErrImageNeverPull|NeverPull",
        "the pull policy is Never, and the node does not have the image",
    ),
    (r"x509|certificate", "the certificate of the registry is not trusted"),
    (r"HTTP response to HTTPS client", "the registry does not speak HTTPS"),
    (
        r"no such host|dial tcp|i/o timeout|connection refused|handshake timeout|unreachable"
        r"|deadline exceeded|server misbehaving|RegistryUnavailable|\bEOF\b",
        "the registry cannot be reached",
    ),
    (
        r"unauthorized|authentication required|authorization failed|denied|\b40[13]\b|forbidden"
        r"|no basic auth|insufficient_scope",
        "the registry refuses access: the credentials (imagePullSecrets) are missing or wrong, or "
        "the repository does not exist",
    ),
    (
        r"no match for platform|no matching manifest|exec format",
        "the image does not exist for the architecture of the node",
    ),
    (r"no space left|disk pressure", "the disk of the node is full"),
    (
        r"not found|manifest unknown|does not exist|name unknown|NotFound|\b404\b",
        "the registry does not have this image or tag",
    ),
)
_CONFIG_CAUSES = (
    (r"couldn't find key (\S+) in (Secret|ConfigMap) \S*?/?([^/\s]+)$", "{1} {2} has no key {0}"),
    (r"references non-existent secret key: (\S+)", "the Secret has no key {0}"),
    (r"references non-existent config key: (\S+)", "the ConfigMap has no key {0}"),
    (r'secret "([^"]+)" not found', "Secret {0} does not exist"),
    (r'configmap "([^"]+)" not found', "ConfigMap {0} does not exist"),
    (
        r"runAsNonRoot and image will run as root",
        "runAsNonRoot is set, but the image runs as root: set runAsUser",
    ),
    (
        r"image has non-numeric user",
        "runAsNonRoot is set, but the image names its user: set runAsUser to a number",
    ),
    (r"breaks non-root policy", "runAsNonRoot is set, but runAsUser is 0 (root)"),
    (
        r'(?:exec: |stat )"?([^":]+)"?: (?:executable file not found|no such file or directory)',
        "the command {0} does not exist in the image",
    ),
    (r"executable file not found|no such file", "the command does not exist in the image"),
    (r"permission denied", "the command cannot be executed (permission denied)"),
    (r"exec format error", "the image is for another architecture than the node"),
    (r"entrypoint is unknown", "the container has no command"),
    (r"apparmor|seccomp", "a security profile is missing on the node"),
    (r"deadline exceeded", "the container runtime does not answer in time"),
    (r"already in use", "the name of the container is still in use on the node"),
    (r"subPath", "a subPath of a volume cannot be prepared"),
)
_PREPARING_CAUSES = (
    *_CONFIG_CAUSES[:5],
    (r"Multi-Attach", "the volume is still attached to another node"),
    (r"driver name (\S+) not found", "the CSI driver {0} does not run on the node"),
    (r"hostPath type check failed: (.+)", "the hostPath is not as its type demands: {0}"),
    (r'persistentvolumeclaim "([^"]+)"', "PersistentVolumeClaim {0} is not ready"),
    (r"cni|network plugin|NetworkPlugin|network is not ready", "the network plugin fails"),
    (r"no runtime for|RuntimeHandler|runtime handler", "the node lacks the runtime handler"),
    (r"No such file or directory|does not exist", "something that the volume needs is missing"),
    (r"timed out|deadline exceeded", "a volume is not ready in time"),
    (r"permission denied|access denied", "access to the volume is denied"),
)


@rule(
    "image-pull",
    "A container image cannot be pulled.",
    listings.PODS,
    uses=(listings.EVENTS, listings.SECRETS),
)
def image_pulls(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in cluster.troubled:
        waiting = status.state.waiting
        if waiting is None or waiting.reason not in _IMAGE_REASONS or pod.finished:
            continue
        message = _pull_message(cluster, pod, status, waiting)
        cause = _first(_PULL_CAUSES, f"{waiting.reason} {message}") or "the pull fails"
        image = container_of(pod, status.name).image
        begun = pod.metadata.creation_timestamp
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod, status.name),
            evidence=f"{titled(pod, status.name)} cannot pull the image {image} "
            f"({waiting.reason}){since(begun)}: {cause}" + (f": {message}" if message else "."),
            why="The container cannot start without its image.",
            command=describe(pod),
            since=begun,
            causes=tuple(
                reference.subject
                for reference in missing(cluster, pod.spec, pod.metadata.namespace)
                if not reference.needed and "access" in cause
            ),
            alike=f"{image} {cause}",
        )


def _pull_message(
    cluster: Cluster, pod: Pod, status: CondensedContainerStatus, waiting: WaitingState
) -> str:
    """What the registry said: old kubelets tell it in an event only."""
    said = quoted(waiting.message)
    if said and not re.fullmatch(r'Back-off pulling image "[^"]*"', said):
        return said
    for event in cluster.events(subject(pod), "Failed", "InspectFailed", "ErrImageNeverPull"):
        if _concerns(event, status.name) and "image" in event.message:
            return quoted(event.message)
    return said


def _concerns(event: Event, container: str) -> bool:
    path = event.involved_object.field_path
    return not path or f"{{{container}}}" in path


@rule(
    "container-config",
    "A container cannot be created.",
    listings.PODS,
    uses=(listings.SECRETS, listings.CONFIG_MAPS),
)
def bad_configuration(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in cluster.troubled:
        waiting = status.state.waiting
        if waiting is None or not _is_refused(waiting) or pod.finished:
            continue
        message = quoted(waiting.message)
        cause = why_not_created(message)
        begun = pod.metadata.creation_timestamp
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod, status.name),
            evidence=f"{titled(pod, status.name)} cannot be created{since(begun)}: "
            + (f"{cause}. " if cause else "")
            + f"{waiting.reason}: {message}",
            why="The container cannot be created: something in its spec is missing or invalid.",
            command=describe(pod),
            since=begun,
            causes=_named_and_missing(cluster, pod, message),
            alike=f"{waiting.reason} {cause}",
        )


def _is_refused(waiting: WaitingState) -> bool:
    """Also for a reason that is not known, if the kubelet says more: it waits for no event."""
    if waiting.reason in _CONFIG_REASONS:
        return True
    elsewhere = _ON_THE_WAY | _IMAGE_REASONS | {"CrashLoopBackOff"}
    return waiting.reason not in elsewhere and bool(waiting.message)


def why_not_created(message: str) -> str:
    """The cause in plain words; empty if the message is not known."""
    return _first(_CONFIG_CAUSES, message)


def _first(causes: tuple[tuple[str, str], ...], message: str) -> str:
    for pattern, cause in causes:
        match = re.search(pattern, message, re.IGNORECASE)
        if match:
            return cause.format(*match.groups())
    return ""


def _named_and_missing(cluster: Cluster, pod: Pod, message: str) -> tuple[Subject, ...]:
    """The missing objects that a message of the kubelet names; all if there is no message."""
    return tuple(
        reference.subject
        for reference in missing(cluster, pod.spec, pod.metadata.namespace)
        if reference.needed and (not message or f'"{reference.subject.name}"' in message)
    )


@rule(
    "not-started",
    "A pod has a node but its containers are not created.",
    listings.PODS,
    uses=(listings.EVENTS, listings.NODES, *KINDS.values()),
)
def not_started(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.pods:
        if pod.status.phase not in ("Pending", "") or not (
            pod.spec.node_name or is_seen_by_kubelet(pod)
        ):
            continue
        if pod.metadata.deletion_timestamp or not _being_created(pod) or _no_node(cluster, pod):
            continue
        begun = pod.metadata.creation_timestamp
        told = _last_word(cluster, pod)
        message = quoted(told.message) if told is not None else ""
        tries = told.times if told is not None else 0
        passing = not message or (_TRANSIENT.search(message) and tries < _MANY_TRIES)
        if passing and not cluster.settled(begun):
            continue
        cause = _first(_PREPARING_CAUSES, message) + _source_of(pod, message)
        event = f"{told.reason}: {message}" if told is not None else "no event says why"
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod),
            evidence=f"ContainerCreating on {pod.spec.node_name or 'its node'}{since(begun)}: "
            + (f"{cause}. " if cause else "")
            + event,
            why="The containers start when the node has made the pod's volumes and network.",
            command=describe(pod),
            since=begun,
            causes=(
                *_named_and_missing(cluster, pod, message),
                *_claims(cluster, pod, only_unbound=bool(message)),
            ),
            alike=f"{told.reason if told else ''} {cause}",
        )


def _no_node(cluster: Cluster, pod: Pod) -> bool:
    """Whether the node is gone or not ready: then that is what is wrong with the pod."""
    gone = bool(pod.spec.node_name) and cluster.lacks(listings.NODES, pod.spec.node_name)
    return gone or bool(troubled_node(cluster, pod))


def _source_of(pod: Pod, message: str) -> str:
    """` (Secret db)`: what a volume with a missing key is made of; the kubelet does not say."""
    key = re.search(r'volume "([^"]+)".*references non-existent (?:secret|config) key', message)
    for volume in pod.spec.volumes if key else ():
        if key and volume.name == key[1]:
            if volume.secret is not None:
                return f" (Secret {volume.secret.secret_name})"
            if volume.config_map is not None:
                return f" (ConfigMap {volume.config_map.name})"
    return ""


def _being_created(pod: Pod) -> bool:
    """Whether no container has been started, and none is known to fail."""
    return not any(
        status.state.running
        or status.state.terminated
        or (status.state.waiting and status.state.waiting.reason not in _ON_THE_WAY)
        for status in pod.status.all_statuses
    )


def _last_word(cluster: Cluster, pod: Pod) -> Event | None:
    """The newest event about the pod's volumes or network; a timeout only if nothing else."""
    events = cluster.events(subject(pod), *_PREPARING)
    telling = [event for event in events if "timed out waiting" not in event.message]
    return next(iter(telling or events), None)


def _claims(cluster: Cluster, pod: Pod, *, only_unbound: bool) -> Iterator[Subject]:
    """The claims that may keep a pod waiting: if nothing is said, any that has a fault."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            claim = cluster.find(listings.CLAIMS, name, pod.metadata.namespace)
            if claim is not None and not (only_unbound and claim.status.phase == "Bound"):
                yield Subject(CLAIM, name, pod.metadata.namespace)


@rule("init-container", "An init container fails or does not end.", listings.PODS)
def init_containers(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.pods:
        if pod.status.phase != "Pending" or pod.metadata.deletion_timestamp:
            continue
        for status in pod.status.init_container_statuses:
            fault = _init_fault(cluster, pod, status)
            if fault is not None:
                yield fault
                break


def _init_fault(cluster: Cluster, pod: Pod, status: CondensedContainerStatus) -> Fault | None:
    begun = pod.metadata.creation_timestamp
    ended = status.state.terminated
    hangs = status.state.running is not None and cluster.settled(begun, _INIT_PATIENCE)
    if ended is not None and ended.exit_code:
        text = f"failed ({counted(status.restart_count, 'restart')}): {how_it_ended(ended)}"
    elif hangs and is_init(pod, status.name):
        before = status.last_state.terminated
        text = f"still runs{since(begun)}: the other containers wait for its end"
        if before is not None and before.exit_code:
            text = f"fails ({counted(status.restart_count, 'restart')}): {how_it_ended(before)}"
    elif hangs and not status.ready:
        text = f"(a sidecar) is not ready{since(begun)}"
    else:
        return None
    return Fault(
        severity=Severity.CRITICAL if ended else Severity.WARNING,
        subject=subject(pod, status.name),
        evidence=f"Init container {status.name} {sentence(text)}",
        why="The pod's containers start only after every init container has succeeded.",
        command=logs(pod, status.name, previous=False),
        since=begun,
        alike="init",
    )


RULES = (image_pulls, bad_configuration, not_started, init_containers)
