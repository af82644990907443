"""StatefulSets: ordered pods, each with claims of its own. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.claim_spec import claim_warnings, validate_claim_spec
from kvestigate.cluster.plane.kinds.podspec import default_pod_template, validate_pod_template
from kvestigate.cluster.plane.kinds.podspec.defaults import default_claim_spec, round_amounts
from kvestigate.cluster.plane.kinds.workloads import amounts, shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


class StatefulSetKind(shared.Workload):
    def name_problems(self, name: str) -> list[str]:
        return names.label_problems(name)

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec["updateStrategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
            strategy["rollingUpdate"].setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            _default_claim(claim)
        default_pod_template(spec["template"])

    def on_create(self, obj: Object, scene: Scene) -> None:
        _drop_unserved(obj)

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        _drop_unserved(new)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _spec(obj["spec"])

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        # What cannot change is not looked at again.
        return [*_spec(new["spec"], fixed=False), *self.validate_update(new, old, scene)]

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        if _fixed(new["spec"]) == _fixed(old["spec"]):
            return []
        listed = ", ".join(f"'{name}'" for name in _MUTABLE[:-1])
        why = (
            f"updates to statefulset spec for fields other than {listed} and '{_MUTABLE[-1]}' are "
            "forbidden"
        )
        return [causes.forbidden("spec", why)]

    def warnings(self, obj: Object) -> list[str]:
        claims = _claim_warnings(obj["spec"], "")
        return self.template_warnings(obj) + claims + _endless_history(obj["spec"])

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        claims = _claim_warnings(new["spec"], ".Spec")
        return super().update_warnings(new, old) + claims + _endless_history(new["spec"])


def _claim_warnings(spec: Object, within: str) -> list[str]:
    """`within`: what the server has follow the path of a template."""
    return [
        warning
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ())
        for warning in claim_warnings(f"spec.volumeClaimTemplates[{index}]{within}", claim["spec"])
    ]


def _endless_history(spec: Object) -> list[str]:
    if spec["revisionHistoryLimit"] >= 0:
        return []
    return [
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value "
        ">= 0 is recommended"
    ]


def _default_claim(claim: Object) -> None:
    claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
    default_claim_spec(claim["spec"])
    status = claim["status"]
    status.setdefault("phase", "Pending")
    for field in ("capacity", "allocatedResources"):
        round_amounts(status.get(field) or {})


def _drop_unserved(obj: Object) -> None:
    # Several pods at a time is a feature that is off by default.
    obj["spec"]["updateStrategy"].get("rollingUpdate", {}).pop("maxUnavailable", None)


def _fixed(spec: Object) -> Object:
    return {name: value for name, value in spec.items() if name not in _MUTABLE}


def _claims(templates: list[Object]) -> Causes:
    for index, claim in enumerate(templates):
        yield from validate_claim_spec(f"spec.volumeClaimTemplates[{index}].spec", claim["spec"])


def _spec(spec: Object, *, fixed: bool = True) -> Causes:
    """`fixed`: also what never changes in the life of a StatefulSet."""
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        yield causes.invalid("spec.podManagementPolicy", policy, why)
    yield from _strategy("spec.updateStrategy", spec["updateStrategy"])
    for name, kept in spec["persistentVolumeClaimRetentionPolicy"].items():
        if kept not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            yield causes.unsupported(path, kept, ["Retain", "Delete"])
    if fixed:
        yield from _claims(spec.get("volumeClaimTemplates") or [])
    yield from checks.not_negative("spec.replicas", spec["replicas"])
    yield from checks.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    start = (spec.get("ordinals") or {}).get("start", 0)
    yield from checks.not_negative("spec.ordinals.start", start)
    if fixed and spec["serviceName"]:
        yield from checks.label("spec.serviceName", spec["serviceName"])
    yield from shared.validate_selector(spec, "statefulset")
    yield from _template(spec)
    yield from shared.validate_runs_forever(spec, "StatefulSet")


def _strategy(path: str, strategy: Object) -> Causes:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate":
        if rolling is not None:
            partition = rolling.get("partition", 0)
            yield from checks.not_negative(f"{path}.rollingUpdate.partition", partition)
            if "maxUnavailable" in rolling:
                yield from _unavailable(f"{path}.rollingUpdate", rolling["maxUnavailable"])
    elif strategy["type"] != "OnDelete":
        yield causes.invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        why = "only allowed for updateStrategy 'RollingUpdate'"
        yield causes.invalid(f"{path}.rollingUpdate", rolling, why)


def _unavailable(path: str, amount: amounts.Amount) -> Causes:
    yield from amounts.validate_amount(f"{path}.maxUnavailable", amount)
    if amounts.value(amount) == 0:
        yield causes.invalid(f"{path}.maxUnavailable", amount, "cannot be 0")
    yield from amounts.validate_at_most_all(f"{path}.maxUnavailable", amount)


def _template(spec: Object) -> Causes:
    selector = shared.parse_selector(spec.get("selector"))
    if selector is None:
        yield causes.invalid("spec.selector", spec["selector"])
        return
    labels = shared.template_labels(spec)
    if not selector.selects_everything and not selector.matches(labels or {}):
        yield causes.invalid("spec.template.metadata.labels", labels, shared.MISMATCH)
    yield from validate_pod_template(_as_made(spec), "spec.template")


def _as_made(spec: Object) -> Object:
    """The pod template as the controller will create it: with the volumes of its claims."""
    template: Object = spec["template"]
    pod = {key: template["spec"][key] for key in template["spec"] if key not in _SET_LATER}
    claims = [claim["metadata"].get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        made = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
        others = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = [*made, *others]
    return {**template, "spec": pod}


_SET_LATER = ("hostname", "subdomain")
