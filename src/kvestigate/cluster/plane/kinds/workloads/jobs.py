"""Jobs: pods that are to finish. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import INT32_MAX
from kvestigate.cluster.plane.kinds.podspec import (
    default_pod_template,
    validate_pod_template,
    warn_of_template,
)
from kvestigate.cluster.plane.kinds.workloads import job_policies, job_status, shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

LEGACY_NAME, NAME = "job-name", "batch.kubernetes.io/job-name"
LEGACY_UID, UID = "controller-uid", "batch.kubernetes.io/controller-uid"

_AMOUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_FIXED = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
"""Fields that nothing may change."""
_MANAGER_MAX = 63
_INDEXES_MAX, _MANY_COMPLETIONS, _MANY_PARALLEL = 100_000, 100_000, 10_000


class JobKind(shared.Workload):
    orphans_by_default = True
    orphan_warning = (
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning"
    )
    selectable = (("status.successful", lambda obj: str(obj["status"].get("succeeded", 0))),)

    def field_refusal(self, field: str) -> str:
        return f'field label "{field}" not supported for Job'

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", INT32_MAX if "backoffLimitPerIndex" in spec else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        failed_only = "podFailurePolicy" in spec
        spec.setdefault("podReplacementPolicy", "Failed" if failed_only else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)
        job_policies.default_failure_policy(spec)
        default_pod_template(spec["template"])
        _inherit_labels(obj)

    def on_create(self, obj: Object, scene: Scene) -> None:
        if not obj["spec"]["manualSelector"]:
            given = (obj["spec"]["template"].get("metadata") or {}).get("labels")
            inherited = obj["metadata"].get("labels") == given
            _generate_selector(obj)
            if inherited:
                obj["metadata"].pop("labels", None)
        _inherit_labels(obj)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return [*_generated(obj), *_selected(obj["spec"]), *_hostnames(obj)]

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return [*self.validate(new, scene), *_changes(new, old)]

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return job_status.validate(new, old)

    def template_warnings(self, obj: Object) -> list[str]:
        return spec_warnings("spec", obj["spec"])


def default_job_template(template: Object) -> None:
    """Default the job template of a CronJob. Other defaults are set when a Job is created."""
    job_policies.default_failure_policy(template["spec"])
    default_pod_template(template["spec"]["template"])


def spec_warnings(path: str, spec: Object) -> list[str]:
    """Advice on a job, or on a template for one."""
    warnings = warn_of_template(spec["template"], f"{path}.template")
    many = spec.get("completions", 0) > _MANY_COMPLETIONS
    parallel = spec.get("parallelism", 0) > _MANY_PARALLEL
    if spec.get("completionMode") != "Indexed" or not many or not parallel:
        return warnings
    return [
        f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism "
        "higher than 10^4, Kubernetes might not be able to track completedIndexes when a big "
        "number of indexes fail",
        *warnings,
    ]


def _inherit_labels(obj: Object) -> None:
    labels = shared.template_labels(obj["spec"])
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _generate_selector(obj: Object) -> None:
    """Label the pods as this job's alone. Conflicting labels are left for validation to find."""
    spec, meta = obj["spec"], obj["metadata"]
    template = spec["template"].setdefault("metadata", {})
    name = meta.get("name", "")
    ours = {LEGACY_NAME: name, NAME: name, LEGACY_UID: meta["uid"]}
    ours[UID] = meta["uid"]
    template["labels"] = {**ours, **(template.get("labels") or {})}
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {UID: meta["uid"], **(selector.get("matchLabels") or {})}


def _generated(obj: Object) -> Causes:
    spec, meta = obj["spec"], obj["metadata"]
    if spec["manualSelector"] or "selector" not in spec:
        return
    expected = {
        LEGACY_UID: meta["uid"],
        LEGACY_NAME: meta.get("name", ""),
        UID: meta["uid"],
        NAME: meta.get("name", ""),
    }
    labels = shared.template_labels(spec) or {}
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            yield causes.required(path, f"must be '{value}'")
        elif labels[key] != value:
            yield causes.invalid(path, labels, f"must be '{value}'")
    selector = shared.parse_selector(spec["selector"])
    if selector is not None and not selector.matches(expected):
        yield causes.invalid("spec.selector", spec["selector"], "`selector` not auto-generated")


def _hostnames(obj: Object) -> Causes:
    """Refuse names whose pods (`<job>-<index>`) would not have a valid hostname."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    if spec["completionMode"] != "Indexed" or spec.get("completions", 0) <= 0:
        return
    longest = f"{name}-{spec['completions'] - 1}"
    if names.label_problems(longest):
        why = f"will not able to create pod with invalid DNS label: {longest}"
        yield causes.invalid("metadata.name", name, why)


def _selected(spec: Object) -> Causes:
    yield from validate_job("spec", spec)
    if "selector" not in spec:
        yield causes.required("spec.selector")
    yield from checks.label_selector("spec.selector", spec.get("selector"))
    selector, labels = shared.parse_selector(spec.get("selector")), None
    if selector is not None:
        labels = shared.template_labels(spec)
        if not selector.matches(labels or {}):
            yield causes.invalid("spec.template.metadata.labels", labels, shared.MISMATCH)


def validate_job(path: str, spec: Object) -> Causes:
    """The spec of a job or of a template for one, but for its selector."""
    for name in _AMOUNTS:
        yield from checks.not_negative(f"{path}.{name}", spec.get(name, 0))
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        why = "when maxFailedIndexes is specified"
        yield causes.required(f"{path}.backoffLimitPerIndex", why)
    if "managedBy" in spec:
        yield from _manager(f"{path}.managedBy", spec["managedBy"])
    yield from _completion(path, spec)
    yield from job_policies.validate(path, spec)
    yield from validate_pod_template(spec["template"], f"{path}.template")
    yield from _restarts(f"{path}.template.spec.restartPolicy", spec)


def _manager(path: str, manager: str) -> Causes:
    yield from checks.domain_prefixed_path(path, manager)
    if len(manager) > _MANAGER_MAX:
        yield causes.too_long(path, _MANAGER_MAX)


def _completion(path: str, spec: Object) -> Causes:
    mode = spec.get("completionMode", "NonIndexed")
    yield from checks.choice(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _indexed(path, spec)
    if mode == "NonIndexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                why = "requires indexed completion mode"
                yield causes.invalid(f"{path}.{name}", spec[name], why)


def _indexed(path: str, spec: Object) -> Causes:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism", 0)
    if completions is None:
        yield causes.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _INDEXES_MAX:
        why = f"must be less than or equal to {_INDEXES_MAX} when completion mode is Indexed"
        yield causes.invalid(f"{path}.parallelism", parallelism, why)
    if completions is not None and failed is not None and failed > completions:
        why = "must be less than or equal to completions"
        yield causes.invalid(f"{path}.maxFailedIndexes", failed, why)
    if failed is not None and failed > _INDEXES_MAX:
        why = f"must be less than or equal to {_INDEXES_MAX}"
        yield causes.invalid(f"{path}.maxFailedIndexes", failed, why)
    if (completions or 0) > _MANY_COMPLETIONS and "backoffLimitPerIndex" in spec:
        yield from _many(path, parallelism, failed)


def _many(path: str, parallelism: int, failed: int | None) -> Causes:
    if failed is None:
        why = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield causes.required(f"{path}.maxFailedIndexes", why)
    why = (
        f"must be less than or equal to {_MANY_PARALLEL} when completions are above "
        f"{_MANY_COMPLETIONS} and used with backoff limit per index"
    )
    if parallelism > _MANY_PARALLEL:
        yield causes.invalid(f"{path}.parallelism", parallelism, why)
    if (failed or 0) > _MANY_PARALLEL:
        yield causes.invalid(f"{path}.maxFailedIndexes", failed, why)


def _restarts(path: str, spec: Object) -> Causes:
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy in ("Always", ""):
        yield causes.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield causes.unsupported(path, policy, ["OnFailure", "Never"])
    elif "podFailurePolicy" in spec and policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        yield causes.invalid(path, policy, why)


def _changes(new: Object, old: Object) -> Causes:
    spec, before = new["spec"], old["spec"]
    yield from _completions(spec, before)
    yield from checks.immutable("spec", spec, before, "selector")
    yield from _template_changes(new, old)
    yield from checks.immutable("spec", spec, before, *_FIXED)


def _completions(spec: Object, before: Object) -> Causes:
    wanted = spec.get("completions")
    if spec["completionMode"] != "Indexed":
        yield from checks.immutable("spec", spec, before, "completions")
    elif wanted not in (before.get("completions"), None, spec["parallelism"]):
        why = "can only be modified in tandem with spec.parallelism"
        yield causes.invalid("spec.completions", wanted, why)


def _template_changes(new: Object, old: Object) -> Causes:
    template, before = new["spec"]["template"], old["spec"]["template"]
    if template == before:
        return
    if _may_change_template(old):
        parts = _essential(template), _essential(before)
        yield from checks.immutable("spec.template", *parts, "spec")
    else:
        yield causes.invalid("spec.template", template, checks.IMMUTABLE)


def _may_change_template(job: Object) -> bool:
    """Whether the Job is suspended and has no running pods."""
    status = job["status"]
    idle = "startTime" not in status or job_status.holds(job, "Suspended")
    return bool(job["spec"]["suspend"]) and idle and not status.get("active")


_PLACEMENT = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def _essential(template: Object) -> Object:
    """The template without what a suspended Job may change: scheduling and resources."""
    spec = {key: value for key, value in template["spec"].items() if key not in _PLACEMENT}
    affinity = {**(template["spec"].get("affinity") or {})}
    affinity.pop("nodeAffinity", None)
    for name in ("containers", "initContainers"):
        if spec.get(name):
            spec[name] = [{**container, "resources": {}} for container in spec[name]]
    return {"spec": {**spec, "affinity": affinity}}
