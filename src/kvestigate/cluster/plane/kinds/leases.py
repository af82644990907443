"""Leases: who leads, and for how long. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import Causes
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause


class LeaseKind(Kind):
    judges_whole = False
    has_plain_finalizers = True
    shares_on_update = True
    creates_on_update = True
    updates_unconditionally = False

    def on_create(self, obj: Object, scene: Scene) -> None:
        _drop_unserved(obj["spec"])

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        _drop_unserved(new["spec"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_spec(obj["spec"]))


def _drop_unserved(spec: Object) -> None:
    # Coordinated election is a feature that is off by default.
    spec.pop("strategy", None)
    spec.pop("preferredHolder", None)


def _spec(spec: Object) -> Causes:
    duration = spec.get("leaseDurationSeconds", 1)
    if duration <= 0:
        yield causes.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    yield from checks.not_negative("spec.leaseTransitions", spec.get("leaseTransitions", 0))
