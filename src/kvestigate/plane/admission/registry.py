"""The admission rules, in the order in which they see a write."""

from __future__ import annotations

from kvestigate.plane.admission.certificates import forbid_masters, guard_signer
from kvestigate.plane.admission.classes import give_ingress_class, give_storage_class
from kvestigate.plane.admission.escalation import forbid_escalation
from kvestigate.plane.admission.fleets import check_fleet
from kvestigate.plane.admission.interface import Rule, Write
from kvestigate.plane.admission.kubelets import restrict_kubelet
from kvestigate.plane.admission.limit_ranges import fill_in_limits, limit_claim, limit_pod
from kvestigate.plane.admission.namespaces import need_namespace
from kvestigate.plane.admission.nodes import taint_new_node
from kvestigate.plane.admission.pods import (
    allow_one_default_priority,
    apply_runtime_class,
    check_overhead,
    give_priority,
    keep_system_priorities,
    tolerate_trouble,
)
from kvestigate.plane.admission.quotas import charge_quotas
from kvestigate.plane.admission.service_accounts import give_account
from kvestigate.plane.admission.volumes import check_resize, protect_in_use
from kvestigate.plane.authz.rbac import GROUP as RBAC
from kvestigate.plane.policies.evaluation import judge
from kvestigate.plane.store.model import ResourceKey

CHANGING: dict[ResourceKey, tuple[Rule, ...]] = {
    ("", "bindings"): (restrict_kubelet,),
    ("", "nodes"): (restrict_kubelet, taint_new_node),
    ("", "persistentvolumeclaims"): (restrict_kubelet, protect_in_use, give_storage_class),
    ("", "persistentvolumes"): (protect_in_use,),
    ("", "pods"): (
        fill_in_limits,
        give_account,
        restrict_kubelet,
        give_priority,
        tolerate_trouble,
        apply_runtime_class,
    ),
    ("authentication.k8s.io", "tokenrequests"): (restrict_kubelet,),
    ("certificates.k8s.io", "certificatesigningrequests"): (restrict_kubelet,),
    ("coordination.k8s.io", "leases"): (restrict_kubelet,),
    ("networking.k8s.io", "ingresses"): (give_ingress_class,),
    ("policy", "evictions"): (restrict_kubelet,),
    ("resource.k8s.io", "resourceslices"): (restrict_kubelet,),
    ("scheduling.k8s.io", "priorityclasses"): (keep_system_priorities,),
    ("storage.k8s.io", "csinodes"): (restrict_kubelet,),
    **{
        (RBAC, plural): (forbid_escalation,)
        for plural in ("clusterrolebindings", "clusterroles", "rolebindings", "roles")
    },
}
"""Before validation: they may change the object."""

REFUSING: dict[ResourceKey, tuple[Rule, ...]] = {
    ("", "persistentvolumeclaims"): (limit_claim, check_resize),
    ("", "pods"): (limit_pod, check_overhead),
    ("certificates.k8s.io", "certificatesigningrequests"): (guard_signer, forbid_masters),
    ("kplane.dev", "fleets"): (check_fleet,),
    ("scheduling.k8s.io", "priorityclasses"): (allow_one_default_priority,),
}
"""After validation: they take the object as it is."""


def admit(write: Write) -> None:
    """What comes before validation."""
    need_namespace(write)
    for rule in CHANGING.get(write.kind.key, ()):
        rule(write)


def approve(write: Write) -> None:
    """What comes after validation."""
    for rule in REFUSING.get(write.kind.key, ()):
        rule(write)
    judge(write)


def charge(write: Write) -> None:
    """What comes last: what was refused is not charged."""
    charge_quotas(write)
