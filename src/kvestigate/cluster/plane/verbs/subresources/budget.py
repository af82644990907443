"""Whether a PodDisruptionBudget allows an eviction, and its status afterwards. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model import metadata
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.errors import ApiError, Forbidden, TooManyRequests

DISRUPTED_PODS_LIMIT = 2000
"""Evictions that the disruption controller has not observed yet; with more, evictions fail."""

UNOBSERVED_RETRY_SECONDS = 10

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def spares_unready(pdb: Object, pod: Object) -> bool:
    """Whether the pod is not ready and the budget allows evicting such pods uncounted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        return False
    if (pdb.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = pdb.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    healthy: int = status.get("currentHealthy", 0)
    return 0 < desired <= healthy


def refusal(pdb: Object) -> ApiError | None:
    """Why the budget does not allow one more disruption, or None if it does."""
    name, status = pdb["metadata"]["name"], pdb.get("status") or {}
    if status.get("observedGeneration", 0) < pdb["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        return _too_many(text, retryAfterSeconds=UNOBSERVED_RETRY_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        return _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > DISRUPTED_PODS_LIMIT:
        return _forbidden(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed:
        return None
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if healthy <= desired:
        text = (
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    else:
        text = f"The disruption budget {name} does not allow evicting pods currently"
    return _too_many(text)


def spend(pdb: Object, pod: str, now: float) -> None:
    """Count the disruption of `pod` in the status of its budget."""
    status = pdb["status"]
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {
        **(status.get("disruptedPods") or {}),
        pod: metadata.timestamp(now),
    }
    if status["disruptionsAllowed"] == 0:
        _set_disruptions_exhausted(pdb, now)


def _set_disruptions_exhausted(pdb: Object, now: float) -> None:
    status = pdb["status"]
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": metadata.timestamp(now),
        "reason": "InsufficientPods",
        "message": "",
    }
    others = []
    for present in status.get("conditions") or ():
        if present["type"] != condition["type"]:
            others.append(present)
        elif present["status"] == condition["status"]:
            condition["lastTransitionTime"] = present["lastTransitionTime"]
    status["conditions"] = [*others, condition]


def _too_many(text: str, **details: int) -> TooManyRequests:
    cause = {"reason": "DisruptionBudget", "message": text}
    return TooManyRequests(_REFUSED, details={"causes": [cause], **details})


def _forbidden(name: str, why: str) -> Forbidden:
    return Forbidden(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudget"},
    )
