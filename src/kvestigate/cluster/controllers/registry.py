"""The controllers of a cluster, by the names that events and field managers show.

`RootCertificateController` is not among them: it has to be told the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvestigate.cluster.controllers.autoscaler import AutoscalerController
from kvestigate.cluster.controllers.cronjob import CronJobController
from kvestigate.cluster.controllers.daemonset import DaemonSetController
from kvestigate.cluster.controllers.deployment import DeploymentController
from kvestigate.cluster.controllers.disruption import DisruptionController
from kvestigate.cluster.controllers.endpoints import EndpointsController
from kvestigate.cluster.controllers.endpointslice import EndpointSliceController
from kvestigate.cluster.controllers.garbage import GarbageCollector
from kvestigate.cluster.controllers.job import JobController
from kvestigate.cluster.controllers.namespace import NamespaceController
from kvestigate.cluster.controllers.nodelifecycle import (
    NodeLifecycleController,
    TaintEvictionController,
)
from kvestigate.cluster.controllers.podgc import PodGarbageController
from kvestigate.cluster.controllers.protection import (
    ClaimProtectionController,
    VolumeProtectionController,
)
from kvestigate.cluster.controllers.quota import QuotaController
from kvestigate.cluster.controllers.replicaset import ReplicaSetController
from kvestigate.cluster.controllers.runtime import Factory
from kvestigate.cluster.controllers.serviceaccount import ServiceAccountController
from kvestigate.cluster.controllers.statefulset import StatefulSetController
from kvestigate.cluster.controllers.ttl import TtlController
from kvestigate.cluster.controllers.volumebinder import ClaimController, VolumeController

CONTROLLERS: Mapping[str, Factory] = MappingProxyType(
    {
        "node-lifecycle-controller": NodeLifecycleController,
        "namespace-controller": NamespaceController,
        "serviceaccount-controller": ServiceAccountController,
        "resourcequota-controller": QuotaController,
        "replicaset-controller": ReplicaSetController,
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
    }
)
"""In the order of their ranks: who makes room or sets limits comes before who makes pods, and
who makes pods before who sums up what became of them."""
