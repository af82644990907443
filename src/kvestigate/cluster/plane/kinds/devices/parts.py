"""What claims, classes and slices of devices have in common: names, taints, expressions. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes
from kvestigate.kube.cel import CompileError, compiled
from kvestigate.kube.devices.selectors import DEVICE

EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_IDENTIFIER_MAX = 32
_SELECTORS_MAX, _SELECTOR_MAX, _PARAMETERS_MAX = 32, 10 * 1024, 10 * 1024
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_NO_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    f"validation is '{_IDENTIFIER}')"
)


def qualified_name(path: str, name: str) -> Causes:
    """`gpu.example.com/memory`, or only what follows the slash."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from _identifier(path, name)
        return
    if "/" in identifier:  # which the server does not look at
        return
    if not domain:
        yield causes.invalid(path, "", "the domain must not be empty")
    else:
        yield from checks.driver_name(path, domain)
    if not identifier:
        yield causes.invalid(path, "", "the name must not be empty")
    else:
        yield from _identifier(path, identifier)


def _identifier(path: str, name: str) -> Causes:
    if len(name) > _IDENTIFIER_MAX:
        yield causes.too_long(path, _IDENTIFIER_MAX)
    if not _is_identifier(name):
        yield causes.invalid(path, name, _NO_IDENTIFIER)


def fully_qualified_name(path: str, name: str) -> Causes:
    yield from qualified_name(path, name)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        yield causes.invalid(path, name, why)


def few(path: str, items: Sequence[Any], most: int, check: Callable[[str, Any], Causes]) -> Causes:
    """Check each item of a list; only the length is reported if the list is too long."""
    if len(items) > most:
        yield causes.too_many(path, len(items), most)
        return
    for index, item in enumerate(items):
        yield from check(f"{path}[{index}]", item)


def once(path: str, keys: Iterable[str]) -> Causes:
    seen: set[str] = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield causes.duplicate(f"{path}[{index}]", key)
        seen.add(key)


def taint(path: str, value: Object) -> Causes:
    yield from checks.label_key(f"{path}.key", value.get("key", ""))
    yield from _label_value(f"{path}.value", value.get("value", ""))
    yield from checks.one_of(f"{path}.effect", value.get("effect", ""), EFFECTS)


def toleration(path: str, wish: Object) -> Causes:
    operator, value, effect = wish["operator"], wish.get("value", ""), wish.get("effect", "")
    if key := wish.get("key"):
        yield from checks.label_key(f"{path}.key", key)
    if operator == "Exists" and value:
        yield causes.invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from _label_value(f"{path}.value", value)
    yield from checks.one_of(f"{path}.operator", operator, _OPERATORS)
    if effect and effect not in EFFECTS:
        yield causes.unsupported(f"{path}.effect", effect, EFFECTS)


def _label_value(path: str, value: str) -> Causes:
    return checks.each(path, value, names.label_value_problems(value))


def selectors(path: str, listed: Sequence[Object]) -> Causes:
    return few(path, listed, _SELECTORS_MAX, _selector)


def _selector(path: str, selector: Object) -> Causes:
    if "cel" not in selector:
        yield causes.required(f"{path}.cel")
        return
    at, source = f"{path}.cel.expression", selector["cel"].get("expression", "")
    if len(source.encode()) > _SELECTOR_MAX:
        yield causes.too_long(at, _SELECTOR_MAX)
    elif "cel.bind(" in source:
        return  # a macro that only these expressions have
    elif why := _unfit(source):
        yield causes.invalid(at, source, why)


def _unfit(source: str) -> str:
    try:
        made = compiled(source, {"device": DEVICE})
    except CompileError as error:
        return f"compilation failed: {error}"
    if made.type.name not in ("bool", "dyn", "any"):
        return f"must evaluate to bool or the unknown type, not {made.type}"
    return ""


def configuration(path: str, config: Object) -> Causes:
    if "opaque" not in config:
        yield causes.required(f"{path}.opaque")
        return
    settings, at = config["opaque"], f"{path}.opaque"
    yield from checks.driver_name(f"{at}.driver", settings.get("driver", ""))
    parameters = settings.get("parameters")
    if parameters is None:
        yield causes.required(f"{at}.parameters")
    elif len(msgspec.json.encode(parameters)) > _PARAMETERS_MAX:
        yield causes.too_long(f"{at}.parameters", _PARAMETERS_MAX)
    elif not isinstance(parameters, dict):
        why = "must be a valid JSON object"
        yield causes.invalid(f"{at}.parameters", "<value omitted>", why)
