"""Selectors in access reviews: which are invalid, and which are ignored. Pure.

RBAC ignores selectors; the node authorizer looks at the field selector. The answer to a review
names the selectors that could not be parsed, and so were ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.errors import InputError
from kvestigate.kube import causes, field_selectors, selectors
from kvestigate.kube.causes import Cause
from kvestigate.kube.field_selectors import FieldTerm

Attributes = Mapping[str, Any]

_ROOT = "spec.resourceAttributes"
_FIELDS, _LABELS = "fieldSelector", "labelSelector"


def problems(attributes: Attributes) -> Iterator[Cause]:
    """What is invalid in the selectors of `resourceAttributes`."""
    yield from _problems(attributes, _FIELDS, _field_requirement)
    yield from _problems(attributes, _LABELS, _label_requirement)


def fields(attributes: Attributes) -> str:
    """The field selector of the reviewed request, without the requirements that are ignored."""
    selector = attributes.get(_FIELDS) or {}
    raw: str = selector.get("rawSelector", "")
    terms = [
        FieldTerm(requirement["key"], requirement["values"][0], requirement["operator"] == "NotIn")
        for requirement in selector.get("requirements") or ()
        if _is_field_requirement(requirement)
    ]
    return raw or ",".join(map(str, terms))


def ignored(attributes: Attributes) -> str:
    """Which selectors are ignored because they cannot be parsed; empty if none is."""
    texts = [
        *_ignored(attributes, _FIELDS, field_selectors.parse_fields, _is_field_requirement),
        *_ignored(attributes, _LABELS, selectors.parse_labels, _is_label_requirement),
    ]
    return "; ".join(texts)


def _problems(
    attributes: Attributes, name: str, check: Callable[[str, Attributes], Iterator[Cause]]
) -> Iterator[Cause]:
    selector = attributes.get(name)
    if selector is None:
        return
    path = f"{_ROOT}.{name}"
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    if raw and requirements:
        why = "may not specified at the same time as requirements"
        yield causes.invalid(f"{path}.rawSelector", raw, why)
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        yield causes.required(f"{path}.requirements", why)
    for index, value in enumerate(requirements):
        yield from check(f"{path}.requirements[{index}]", value)


def _field_requirement(path: str, requirement: Attributes) -> Iterator[Cause]:
    if not requirement.get("key"):
        yield causes.required(f"{path}.key", "must be specified")
    yield from checks.selector_values(path, requirement)


def _label_requirement(path: str, requirement: Attributes) -> Iterator[Cause]:
    yield from checks.selector_requirement(path, requirement, any_operator=True)


def _ignored(
    attributes: Attributes,
    name: str,
    parse: Callable[[str], object],
    is_valid: Callable[[Attributes], bool],
) -> Iterator[str]:
    selector = attributes.get(name) or {}
    requirements = selector.get("requirements") or []
    valid = sum(map(is_valid, requirements))
    try:
        parse(selector.get("rawSelector", ""))
    except InputError:
        valid = -1
    if valid < 0 or (requirements and not valid):
        yield f"{_ROOT}.{name} ignored due to parse error"
    elif valid < len(requirements):
        yield f"{_ROOT}.{name} partially ignored due to parse error"


def _is_field_requirement(requirement: Attributes) -> bool:
    """Whether a field is compared with exactly one value."""
    return requirement.get("operator") in checks.SETS and len(requirement.get("values") or ()) == 1


def _is_label_requirement(requirement: Attributes) -> bool:
    return requirement.get("operator") in (*checks.SETS, *checks.PRESENCE)
