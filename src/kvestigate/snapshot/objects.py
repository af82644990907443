"""The fields of objects that reports use: few of pods, because clusters have so many, and of other
kinds also the managed fields.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views import network, policy, workloads
from kvestigate.kube.views.meta import CondensedMetadata, Condition, Metadata, View
from kvestigate.kube.views.pods import CondensedPod

Pod = CondensedPod
"""What a snapshot keeps of a pod."""


class SecretData(View, frozen=True):
    """The certificate of a TLS Secret; its key is never decoded."""

    certificate: str = field(name="tls.crt", default="")


class TlsSecret(View, frozen=True):
    metadata: CondensedMetadata = CondensedMetadata()
    data: SecretData = SecretData()


class FieldsManager(View, frozen=True):
    """One client that wrote to an object, and the API version it used."""

    manager: str = ""
    api_version: str = ""
    time: datetime | None = None


class WrittenMeta(Metadata, frozen=True):
    managed_fields: tuple[FieldsManager, ...] = ()


class JobStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Job(View, frozen=True):
    """Only the conditions, because clusters keep many finished Jobs."""

    metadata: CondensedMetadata = CondensedMetadata()
    status: JobStatus = JobStatus()


class Written(View, frozen=True):
    """An object of which only the managed fields are used."""

    metadata: WrittenMeta = WrittenMeta()


class Deployment(workloads.Deployment, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class StatefulSet(workloads.StatefulSet, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class DaemonSet(workloads.DaemonSet, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class Ingress(network.Ingress, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class NetworkPolicy(network.NetworkPolicy, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class PodDisruptionBudget(policy.PodDisruptionBudget, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
