"""The controllers of a cluster, by the names that events and field managers show.

`RootCertificateController` is not among them: it has to be told the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvestigate.controllers.autoscaler import AutoscalerController
from kvestigate.controllers.cronjob import CronJobController
from kvestigate.controllers.daemonset import DaemonSetController
from kvestigate.controllers.deployment import DeploymentController
from kvestigate.controllers.disruption import DisruptionController
from kvestigate.controllers.endpoints import EndpointsController
from kvestigate.controllers.endpointslice import EndpointSliceController
from kvestigate.controllers.garbage import GarbageCollector
from kvestigate.controllers.job import JobController
from kvestigate.controllers.namespace import NamespaceController
from kvestigate.controllers.nodelifecycle import NodeLifecycleController, TaintEvictionController
from kvestigate.controllers.podgc import PodGarbageController
from kvestigate.controllers.protection import (
    ClaimProtectionController,
    VolumeProtectionController,
)
from kvestigate.controllers.quota import QuotaController
from kvestigate.controllers.replicaset import ReplicaSetController
from kvestigate.controllers.runtime import Factory
from kvestigate.controllers.serviceaccount import ServiceAccountController
from kvestigate.controllers.statefulset import StatefulSetController
from kvestigate.controllers.ttl import TtlController
from kvestigate.controllers.volumebinder import ClaimController, VolumeController

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
