"""What may change in a pod once it exists. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import difference
from kvestigate.cluster.plane.kinds.podspec.annotations import MIRROR
from kvestigate.cluster.plane.kinds.podspec.scheduling import validate_tolerations
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause, Causes

Object = dict[str, Any]

_CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def validate_pod_update(new: Object, old: Object) -> list[Cause]:
    problems = list(_annotations(new["metadata"], old["metadata"]))
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return problems
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            why = "pod updates may not add or remove containers"
            return [*problems, causes.forbidden(f"spec.{field}", why)]
        problems += _images(f"spec.{field}", spec.get(field) or [])
    deadline = list(
        _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    )
    problems += deadline
    if deadline and "activeDeadlineSeconds" in spec:
        return problems
    problems += _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    problems += _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    return [*problems, *_rest(spec, before)]


def _annotations(new: Object, old: Object) -> Causes:
    after, before = new.get("annotations") or {}, old.get("annotations") or {}
    if after == before:
        return
    path = "metadata.annotations"
    for key, what in _guarded(before):
        if after.get(key) != before[key]:
            yield causes.forbidden(f"{path}[{key}]", f"may not remove or update {what}")
    for key, what in _guarded(after):
        if key not in before:
            yield causes.forbidden(f"{path}[{key}]", f"may not add {what}")


def _guarded(annotations: Object) -> list[tuple[str, str]]:
    guarded = [(key, "AppArmor annotations") for key in annotations if key.startswith(_APP_ARMOR)]
    if MIRROR in annotations:
        guarded.append((MIRROR, "mirror pod annotation"))
    return guarded


def _images(path: str, containers: list[Object]) -> Causes:
    for index, container in enumerate(containers):
        image = container.get("image", "")
        if not image:
            yield causes.required(f"{path}[{index}].image")
        if image != image.strip():
            why = "must not have leading or trailing whitespace"
            yield causes.invalid(f"{path}[{index}].image", image, why)


def _deadline(new: int | None, old: int | None) -> Causes:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield causes.invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= checks.INT32_MAX:
        yield causes.invalid(path, new, checks.between(0, checks.INT32_MAX))
    elif old is not None and old < new:
        yield causes.invalid(path, new, "must be less than or equal to previous value")


def _tolerations(new: list[Object], old: list[Object]) -> Causes:
    if new == old:
        return
    kept = [_timeless(toleration) for toleration in new]
    if any(_timeless(toleration) not in kept for toleration in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield causes.forbidden("spec.tolerations", why)
    else:
        yield from validate_tolerations("spec.tolerations", new)


def _timeless(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(new: list[Object], old: list[Object]) -> Causes:
    known = {gate["name"] for gate in old}
    for index, gate in enumerate(new):
        if gate["name"] not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield causes.forbidden(f"spec.schedulingGates[{index}].name", why)


def _rest(spec: Object, before: Object) -> Causes:
    """Refuse changes of any other field of the spec."""
    masked = dict(spec)
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _restore(masked, before, field)
    for field in ("containers", "initContainers"):
        if field in before:
            pairs = zip(spec[field], before[field], strict=True)
            masked[field] = [
                {**container, "image": was.get("image", "")} for container, was in pairs
            ]
    grace = before.get("terminationGracePeriodSeconds", 0)
    if grace < 0 and spec["terminationGracePeriodSeconds"] == 1:
        masked["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        yield from _gated(masked, before)
    if masked != before:
        yield causes.forbidden(
            "spec",
            f"pod updates may not change fields other than {','.join(_CHANGEABLE)}\n"
            + difference(before, masked),
        )


def _restore(masked: Object, before: Object, field: str) -> None:
    masked.pop(field, None)
    if field in before:
        masked[field] = before[field]


def _gated(masked: Object, before: Object) -> Causes:
    """A pod with scheduling gates may restrict its node affinity, not widen it."""
    selector, was = masked.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if selector != was:
        if not was.items() <= selector.items():
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield causes.invalid("spec.nodeSelector", selector, why)
        _restore(masked, before, "nodeSelector")
    affinity = (masked.get("affinity") or {}).get("nodeAffinity")
    earlier = (before.get("affinity") or {}).get("nodeAffinity")
    if affinity != earlier:
        yield from _narrowed(affinity or {}, earlier or {})
        others = {k: v for k, v in (masked.get("affinity") or {}).items() if k != "nodeAffinity"}
        if earlier is not None:
            others["nodeAffinity"] = earlier
        masked["affinity"] = others
        if not others and "affinity" not in before:
            del masked["affinity"]


def _narrowed(new: Object, old: Object) -> Causes:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if terms and len(terms) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield causes.invalid(path, after, why)
        return
    for index, term in enumerate(terms):
        if not _only_adds(after[index], term):
            why = "only additions are allowed (no mutations or deletions)"
            yield causes.invalid(f"{path}[{index}]", after[index], why)


def _only_adds(new: Object, old: Object) -> bool:
    if not old and new:
        return False
    for field in ("matchExpressions", "matchFields"):
        was = old.get(field) or []
        if (new.get(field) or [])[: len(was)] != was:
            return False
    return True
