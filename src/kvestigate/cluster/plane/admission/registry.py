"""The admission rules, in the order in which they see a write."""

from __future__ import annotations

from kvestigate.cluster.plane.access.authz.rbac import GROUP as RBAC
from kvestigate.cluster.plane.admission.interface import Rule, Write
from kvestigate.cluster.plane.admission.pod_security.rule import (
    secure_namespace,
    secure_pod,
    secure_template,
)
from kvestigate.cluster.plane.admission.policies.evaluation import judge
from kvestigate.cluster.plane.admission.rules.certificates import forbid_masters, guard_signer
from kvestigate.cluster.plane.admission.rules.classes import give_ingress_class, give_storage_class
from kvestigate.cluster.plane.admission.rules.escalation import forbid_escalation
from kvestigate.cluster.plane.admission.rules.fleets import check_fleet, record_author
from kvestigate.cluster.plane.admission.rules.kubelets import restrict_kubelet, taint_new_node
from kvestigate.cluster.plane.admission.rules.limit_ranges import (
    fill_in_limits,
    limit_claim,
    limit_pod,
)
from kvestigate.cluster.plane.admission.rules.namespaces import need_namespace
from kvestigate.cluster.plane.admission.rules.pods import (
    allow_one_default_priority,
    apply_runtime_class,
    check_overhead,
    give_priority,
    keep_system_priorities,
    tolerate_trouble,
)
from kvestigate.cluster.plane.admission.rules.quotas import charge_quotas
from kvestigate.cluster.plane.admission.rules.service_accounts import give_account
from kvestigate.cluster.plane.admission.rules.volumes import check_resize, protect_in_use
from kvestigate.cluster.plane.store.model import ResourceKey

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
    ("kplane.dev", "fleets"): (record_author,),
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
    ("", "namespaces"): (secure_namespace,),
    ("", "persistentvolumeclaims"): (limit_claim, check_resize),
    ("", "pods"): (limit_pod, secure_pod, check_overhead),
    ("certificates.k8s.io", "certificatesigningrequests"): (guard_signer, forbid_masters),
    ("kplane.dev", "fleets"): (check_fleet,),
    ("scheduling.k8s.io", "priorityclasses"): (allow_one_default_priority,),
    **dict.fromkeys(
        (
            ("", "podtemplates"),
            ("", "replicationcontrollers"),
            ("apps", "daemonsets"),
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("apps", "statefulsets"),
            ("batch", "cronjobs"),
            ("batch", "jobs"),
        ),
        (secure_template,),
    ),
}
"""After validation: they take the object as it is."""


def admit(write: Write) -> None:
    """Run the rules that may change the object, before validation."""
    need_namespace(write)
    for rule in CHANGING.get(write.kind.key, ()):
        rule(write)


def approve(write: Write) -> None:
    """Run the rules and policies that may only refuse, after validation."""
    for rule in REFUSING.get(write.kind.key, ()):
        rule(write)
    judge(write)


def charge(write: Write) -> None:
    """Charge quotas. This comes last, so that a refused write is not charged."""
    charge_quotas(write)
