"""What pods refer to by name, and which of it does not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Container, NamedSource, PodSpec, PodVolume
from kvestigate.snapshot.source import Listing

CLAIM = "PersistentVolumeClaim"
KINDS: dict[str, Listing[Any]] = {
    "Secret": listings.SECRETS,
    "ConfigMap": listings.CONFIG_MAPS,
    CLAIM: listings.CLAIMS,
    "ServiceAccount": listings.SERVICE_ACCOUNTS,
    "PriorityClass": listings.PRIORITY_CLASSES,
    "RuntimeClass": listings.RUNTIME_CLASSES,
    "ResourceClaim": listings.RESOURCE_CLAIMS,
    "ResourceClaimTemplate": listings.RESOURCE_CLAIM_TEMPLATES,
}
_CLUSTER_WIDE = ("PriorityClass", "RuntimeClass")
_BUILT_IN = "system-"
"""Priority classes with this prefix are Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Reference:
    subject: Subject
    """The object that is referred to."""
    use: str
    """`environment variable PASSWORD of container main`"""
    needed: bool = True
    """False: the pod starts without it."""


def missing(cluster: Cluster, spec: PodSpec, namespace: str) -> tuple[Reference, ...]:
    """What pods of this spec refer to and what surely does not exist."""
    return tuple(
        reference
        for reference in references(spec, namespace)
        if cluster.lacks(
            KINDS[reference.subject.kind], reference.subject.name, reference.subject.namespace
        )
    )


def references(spec: PodSpec, namespace: str) -> Iterator[Reference]:
    """All but the optional ones, which may be missing."""
    for kind, name, use, needed in _named(spec):
        if name:
            where = "" if kind in _CLUSTER_WIDE else namespace
            yield Reference(Subject(kind, name, where), use, needed)


_Use = tuple[str, str, str, bool]


def _named(spec: PodSpec) -> Iterator[_Use]:
    yield "ServiceAccount", spec.service_account_name, "serviceAccountName", True
    yield "RuntimeClass", spec.runtime_class_name, "runtimeClassName", True
    if not spec.priority_class_name.startswith(_BUILT_IN):
        yield "PriorityClass", spec.priority_class_name, "priorityClassName", True
    for secret in spec.image_pull_secrets:
        yield "Secret", secret.name, "imagePullSecrets", False
    for claim in spec.resource_claims:
        use = f"resource claim {claim.name}"
        yield "ResourceClaim", claim.resource_claim_name, use, True
        yield "ResourceClaimTemplate", claim.resource_claim_template_name, use, True
    for volume in spec.volumes:
        yield from _of_volume(volume)
    for container in spec.all_containers:
        if container.env or container.env_from:
            yield from _of_container(container)


def _of_volume(volume: PodVolume) -> Iterator[_Use]:
    use = f"volume {volume.name}"
    if volume.persistent_volume_claim is not None:
        yield CLAIM, volume.persistent_volume_claim.claim_name, use, True
    if volume.secret is not None and not volume.secret.optional:
        yield "Secret", volume.secret.secret_name, use, True
    if volume.config_map is not None:
        yield from _whole("ConfigMap", volume.config_map, use)
    for source in volume.projected.sources if volume.projected is not None else ():
        yield from _whole("Secret", source.secret, use)
        yield from _whole("ConfigMap", source.config_map, use)


def _of_container(container: Container) -> Iterator[_Use]:
    for source in container.env_from:
        use = f"envFrom of container {container.name}"
        yield from _whole("Secret", source.secret_ref, use)
        yield from _whole("ConfigMap", source.config_map_ref, use)
    for variable in container.env:
        value = variable.value_from
        if value is None:
            continue
        for kind, key in (
            ("Secret", value.secret_key_ref),
            ("ConfigMap", value.config_map_key_ref),
        ):
            if key is not None and not key.optional:
                use = f"environment variable {variable.name} of container {container.name}"
                yield kind, key.name, use, True


def _whole(kind: str, source: NamedSource | None, use: str) -> Iterator[_Use]:
    if source is not None and not source.optional:
        yield kind, source.name, use, True
