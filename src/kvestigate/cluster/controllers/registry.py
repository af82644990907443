"""The controllers of a cluster, by the names that events and field managers show.

`RootCertificateController` and `SigningController` are not among them: they are made with a
certificate and with the keys to sign with.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvestigate.cluster.controllers.autoscaling.autoscaler import AutoscalerController
from kvestigate.cluster.controllers.certificates.signing import (
    ApprovingController,
    CleaningController,
)
from kvestigate.cluster.controllers.garbage.collector import GarbageCollector
from kvestigate.cluster.controllers.jobs.cronjob import CronJobController
from kvestigate.cluster.controllers.jobs.job import JobController, TtlController
from kvestigate.cluster.controllers.namespaces.defaults import ServiceAccountController
from kvestigate.cluster.controllers.namespaces.namespace import NamespaceController
from kvestigate.cluster.controllers.namespaces.quota import QuotaController
from kvestigate.cluster.controllers.network.apiservice import ApiServiceController
from kvestigate.cluster.controllers.network.endpoints import EndpointsController
from kvestigate.cluster.controllers.network.endpointslice import EndpointSliceController
from kvestigate.cluster.controllers.nodes.lifecycle import (
    NodeLifecycleController,
    TaintEvictionController,
)
from kvestigate.cluster.controllers.nodes.podgc import PodGarbageController
from kvestigate.cluster.controllers.runtime import Factory
from kvestigate.cluster.controllers.storage.pod_claims import EphemeralVolumeController
from kvestigate.cluster.controllers.storage.protection import (
    ClaimProtectionController,
    VolumeProtectionController,
)
from kvestigate.cluster.controllers.storage.resource_claims import ResourceClaimController
from kvestigate.cluster.controllers.storage.volumebinder import ClaimController, VolumeController
from kvestigate.cluster.controllers.workloads.daemonset import DaemonSetController
from kvestigate.cluster.controllers.workloads.deployment import DeploymentController
from kvestigate.cluster.controllers.workloads.disruption import DisruptionController
from kvestigate.cluster.controllers.workloads.replicaset import (
    ReplicaSetController,
    ReplicationControllerController,
)
from kvestigate.cluster.controllers.workloads.statefulset import StatefulSetController

CONTROLLERS: Mapping[str, Factory] = MappingProxyType(
    {
        "node-lifecycle-controller": NodeLifecycleController,
        "namespace-controller": NamespaceController,
        "serviceaccount-controller": ServiceAccountController,
        "resourcequota-controller": QuotaController,
        "replicaset-controller": ReplicaSetController,
        "replicationcontroller-controller": ReplicationControllerController,
        "deployment-controller": DeploymentController,
        "job-controller": JobController,
        "ttl-after-finished-controller": TtlController,
        "cronjob-controller": CronJobController,
        "statefulset-controller": StatefulSetController,
        "daemonset-controller": DaemonSetController,
        "garbage-collector-controller": GarbageCollector,
        "endpoint-controller": EndpointsController,
        "endpointslice-controller": EndpointSliceController,
        "disruption-controller": DisruptionController,
        "taint-eviction-controller": TaintEvictionController,
        "pod-garbage-collector-controller": PodGarbageController,
        "persistentvolumeclaim-binder-controller": ClaimController,
        "persistentvolume-binder-controller": VolumeController,
        "persistentvolumeclaim-protection-controller": ClaimProtectionController,
        "persistentvolume-protection-controller": VolumeProtectionController,
        "horizontal-pod-autoscaler-controller": AutoscalerController,
        "ephemeral-volume-controller": EphemeralVolumeController,
        "resourceclaim-controller": ResourceClaimController,
        "apiservice-availability-controller": ApiServiceController,
        "certificatesigningrequest-approving-controller": ApprovingController,
        "certificatesigningrequest-cleaner-controller": CleaningController,
    }
)
"""In the order of their ranks: who makes room or sets limits comes before who makes pods, and
who makes pods before who sums up what became of them."""
