"""What a definition of a custom resource must say. Pure.

Paths follow kube-apiserver's, which moves what all versions have in common to the top before
it judges: the schema of a single version is `spec.validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.custom import jsonpath, parts, structural
from kvestigate.cluster.plane.kinds.policies import webhooks
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = re.compile(r"(?:.*\.)?(?:k8s|kubernetes)\.io")
_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_AT_ROOT = (
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
"""What the schema of an object with a status of its own may say."""
_SIMPLE = "must be a simple json path starting with ."


def check_name(obj: Object) -> Causes:
    name, names_ = obj["metadata"].get("name", ""), obj["spec"]["names"]
    if name != f"{names_.get('plural', '')}.{obj['spec'].get('group', '')}":
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def check(obj: Object) -> Causes:
    spec, group = obj["spec"], obj["spec"].get("group", "")
    versions: Sequence[Object] = spec.get("versions") or ()
    yield from _approval(obj["metadata"], group)
    yield from _group(group)
    yield from checks.one_of("spec.scope", spec.get("scope", ""), _SCOPES)
    if spec.get("preserveUnknownFields"):
        if any(map(_has_defaults, schemas(spec))):
            why = "must be false in order to use defaults in the schema"
            yield causes.invalid("spec.preserveUnknownFields", True, why)
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield causes.invalid("spec.preserveUnknownFields", True, why)
    yield from _versions(spec, versions)
    yield from _names(spec["names"])
    for value, path in _parts(versions, "schema", "spec.validation"):
        schema = value.get("openAPIV3Schema")
        if schema is not None:
            if _has_status(versions, path):
                yield from _root_with_status(schema, f"{path}.openAPIV3Schema")
            yield from structural.check(schema, f"{path}.openAPIV3Schema")
    for value, path in _parts(versions, "additionalPrinterColumns"):
        for index, column in enumerate(value):
            yield from _column(column, f"{path}[{index}]")
    for value, path in _parts(versions, "subresources"):
        if (scale := value.get("scale")) is not None:
            yield from _scale(scale, f"{path}.scale")
    yield from _selectable(versions)
    yield from _conversion(spec["conversion"])
    yield from _stored(obj, versions)


def _has_status(versions: Sequence[Object], path: str) -> bool:
    """Whether the schema at this path is one of objects with a status of its own."""
    return any(
        "status" in (version.get("subresources") or {})
        for index, version in enumerate(versions)
        if not path.startswith("spec.versions") or path == f"spec.versions[{index}].schema"
    )


def _root_with_status(schema: Object, path: str) -> Causes:
    """Refuse keywords at the root that a write to the status would not check."""
    if schema.get("type", "object") != "object":
        why = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        yield causes.invalid(f"{path}.type", schema["type"], why)
    elif others := [field for field, value in schema.items() if value and field not in _AT_ROOT]:
        why = (
            f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema if the "
            "status subresource is enabled"
        )
        yield causes.invalid(path, others, why)


def schemas(spec: Object) -> Iterator[Object]:
    for version in spec.get("versions") or ():
        if schema := (version.get("schema") or {}).get("openAPIV3Schema"):
            yield schema


def _has_defaults(schema: Mapping[str, Any]) -> bool:
    return schema.get("default") is not None or any(
        _has_defaults(inner) for inner, _ in parts.notable(schema, "")
    )


def _parts(versions: Sequence[Object], key: str, shared: str = "") -> Iterator[tuple[Any, str]]:
    """What the versions say under a key, with the path under which it is judged."""
    if versions and all(version.get(key) == versions[0].get(key) for version in versions):
        if versions[0].get(key):
            yield versions[0][key], shared or f"spec.{key}"
        return
    for index, version in enumerate(versions):
        if version.get(key):
            yield version[key], f"spec.versions[{index}].{key}"


def is_protected(group: str) -> bool:
    """Whether the group is one that the Kubernetes community gives out."""
    return _PROTECTED.fullmatch(group) is not None


def _approval(meta: Mapping[str, Any], group: str) -> Causes:
    approval = (meta.get("annotations") or {}).get(APPROVAL, "")
    path = f"metadata.annotations[{APPROVAL}]"
    if not is_protected(group):
        return
    if not approval:
        why = (
            f'protected groups must have approval annotation "{APPROVAL}", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield causes.required(path, why)
    elif not approval.startswith("unapproved") and not re.match(r"https?://[^/]+", approval):
        why = (
            'protected groups must have approval annotation "api-approved.kubernetes.io" with '
            'either a URL or a reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield causes.invalid(path, approval, why)


def _group(group: str) -> Causes:
    if not group:
        yield causes.required("spec.group")
        return
    problems = names.subdomain_problems(group)
    yield from checks.each("spec.group", group, problems)
    if not problems and "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(spec: Object, versions: Sequence[Object]) -> Causes:
    listed = [version.get("name", "") for version in versions]
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from checks.each(
            f"{path}.name", listed[index], names.label_1035_problems(listed[index])
        )
        if version.get("deprecationWarning") and not version.get("deprecated"):
            why = "can only be set for deprecated versions"
            warning = version["deprecationWarning"]
            yield causes.invalid(f"{path}.deprecationWarning", warning, why)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield causes.required(f"{path}.schema.openAPIV3Schema")
    if len(set(listed)) < len(listed):
        yield causes.invalid("spec.versions", listed, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield causes.invalid("spec.versions", listed, why)
    if listed and listed[0]:  # the old field, which still stands for the first version
        yield from checks.each("spec.version", listed[0], names.label_1035_problems(listed[0]))


def _names(wanted: Object) -> Causes:
    for field in ("plural", "singular", "kind", "listKind"):
        path, value = f"spec.names.{field}", wanted.get(field, "")
        if not value:
            yield causes.required(path)
        elif field in ("kind", "listKind"):
            yield from _mixed(path, value)
        else:
            yield from checks.each(path, value, names.label_1035_problems(value))
    for field in ("shortNames", "categories"):
        for index, value in enumerate(wanted.get(field) or ()):
            path = f"spec.names.{field}[{index}]"
            yield from checks.each(path, value, names.label_1035_problems(value))
    if wanted.get("kind") and wanted.get("kind") == wanted.get("listKind"):
        why = "kind and listKind may not be the same"
        yield causes.invalid("spec.names.listKind", wanted["listKind"], why)


def _mixed(path: str, value: str) -> Causes:
    for problem in names.label_1035_problems(value.lower()):
        why = f"may have mixed case, but should otherwise match: {problem}"
        yield causes.invalid(path, value, why)


def _column(column: Object, path: str) -> Causes:
    if not column.get("name"):
        yield causes.required(f"{path}.name")
    choices = (("type", _COLUMN_TYPES), ("format", _COLUMN_FORMATS))
    for field, allowed in choices:
        value = column.get(field, "")
        if not value and field == "type":
            why = f"must be one of {','.join(allowed)}"
            yield causes.required(f"{path}.type", why)
        elif value and value not in allowed:
            why = f"must be one of {','.join(allowed)}"
            yield causes.invalid(f"{path}.{field}", value, why)
    source = column.get("jsonPath", "")
    if not source:
        yield causes.required(f"{path}.JSONPath")
    elif not source.startswith("."):
        yield causes.invalid(f"{path}.JSONPath", source, _SIMPLE)


def _scale(scale: Object, path: str) -> Causes:
    homes = {
        "specReplicasPath": (("spec",), "should be a json path under .spec"),
        "statusReplicasPath": (("status",), "should be a json path under .status"),
        "labelSelectorPath": (
            ("spec", "status"),
            "should be a json path under either .spec or .status",
        ),
    }
    for field, (roots, why) in homes.items():
        source = scale.get(field, "")
        if not source:
            if field != "labelSelectorPath":
                yield causes.required(f"{path}.{field}")
        elif not source.startswith("."):
            yield causes.invalid(f"{path}.{field}", source, _SIMPLE)
        elif not any(source.startswith(f".{root}.") for root in roots):
            yield causes.invalid(f"{path}.{field}", source, why)


def _selectable(versions: Sequence[Object]) -> Causes:
    for version in versions:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        fields, path = version.get("selectableFields"), "spec.selectableFields"
        for index, field in enumerate(fields or ()):
            source = field.get("jsonPath", "")
            at = f"{path}[{index}].jsonPath"
            if not source:
                yield causes.required(at)
            elif not source.startswith((".", "[")):
                got = re.split(r"[.\[\]]", source)[0]
                why = f"is an invalid path: expected [ or . but got: {got}"
                yield causes.invalid(at, source, why)
            else:
                yield from _selected(schema, source, at)
                if any(source == other.get("jsonPath") for other in (fields or ())[:index]):
                    yield causes.duplicate(at, source)


def _selected(schema: Object | None, path: str, at: str) -> Causes:
    """Selectable fields must be strings, booleans or integers in the schema."""
    names_ = jsonpath.names(path)
    for name in names_:
        schema = ((schema or {}).get("properties") or {}).get(name)
    if schema is None:
        yield causes.invalid(at, path, "is an invalid path: does not refer to a valid field")
        return
    if names_[0] == "metadata":
        yield causes.invalid(at, path, "must not point to fields in metadata")
    if schema.get("type") not in ("string", "integer", "boolean"):
        why = (
            "must point to a field of type string, boolean or integer. Enum string fields and "
            "strings with formats are allowed."
        )
        yield causes.invalid(at, path, why)


def _conversion(conversion: Object) -> Causes:
    strategy, webhook = conversion["strategy"], conversion.get("webhook")
    if not strategy:
        yield causes.required("spec.conversion.strategy")
    elif strategy not in ("None", "Webhook"):
        yield causes.unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if "clientConfig" in (webhook or {}):
            yield causes.forbidden("spec.conversion.webhookClientConfig", why)
        if (webhook or {}).get("conversionReviewVersions"):
            yield causes.forbidden("spec.conversion.conversionReviewVersions", why)
    else:
        settings = webhook or {}
        at = "spec.conversion.webhookClientConfig"
        if (config := settings.get("clientConfig")) is None:
            yield causes.required(at, "required when strategy is set to Webhook")
        else:
            yield from webhooks.validate_client(at, config)
        at = "spec.conversion.conversionReviewVersions"
        if versions := settings.get("conversionReviewVersions"):
            yield from webhooks.validate_review_versions(at, versions)
        else:
            yield causes.required(at)


def _stored(obj: Object, versions: Sequence[Object]) -> Causes:
    stored = (obj.get("status") or {}).get("storedVersions")
    path = "status.storedVersions"
    if not stored:
        yield causes.invalid(path, stored, "must have at least one stored version")
        return
    listed = [version.get("name") for version in versions]
    for index, name in enumerate(stored):
        if name not in listed:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield causes.invalid(f"{path}[{index}]", name, why)
    kept = [version.get("name") for version in versions if version.get("storage")]
    if kept and kept[-1] not in stored:
        yield causes.invalid(path, stored, f"must have the storage version {kept[-1]}")
