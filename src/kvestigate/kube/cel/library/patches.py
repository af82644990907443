"""What expressions that make patches know beyond others: `Object`, `JSONPatch` and its keys."""

from __future__ import annotations

from typing import Any

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.messages import AnyFields, Message
from kvestigate.kube.cel.types import DYN, STRING, Field, Type
from kvestigate.kube.cel.values import Duration, Made, Timestamp, Uint

OBJECT, JSON_PATCH = "Object", "JSONPatch"
_ANYTHING = AnyFields()
_GO_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    Uint: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    list: "[]ref.Val",
    dict: "map[ref.Val]ref.Val",
    Duration: "time.Duration",
    Timestamp: "time.Time",
}


class _OperationFields(dict[str, Field]):
    """Hashable by what it is: there is one."""

    def __hash__(self) -> int:  # type: ignore[override] # dicts have none
        return id(self)


_OPERATION = Type(
    JSON_PATCH,
    (),
    _OperationFields(
        {name: Field(name, STRING) for name in ("op", "path", "from")}
        | {"value": Field("value", DYN)}
    ),
)


def _operation(fields: dict[str, Any]) -> Made:
    for name in ("op", "path", "from"):
        value = fields.get(name, "")
        if not isinstance(value, str):
            shown = _GO_TYPES.get(type(value), type(value).__name__)
            raise EvalError(f"unexpected type {shown} for JSONPatchType '{name}' field")
    return Made(JSON_PATCH, fields)


def messages(name: str) -> Message | None:
    """Objects are named after the fields that lead to them: `Object.spec.containers`."""
    if name == JSON_PATCH:
        return Message(_OPERATION, _operation)
    if name == OBJECT or name.startswith(f"{OBJECT}."):
        return Message(Type(name, (), _ANYTHING), lambda fields: Made(name, fields))
    return None


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


FUNCTIONS = {"jsonpatch.escapeKey(string) -> string": _escape_key}
