"""Selectors in questions about permissions: whether they can be meant, and what is ignored. Pure.

RBAC looks at no selector; the rights of kubelets depend on one. Who asks is told which of theirs
could not have been looked at.
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
    """Why the selectors of `resourceAttributes` are refused."""
    yield from _problems(attributes, _FIELDS, _field_requirement)
    yield from _problems(attributes, _LABELS, _label_requirement)


def fields(attributes: Attributes) -> str:
    """The field selector of a request that is asked about, as far as it can be understood."""
    selector = attributes.get(_FIELDS) or {}
    raw: str = selector.get("rawSelector", "")
    terms = [
        FieldTerm(each["key"], each["values"][0], each["operator"] == "NotIn")
        for each in selector.get("requirements") or ()
        if _is_field_test(each)
    ]
    return raw or ",".join(map(str, terms))


def ignored(attributes: Attributes) -> str:
    """What of the selectors cannot be understood; empty if all can."""
    found = [
        *_ignored(attributes, _FIELDS, field_selectors.parse_fields, _is_field_test),
        *_ignored(attributes, _LABELS, selectors.parse_labels, _is_label_test),
    ]
    return "; ".join(found)


def _problems(
    attributes: Attributes, name: str, requirement: Callable[[str, Attributes], Iterator[Cause]]
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
    for index, each in enumerate(requirements):
        yield from requirement(f"{path}.requirements[{index}]", each)


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
    understood: Callable[[Attributes], bool],
) -> Iterator[str]:
    selector = attributes.get(name) or {}
    requirements = selector.get("requirements") or []
    clear = sum(map(understood, requirements))
    try:
        parse(selector.get("rawSelector", ""))
    except InputError:
        clear = -1
    if clear < 0 or (requirements and not clear):
        yield f"{_ROOT}.{name} ignored due to parse error"
    elif clear < len(requirements):
        yield f"{_ROOT}.{name} partially ignored due to parse error"


def _is_field_test(requirement: Attributes) -> bool:
    """Fields can be compared with one value, and that is all."""
    return requirement.get("operator") in checks.SETS and len(requirement.get("values") or ()) == 1


def _is_label_test(requirement: Attributes) -> bool:
    return requirement.get("operator") in (*checks.SETS, *checks.PRESENCE)
