"""What a PodDisruptionBudget allows, and what an eviction takes from it. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model import metadata
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.verbs.subresources.conditions import is_true
from kvestigate.errors import ApiError, Forbidden, TooManyRequests

DISRUPTED_PODS_LIMIT = 2000
"""Evictions that the disruption controller may be behind with before we stop adding more."""

UNOBSERVED_RETRY_SECONDS = 10

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def spares_unready(pdb: Object, pod: Object) -> bool:
    """Whether a pod that is not ready may go without being counted."""
    if is_true(pod, "Ready"):
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
    """Take one disruption for `pod`."""
    status = pdb["status"]
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {
        **(status.get("disruptedPods") or {}),
        pod: metadata.timestamp(now),
    }
    if status["disruptionsAllowed"] == 0:
        _note_exhausted(pdb, now)


def _note_exhausted(pdb: Object, now: float) -> None:
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
    for known in status.get("conditions") or ():
        if known["type"] != condition["type"]:
            others.append(known)
        elif known["status"] == condition["status"]:
            condition["lastTransitionTime"] = known["lastTransitionTime"]
    status["conditions"] = [*others, condition]


def _too_many(text: str, **details: int) -> TooManyRequests:
    cause = {"reason": "DisruptionBudget", "message": text}
    return TooManyRequests(_REFUSED, details={"causes": [cause], **details})


def _forbidden(name: str, why: str) -> Forbidden:
    return Forbidden(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudget"},
    )
