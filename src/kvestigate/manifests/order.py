"""What has to be there before what: the stages of a deployment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvestigate.manifests.model import Manifest

_RBAC = "rbac.authorization.k8s.io"

STAGES: tuple[tuple[str, frozenset[tuple[str, str]]], ...] = (
    ("namespaces", frozenset({("", "Namespace")})),
    ("types", frozenset({("apiextensions.k8s.io", "CustomResourceDefinition")})),
    (
        "access",
        frozenset(
            {
                ("", "ServiceAccount"),
                (_RBAC, "ClusterRole"),
                (_RBAC, "ClusterRoleBinding"),
                (_RBAC, "Role"),
                (_RBAC, "RoleBinding"),
            }
        ),
    ),
    (
        "config",
        frozenset(
            {
                ("", "ConfigMap"),
                ("", "Secret"),
                ("", "LimitRange"),
                ("", "ResourceQuota"),
                ("scheduling.k8s.io", "PriorityClass"),
                ("node.k8s.io", "RuntimeClass"),
            }
        ),
    ),
    (
        "storage",
        frozenset(
            {
                ("storage.k8s.io", "StorageClass"),
                ("storage.k8s.io", "CSIDriver"),
                ("", "PersistentVolume"),
                ("", "PersistentVolumeClaim"),
            }
        ),
    ),
    # Before the workloads: a container is told of the Services that were there when it began.
    ("services", frozenset({("", "Service")})),
    (
        "workloads",
        frozenset(
            {
                ("", "Pod"),
                ("", "ReplicationController"),
                ("apps", "DaemonSet"),
                ("apps", "Deployment"),
                ("apps", "ReplicaSet"),
                ("apps", "StatefulSet"),
                ("batch", "CronJob"),
                ("batch", "Job"),
            }
        ),
    ),
)
"""By group and kind. What is in none comes last: custom resources, and what acts on workloads."""

_NUMBER = {kind: number for number, (_, kinds) in enumerate(STAGES) for kind in kinds}


def stages(manifests: Iterable[Manifest]) -> list[Sequence[Manifest]]:
    """The manifests by stage, in a stage as they were given; stages without any are left out."""
    stages: dict[int, list[Manifest]] = {}
    for manifest in manifests:
        stages.setdefault(_NUMBER.get((manifest.group, manifest.kind), len(STAGES)), []).append(
            manifest
        )
    return [stages[number] for number in sorted(stages)]
