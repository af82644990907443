"""What governs a cluster, as a snapshot keeps it: quotas, rights, webhooks, extensions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import field

from kvestigate.kube.views.meta import Condition, LabelSelector, View
from kvestigate.snapshot.meta import WrittenMeta


class QuotaSpec(View, frozen=True):
    scopes: tuple[str, ...] = ()


class QuotaStatus(View, frozen=True):
    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class ResourceQuota(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class LimitRangeItem(View, frozen=True):
    type: str = ""
    max: dict[str, str] = field(default_factory=dict)
    min: dict[str, str] = field(default_factory=dict)
    default: dict[str, str] = field(default_factory=dict)
    default_request: dict[str, str] = field(default_factory=dict)


class LimitRangeSpec(View, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    value: int = 0
    global_default: bool = False


class IngressClassSpec(View, frozen=True):
    controller: str = ""


class IngressClass(View, frozen=True):
    """The annotation `ingressclass.kubernetes.io/is-default-class` marks the default."""

    metadata: WrittenMeta = WrittenMeta()
    spec: IngressClassSpec = IngressClassSpec()


class ServiceReference(View, frozen=True):
    namespace: str = ""
    name: str = ""
    port: int = 443
    path: str = ""


class WebhookClient(View, frozen=True):
    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""


class WebhookRule(View, frozen=True):
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


class Webhook(View, frozen=True):
    name: str = ""
    client_config: WebhookClient = WebhookClient()
    failure_policy: str = "Fail"
    timeout_seconds: int = 10
    rules: tuple[WebhookRule, ...] = ()
    namespace_selector: LabelSelector = LabelSelector()


class WebhookConfiguration(View, frozen=True):
    """Of mutating or of validating webhooks."""

    metadata: WrittenMeta = WrittenMeta()
    webhooks: tuple[Webhook, ...] = ()


class ApiServiceSpec(View, frozen=True):
    service: ServiceReference | None = None
    """None: served by the API server itself."""
    group: str = ""
    version: str = ""
    ca_bundle: str = ""


class Conditions(View, frozen=True):
    """A status of which the conditions are used."""

    conditions: tuple[Condition, ...] = ()


class ApiService(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: ApiServiceSpec = ApiServiceSpec()
    status: Conditions = Conditions()


class DefinitionNames(View, frozen=True):
    plural: str = ""
    kind: str = ""


class DefinitionVersion(View, frozen=True):
    name: str = ""
    served: bool = False
    storage: bool = False


class ConversionWebhook(View, frozen=True):
    client_config: WebhookClient = WebhookClient()


class Conversion(View, frozen=True):
    strategy: str = "None"
    webhook: ConversionWebhook | None = None


class DefinitionSpec(View, frozen=True):
    group: str = ""
    scope: str = ""
    names: DefinitionNames = DefinitionNames()
    versions: tuple[DefinitionVersion, ...] = ()
    conversion: Conversion = Conversion()


class Definition(View, frozen=True):
    """A CustomResourceDefinition."""

    metadata: WrittenMeta = WrittenMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: Conditions = Conditions()


class CustomStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    phase: str = ""
    """`status.phase` or `status.state`."""
    health: str = ""
    """`status.health`, `status.health.status` of Argo CD, or `status.ceph.health` of Rook."""
    sync: str = ""
    """`status.sync.status` of Argo CD."""
    operation: str = ""
    """`status.operationState.phase` of Argo CD."""
    error: str = ""
    """`status.error`, `failureMessage` or `errorMessage` of what is not ready."""
    message: str = ""


class ParentReference(View, frozen=True):
    """What a route of the Gateway API attaches to."""

    kind: str = "Gateway"
    namespace: str = ""
    name: str = ""


class CustomObject(View, frozen=True):
    """An object of any kind, seen by its conditions."""

    api_version: str = ""
    kind: str = ""
    metadata: WrittenMeta = WrittenMeta()
    suspended: bool = False
    """Nobody works on it, on purpose: its conditions may be old."""
    status: CustomStatus = CustomStatus()
    parents: tuple[ParentReference, ...] = ()


class UncheckedObject(View, frozen=True):
    """A custom object as it comes: its author decides what spec and status look like."""

    api_version: str = ""
    kind: str = ""
    metadata: WrittenMeta = WrittenMeta()
    spec: Any = None
    status: Any = None


def as_custom_object(unchecked: UncheckedObject) -> CustomObject:
    """Keeps what looks like a condition; the rest of spec and status is dropped."""
    spec, status = _mapping(unchecked.spec), _mapping(unchecked.status)
    return CustomObject(
        unchecked.api_version,
        unchecked.kind,
        unchecked.metadata,
        any(spec.get(name) is True for name in ("suspend", "suspended", "paused")),
        _custom_status(status),
        tuple(_parent(one) for one in _mappings(spec.get("parentRefs")) if _text(one.get("name"))),
    )


def _custom_status(status: dict[str, Any]) -> CustomStatus:
    operation, sync = _mapping(status.get("operationState")), _mapping(status.get("sync"))
    seen = status.get("observedGeneration")
    return CustomStatus(
        tuple(_conditions(status)),
        seen if isinstance(seen, int) else 0,
        _text(status.get("phase")) or _text(status.get("state")),
        _health(status),
        _text(sync.get("status")),
        _text(operation.get("phase")),
        "" if status.get("readyToUse") is True else _error(status),
        _text(status.get("message"))
        or _text(_mapping(status.get("health")).get("message"))
        or _text(operation.get("message")),
    )


def _conditions(status: dict[str, Any]) -> Iterator[Condition]:
    """Its own, and those that it keeps for each parent, ancestor or listener."""
    for one in _mappings(status.get("conditions")):
        yield _condition(one)
    for part in ("parents", "ancestors", "listeners"):
        for each in _mappings(status.get(part)):
            for one in _mappings(each.get("conditions")):
                yield _condition(one)


def _health(status: dict[str, Any]) -> str:
    own = status.get("health")
    if own is not None:
        return _text(own) or _text(_mapping(own).get("status"))
    return next(
        (word for part in status.values() if (word := _text(_mapping(part).get("health")))), ""
    )


def _error(status: dict[str, Any]) -> str:
    for name in ("error", "failureMessage", "errorMessage"):
        written = status.get(name)
        if text := _text(written) or _text(_mapping(written).get("message")):
            return text
    return ""


def _parent(written: dict[str, Any]) -> ParentReference:
    kind = _text(written.get("kind")) or "Gateway"
    return ParentReference(kind, _text(written.get("namespace")), _text(written.get("name")))


def _condition(written: dict[str, Any]) -> Condition:
    moment = _text(written.get("lastTransitionTime"))
    try:
        changed = msgspec.convert(moment, datetime) if moment else None
    except msgspec.ValidationError:
        changed = None
    return Condition(
        _text(written.get("type")),
        _text(written.get("status")),
        _text(written.get("reason")),
        _text(written.get("message")),
        changed if changed is None or changed.tzinfo else changed.replace(tzinfo=UTC),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class ExpressionWarning(View, frozen=True):
    field_ref: str = ""
    warning: str = ""


class TypeChecking(View, frozen=True):
    expression_warnings: tuple[ExpressionWarning, ...] = ()


class AdmissionPolicyStatus(View, frozen=True):
    type_checking: TypeChecking = TypeChecking()


class AdmissionPolicy(View, frozen=True):
    """A ValidatingAdmissionPolicy."""

    metadata: WrittenMeta = WrittenMeta()
    status: AdmissionPolicyStatus = AdmissionPolicyStatus()


class PolicyBindingSpec(View, frozen=True):
    policy_name: str = ""


class PolicyBinding(View, frozen=True):
    """A ValidatingAdmissionPolicyBinding."""

    metadata: WrittenMeta = WrittenMeta()
    spec: PolicyBindingSpec = PolicyBindingSpec()


class FlowSchema(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    status: Conditions = Conditions()


class PolicyRule(View, frozen=True):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(name="nonResourceURLs", default=())


class Role(View, frozen=True):
    """Also a ClusterRole."""

    metadata: WrittenMeta = WrittenMeta()
    rules: tuple[PolicyRule, ...] = ()


class RoleRef(View, frozen=True):
    kind: str = ""
    name: str = ""


class BindingSubject(View, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class RoleBinding(View, frozen=True):
    """Also a ClusterRoleBinding."""

    metadata: WrittenMeta = WrittenMeta()
    role_ref: RoleRef = RoleRef()
    subjects: tuple[BindingSubject, ...] = ()


class LeaseSpec(View, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: datetime | None = None


class Lease(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: LeaseSpec = LeaseSpec()


class CertificateRequestSpec(View, frozen=True):
    signer_name: str = ""
    username: str = ""


class CertificateRequestStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()
    certificate: str = ""


class CertificateRequest(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: CertificateRequestSpec = CertificateRequestSpec()
    status: CertificateRequestStatus = CertificateRequestStatus()


class AttachmentSource(View, frozen=True):
    persistent_volume_name: str = ""


class AttachmentSpec(View, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeError(View, frozen=True):
    message: str = ""
    time: datetime | None = None


class AttachmentStatus(View, frozen=True):
    attached: bool = False
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(View, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: AttachmentSpec = AttachmentSpec()
    status: AttachmentStatus = AttachmentStatus()
