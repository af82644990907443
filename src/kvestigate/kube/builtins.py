"""The resources that come with Kubernetes, and the names by which people know them.

What exists comes from the facts table; short names, categories and the order of preference
are in no schema and are kept here by hand.
"""

from __future__ import annotations

from functools import cache

from kvestigate.kube import facts
from kvestigate.kube.resources import Registry, Resource

# In order of preference: a name that two groups serve, such as `events`, means the first.
GROUPS = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)

SHORT_NAMES = {
    "certificatesigningrequests": ("csr",),
    "componentstatuses": ("cs",),
    "configmaps": ("cm",),
    "cronjobs": ("cj",),
    "customresourcedefinitions": ("crd", "crds"),
    "daemonsets": ("ds",),
    "deployments": ("deploy",),
    "endpoints": ("ep",),
    "events": ("ev",),
    "horizontalpodautoscalers": ("hpa",),
    "ingresses": ("ing",),
    "ipaddresses": ("ip",),
    "limitranges": ("limits",),
    "namespaces": ("ns",),
    "networkpolicies": ("netpol",),
    "nodes": ("no",),
    "persistentvolumeclaims": ("pvc",),
    "persistentvolumes": ("pv",),
    "poddisruptionbudgets": ("pdb",),
    "pods": ("po",),
    "priorityclasses": ("pc",),
    "replicasets": ("rs",),
    "replicationcontrollers": ("rc",),
    "resourcequotas": ("quota",),
    "serviceaccounts": ("sa",),
    "services": ("svc",),
    "statefulsets": ("sts",),
    "storageclasses": ("sc",),
    "volumeattributesclasses": ("vac",),
}

CATEGORIES = {
    "all": (
        "cronjobs",
        "daemonsets",
        "deployments",
        "horizontalpodautoscalers",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "services",
        "statefulsets",
    ),
    "api-extensions": (
        "apiservices",
        "customresourcedefinitions",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
}

# Served by metrics-server through aggregation, so absent from the API server's own schema.
NODE_METRICS = Resource(
    "metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False, verbs=("get", "list")
)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", verbs=("get", "list"))


@cache
def registry() -> Registry:
    """Every built-in resource that an API server serves by default."""
    return Registry(_resource(route) for route in sorted(facts.routes(), key=_preference))


def find(name: str) -> list[Resource]:
    """All built-in resources that a name can mean, the preferred one first."""
    return registry().find(name)


def resource(name: str) -> Resource:
    """The built-in resource that a name means: `resource("deploy")`."""
    return find(name)[0]


def _preference(route: facts.Route) -> tuple[int, int, str]:
    # Only stable versions are served, and of those the newest is preferred.
    return GROUPS.index(route.group), -int(route.version.removeprefix("v")), route.plural


def _resource(route: facts.Route) -> Resource:
    return Resource(
        group=route.group,
        version=route.version,
        plural=route.plural,
        kind=route.kind,
        namespaced=route.namespaced,
        singular=route.kind.lower(),
        short_names=SHORT_NAMES.get(route.plural, ()),
        categories=tuple(name for name, members in CATEGORIES.items() if route.plural in members),
        verbs=route.verbs,
        subresources=tuple(route.codes),
    )
