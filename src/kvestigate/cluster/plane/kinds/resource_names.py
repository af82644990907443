"""Names of what pods consume and quotas count, and the amounts that fit them. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds.checks import NOT_NEGATIVE, each
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes

HUGE_PAGES = "hugepages-"
_QUOTA_HUGE_PAGES = (HUGE_PAGES, "requests.hugepages-")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_QUOTA = frozenset(
    (
        *_COMPUTE,
        *_COUNTED,
        *(f"requests.{name}" for name in (*_COMPUTE, "storage")),
        *(f"limits.{name}" for name in _COMPUTE),
    )
)
_STANDARD = _QUOTA | {"storage"}


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name_problems(f"requests.{name}")


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_quota(name: str) -> bool:
    """Whether quotas know the name without a domain in front."""
    return name in _QUOTA or name.startswith(_QUOTA_HUGE_PAGES)


def overcommits(name: str) -> bool:
    """Whether a limit may be above the request."""
    return is_native(name) and not is_huge_page(name)


def validate_name(path: str, name: str) -> Causes:
    problems = names.qualified_name_problems(name)
    if problems:
        yield from each(path, name, problems)
    elif "/" not in name and name not in _STANDARD and not name.startswith(_QUOTA_HUGE_PAGES):
        yield causes.invalid(path, name, "must be a standard resource type or fully qualified")


def validate_container_name(path: str, name: str) -> Causes:
    if name in _COMPUTE:
        return
    yield from validate_name(path, name)
    if "/" not in name:
        if not is_huge_page(name):
            yield causes.invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield causes.invalid(path, name, "doesn't follow extended resource name standard")


def validate_pod_name(path: str, name: str) -> Causes:
    problems = list(validate_name(path, name))
    if problems:
        yield from problems
    elif name not in ("cpu", "memory") and not is_huge_page(name):
        yield causes.unsupported(path, name, ["cpu", HUGE_PAGES, "memory"])


def validate_quota_name(path: str, name: str) -> Causes:
    yield from validate_name(path, name)
    if "/" not in name and not is_quota(name):
        yield causes.invalid(path, name, "must be a standard resource for quota")


def validate_amount(path: str, name: str, amount: str) -> Causes:
    value = quantities.parse(amount)
    if value.nanos < 0:
        yield causes.invalid(path, amount, NOT_NEGATIVE)
    if value.millis % 1000 and (name in _COUNTED or is_extended(name)):
        yield causes.invalid(path, amount, "must be an integer")
