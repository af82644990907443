"""Checks that validators of many kinds share, each yielding the causes it finds. Pure.

Paths are plain text (`spec.containers[0].image`): most objects are valid, and a string costs
less to extend than to explain.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause, Causes

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"
INT32_MAX = 2**31 - 1
_DRIVER_MAX = 63


Rule = Callable[[str, Any], Causes]
"""Finds what is wrong with the value at a path. Most checks of this module are rules."""


def fields(path: str, obj: Mapping[str, Any], rules: Mapping[str, Rule]) -> Causes:
    """Put the rules to those fields that the object has, in the order of the rules."""
    for field in filter(obj.__contains__, rules):
        yield from rules[field](f"{path}.{field}" if path else field, obj[field])


def choice_of(*allowed: str) -> Rule:
    return lambda path, value: choice(path, value, allowed)


def within(low: int, high: int) -> Rule:
    """A number between two others, or one of them."""
    why = between(low, high)
    return lambda path, value: () if low <= value <= high else [causes.invalid(path, value, why)]


def items(rule: Rule) -> Rule:
    """The rule for lists whose items obey another."""

    def check(path: str, values: Sequence[Any]) -> Causes:
        for index, value in enumerate(values):
            yield from rule(f"{path}[{index}]", value)

    return check


def required(path: str, obj: Mapping[str, Any], *names: str) -> Causes:
    """Fields that must be there, and not be empty."""
    return [causes.required(f"{path}.{name}") for name in names if not obj.get(name)]


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def each(path: str, value: Any, problems: Sequence[str]) -> Sequence[Cause]:
    """One cause a problem with the value."""
    return [causes.invalid(path, value, problem) for problem in problems] if problems else ()


def driver_name(path: str, name: str) -> Causes:
    """The name of a CSI driver, or of one for devices."""
    if len(name) > _DRIVER_MAX:
        yield causes.too_long(path, _DRIVER_MAX)
    yield from needed(path, name, lambda text: names.subdomain_problems(text.lower()))


def label(path: str, value: str) -> Causes:
    return each(path, value, names.label_problems(value))


def subdomain(path: str, value: str) -> Causes:
    return each(path, value, names.subdomain_problems(value))


def label_key(path: str, value: str) -> Causes:
    return each(path, value, names.qualified_name_problems(value))


def labels(path: str, value: Mapping[str, str]) -> Causes:
    for key, text in value.items():
        yield from label_key(path, key)
        yield from each(path, text, names.label_value_problems(text))


def annotation_keys(path: str, value: Mapping[str, str]) -> Causes:
    for key in value:
        yield from each(path, key, names.qualified_name_problems(key.lower()))


# These are asked most often and nearly always find nothing, so they are no generators.


def not_negative(path: str, value: int) -> Causes:
    return () if value >= 0 else [causes.invalid(path, value, NOT_NEGATIVE)]


def port_number(path: str, value: int) -> Causes:
    if 1 <= value <= 65535:
        return ()
    return [causes.invalid(path, value, between(1, 65535))]


def port(path: str, value: int | str) -> Causes:
    """The number or the name of a port."""
    if isinstance(value, int):
        return port_number(path, value)
    return each(path, value, names.port_name_problems(value))


def choice(path: str, value: Any, allowed: Sequence[str]) -> Causes:
    return () if value in allowed else [causes.unsupported(path, value, allowed)]


def needed(path: str, value: str, problems: Callable[[str], Sequence[str]]) -> Causes:
    """A name that must be there, and in its form."""
    return each(path, value, problems(value)) if value else [causes.required(path)]


def one_of(path: str, value: str, allowed: Sequence[str]) -> Causes:
    """A choice that must be made: nothing is another mistake than something else."""
    if value in allowed:
        return ()
    return [causes.unsupported(path, value, allowed) if value else causes.required(path)]


def immutable(path: str, new: Mapping[str, Any], old: Mapping[str, Any], *names: str) -> Causes:
    """Fields of an object, or of the part at a path, that may not change."""
    return [
        causes.invalid(f"{path}.{name}" if path else name, new.get(name), IMMUTABLE)
        for name in names
        if new.get(name) != old.get(name)
    ]


@lru_cache(maxsize=1024)  # those of a node are in the status of each of its pods
def address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in value else ipaddress.ip_address(value)
    except ValueError:
        return None


def ip(path: str, value: str) -> Causes:
    return each(path, value, ip_problems(value))


def ip_problems(value: str) -> list[str]:
    parsed = address(value)
    if parsed is None:
        if address(_without_zeros(value)) is not None:
            return ["must not have leading 0s"]
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if parsed.version == 6 and parsed.ipv4_mapped:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def network(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """A CIDR, also one whose address lies within the network."""
    try:
        return ipaddress.ip_network(value, strict=False) if "/" in value else None
    except ValueError:
        return None


def cidr(path: str, value: str) -> Causes:
    parsed, start = network(_without_zeros(value)), address(value.partition("/")[0])
    if parsed is None:
        why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    elif network(value) is None or _without_zeros(value) != value:
        why = "must not have leading 0s in IP or prefix length"
    elif start and start.version == 6 and start.ipv4_mapped:
        why = "must not have an IPv4-mapped IPv6 address"
    elif start != parsed.network_address:
        why = "must not have bits set beyond the prefix length"
    else:
        return
    yield causes.invalid(path, value, why)


def _without_zeros(value: str) -> str:
    """An address that older software may read as octal, as it was meant."""
    return _LEADING_ZEROS.sub(r"\1", value)


_LEADING_ZEROS = re.compile(r"(^|[./])0+(?=\d)")


def path_segment(path: str, value: str) -> Causes:
    """Something's name in a URL, which must be there."""
    return needed(path, value, names.path_segment_problems)


_URL_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_url_path = re.compile(_URL_PATH).fullmatch


def domain_prefixed_path(path: str, value: str) -> Causes:
    """`example.com/controller`"""
    host, _, rest = value.partition("/")
    if not value:
        yield causes.required(path)
    elif not host or not rest:
        yield causes.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from subdomain(path, host)
        if not _is_url_path(rest):
            why = f"Invalid path (regex used for validation is '{_URL_PATH}')"
            yield causes.invalid(path, rest, why)


SETS, PRESENCE = ("In", "NotIn"), ("Exists", "DoesNotExist")
VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
VALUES_BARRED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
NO_OPERATOR = "not a valid selector operator"


def label_selector(path: str, selector: Mapping[str, Any] | None) -> Causes:
    """A LabelSelector; None is one that was not given."""
    if selector is None:
        return
    yield from labels(f"{path}.matchLabels", selector.get("matchLabels") or {})
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from selector_requirement(f"{path}.matchExpressions[{index}]", requirement)


def selector_requirement(path: str, requirement: Mapping[str, Any]) -> Causes:
    """One of `matchExpressions`."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    yield from selector_values(path, requirement)
    if operator not in (*SETS, *PRESENCE):
        yield causes.invalid(f"{path}.operator", operator, NO_OPERATOR)
    yield from label_key(f"{path}.key", requirement.get("key", ""))
    for index, value in enumerate(values):
        yield from each(f"{path}.values[{index}]", value, names.label_value_problems(value))


def selector_values(path: str, requirement: Mapping[str, Any]) -> Causes:
    """Whether there are as many values as the operator needs."""
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in SETS and not values:
        yield causes.required(f"{path}.values", VALUES_NEEDED)
    elif operator in PRESENCE and values:
        yield causes.forbidden(f"{path}.values", VALUES_BARRED)


_CONTEXT = 3


def difference(old: Any, new: Any) -> str:
    """A unified diff of the two as indented JSON, without the names of files."""
    lines = difflib.unified_diff(_json_lines(old), _json_lines(new), lineterm="", n=_CONTEXT)
    return "".join(f"{line}\n" for line in list(lines)[2:])


def _json_lines(value: Any) -> list[str]:
    encoded = msgspec.json.encode(value, order="sorted")
    return msgspec.json.format(encoded, indent=1).decode().splitlines()
