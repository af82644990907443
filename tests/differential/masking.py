"""Replace what differs between any two runs by what it stands for. Pure.

Nothing is merely dropped where its relations can be kept: resource versions become their
rank among all those of the script, uids and addresses their order of appearance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ADDRESS = re.compile(r"\b10\.(?:96|0)\.\d+\.\d+\b")
_JWT = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
_ACCESS_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
_VERSION_IN_TEXT = re.compile(
    r"((?:ResourceVersion in (?:precondition|object meta)|resource version): "
    r"|the ResourceVersion in (?:the precondition|record) \()(\d+)"
)
_OBJECT_IN_TEXT = re.compile(r'"\{\\".*\}"', re.DOTALL)
_PRESENT_IN_TEXT = re.compile(r"(Too large resource version: \d+, current: )\d+")
_SOURCE_IN_TEXT = re.compile(r' in scheme "[^"]+"')
"""Where in its own source the server looked; nothing that clients could use."""
_DUMP_IN_TEXT = re.compile(r"\n@@ -\d+,\d+ \+\d+,\d+ @@\n(?:[ +-].*\n)+(?:@@ .*\n(?:[ +-].*\n)+)*")
"""What changed, as a difference between two dumps of the server's own Go structs."""
_VALUE_IN_TEXT = re.compile(r"(?<= value: )(?=\{|\[\{)")
"""An object that a message shows: the real server prints its own Go structs, with all their fields
and by the names that only Go has; a plane prints what the user wrote."""
_SELF_IN_TEXT = re.compile(r"\bselfType\d+")
"""What the server calls the type of `self` in a rule: another name every time."""
_ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Of service-account tokens: chosen by who sets the server up."""
_AGE = re.compile(r"^(\d+[smhdy])+$")
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
_NODE_PORTS = range(30000, 32768)


def masked(
    exchanges: list[dict[str, Any]], namespace: str, *, managed: bool
) -> list[dict[str, Any]]:
    """The exchanges of one script; `managed` keeps metadata.managedFields."""
    mask = _Mask(exchanges, namespace, managed=managed)
    return [mask.exchange(each) for each in exchanges]


class _Mask:
    def __init__(self, exchanges: list[dict[str, Any]], namespace: str, *, managed: bool) -> None:
        self._managed = managed
        self._uids: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._names = {namespace: "{ns}"}
        versions = set[int]()
        for value in _dicts(exchanges):
            _note_version(value, versions)
            self._note_name(value)
        self._versions = {value: f"<rv {rank}>" for rank, value in enumerate(sorted(versions), 1)}
        self._marks = False
        """Whether this is in a bookmark, which is of no object."""
        self._present = 0
        """The highest version of an object so far."""

    def exchange(self, exchange: dict[str, Any]) -> dict[str, Any]:
        masked = {name: self._value(value, name) for name, value in exchange.items()}
        versions = set[int]()
        for value in _dicts(exchange):
            _note_version(value, versions)
        self._present = max(self._present, *versions, 0)
        return masked

    def _note_name(self, value: dict[str, Any]) -> None:
        base, name = value.get("generateName"), value.get("name")
        if not base or not isinstance(name, str) or not name.startswith(base):
            return
        if _GENERATED.fullmatch(name[len(base) :]):
            self._names[name] = f"{base}?????"

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            if value.get("type") != "BOOKMARK":
                return self._mapping(value)
            self._marks = True
            masked = self._mapping(value)
            self._marks = False
            return masked
        if isinstance(value, list):
            if key == "cells":
                return [self._cell(each) for each in value]
            return [self._value(each, key) for each in value]
        if isinstance(value, str):
            return self._text(value, key)
        if key in ("nodePort", "healthCheckNodePort") and value in _NODE_PORTS:
            return "<node port>"
        return value

    def _mapping(self, value: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for key, each in value.items():
            if key == "managedFields" and not self._managed:
                continue
            if key == "managedFields" and isinstance(each, list):
                each = sorted(each, key=_rank)
            if key == "columnDefinitions" and isinstance(each, list):
                each = [{**column, "description": ""} for column in each]
            result[key] = self._value(each, key)
        if _is_collective(value) and "resourceVersion" in (meta := value["metadata"]):
            result["metadata"]["resourceVersion"] = self._collective(meta["resourceVersion"])
        return result

    def _text(self, text: str, key: str) -> str:
        if key == "resourceVersion":
            return self._collective(text) if self._marks else self._version(text)
        if key == "continue" and text:
            return "<continue>"
        text = _PRESENT_IN_TEXT.sub(r"\1<now>", text)
        text = _SOURCE_IN_TEXT.sub("", text)
        text = _SELF_IN_TEXT.sub("selfType", text)
        text = _DUMP_IN_TEXT.sub("\n<what changed>\n", text)
        text = _without_values(text)
        text = _OBJECT_IN_TEXT.sub('"<object>"', text)
        text = text.replace(_ISSUER, _ISSUER.removesuffix(".cluster.local"))
        for name, shown in self._names.items():
            text = text.replace(name, shown)
        text = _VERSION_IN_TEXT.sub(lambda match: match[1] + self._version(match[2]), text)
        text = _UID.sub(lambda match: _ordinal(self._uids, match[0], "uid"), text)
        text = _ADDRESS.sub(lambda match: _ordinal(self._addresses, match[0], "ip"), text)
        text = _ACCESS_VOLUME.sub("kube-api-access-?????", text)
        return _JWT.sub("<token>", _TIME.sub("<time>", text))

    def _cell(self, cell: Any) -> Any:
        if isinstance(cell, str):
            return "<age>" if _AGE.match(cell) else self._text(cell, "")
        return cell

    def _version(self, text: str) -> str:
        if not text.isdecimal():
            return text
        return self._versions.get(int(text), text)

    def _collective(self, text: str) -> str:
        """A list's version: others write too, so it is only known not to lag behind."""
        if not text.isdecimal() or text == "0":
            return text
        return "<now>" if int(text) >= self._present else self._version(text)


def _without_values(text: str) -> str:
    pieces, position = [], 0
    for match in _VALUE_IN_TEXT.finditer(text):
        if match.start() < position:
            continue  # inside of the last one
        try:
            _, end = _json.raw_decode(text, match.start())
        except json.JSONDecodeError:
            continue
        pieces += [text[position : match.start()], "<object>"]
        position = end
    return "".join(pieces) + text[position:]


_json = json.JSONDecoder()


def _rank(entry: dict[str, Any]) -> list[str]:
    """Of an entry among those of its object, had all that were made in this run the same second.

    Servers put the older of two first, and those of one second in the order of their names: what
    comes first would depend on whether a second ended between two steps.
    """
    year = str(entry.get("time", ""))[:4]
    names = (str(entry.get(key, "")) for key in ("manager", "apiVersion", "subresource"))
    return [str(entry.get("operation")), year, *names]


def _note_version(value: dict[str, Any], versions: set[int]) -> None:
    """Those of objects, not of lists."""
    if _is_collective(value) or value.get("type") == "BOOKMARK":
        return
    meta = value.get("metadata")
    text = meta.get("resourceVersion", "") if isinstance(meta, dict) else ""
    if isinstance(text, str) and text.isdecimal() and text != "0":
        versions.add(int(text))


def _is_collective(value: dict[str, Any]) -> bool:
    kind = value.get("kind")
    return (
        isinstance(kind, str)
        and (kind.endswith("List") or kind == "Table")
        and isinstance(value.get("metadata"), dict)
    )


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        if value.get("type") == "BOOKMARK":
            return
        for each in value.values():
            yield from _dicts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _dicts(each)


def _ordinal(known: dict[str, str], value: str, what: str) -> str:
    return known.setdefault(value, f"<{what} {len(known) + 1}>")
