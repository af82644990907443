"""The parts of SARIF 2.1.0 that are used here, as a JSON Schema, nothing else allowed.

The standard's own schema is not packaged for Python. What this one accepts, that one does.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_WORDS: Schema = {"type": "string", "minLength": 1}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_MESSAGE = _object(("text",), text=_WORDS)
_LEVEL: Schema = {"enum": ["none", "note", "warning", "error"]}
_TAGS = _object((), tags={**_array(_WORDS), "uniqueItems": True})
_RULE = _object(("id",), id=_WORDS, shortDescription=_MESSAGE, properties=_TAGS)
_LOGICAL = _object((), name=_WORDS, fullyQualifiedName=_WORDS, kind=_WORDS)
_RESULT = _object(
    ("message",),
    ruleId=_WORDS,
    ruleIndex={"type": "integer", "minimum": -1},
    level=_LEVEL,
    message=_MESSAGE,
    locations=_array(_object((), logicalLocations={**_array(_LOGICAL), "uniqueItems": True})),
    partialFingerprints={"type": "object", "additionalProperties": _WORDS},
)
_INVOCATION = _object(
    ("executionSuccessful",),
    executionSuccessful={"type": "boolean"},
    endTimeUtc={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
    toolExecutionNotifications=_array(_object(("message",), level=_LEVEL, message=_MESSAGE)),
)
_DRIVER = _object(
    ("name",), name=_WORDS, version=_WORDS, rules={**_array(_RULE), "uniqueItems": True}
)

SARIF = _object(
    ("version", "runs"),
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs=_array(
        _object(
            ("tool",),
            tool=_object(("driver",), driver=_DRIVER),
            invocations=_array(_INVOCATION),
            results=_array(_RESULT),
        )
    ),
)
