"""YAML whose values remember where they were written, so that errors can point at them.

Knows nothing about kubeconfigs beyond the error class that a broken one gets.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvestigate.errors import ConfigError, InputError
from kvestigate.kube.yaml_documents import Node, load_first, nodes_at

_TYPE_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


def type_name(value: object) -> str:
    """How messages call the type of a YAML value: `a number`."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


class Document:
    """The first document of a YAML text: its plain value, and the position of every part."""

    __slots__ = ("_node", "file", "repeated", "value")

    def __init__(
        self, file: str, node: Node | None, value: object, repeated: tuple[str, ...] = ()
    ) -> None:
        self.file = file
        self.value = value
        self.repeated = repeated
        """`line 7: key "a" already set in map`: keys given twice, of which the last counts."""
        self._node = node

    def where(self, *path: str | int) -> str:
        """`file:line:column` of the value at `path`, or of its nearest existing parent."""
        if self._node is None:
            return self.file
        *_, (_, node) = nodes_at(self._node, path)
        return f"{self.file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def parse(file: str, data: bytes) -> Document:
    """The first document in `data`; `file` is only for messages."""
    try:
        loaded = load_first(data, file)
    except InputError as error:
        where = error.where or file
        raise ConfigError(
            f"{where}: not YAML: {error.message.removeprefix(f'{where}: ')}",
            hint=error.hint or "fix the file at that place, or restore it",
        ) from None
    if loaded is None:
        return Document(file, None, None)
    document, node = loaded
    return Document(file, node, document.value, document.repeated)


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping of a document, read field by field with errors that name field and place."""

    document: Document
    path: tuple[str | int, ...]
    label: str
    """How messages call it: `user "admin"`; empty at the top of the file."""
    values: Mapping[str, Any] = field(repr=False)

    def where(self, *keys: str | int) -> str:
        return self.document.where(*self.path, *keys)

    def error(self, message: str, *keys: str | int, hint: str | None = None) -> ConfigError:
        """A failure at the field `keys` of this section."""
        label = f"{self.label}: " if self.label else ""
        return ConfigError(f"{self.where(*keys)}: {label}{message}", hint=hint)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(
                f"{key} must be text, not {type_name(value)}", key, hint=f"quote it: {key}: '...'"
            )
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.error(f"{key} must be true or false, not {type_name(value)}", key)

    def data(self, key: str) -> bytes | None:
        """The bytes of a base64 field; None when it is absent or empty."""
        encoded = self.text(key).replace("\n", "").replace("\r", "")
        try:
            return base64.b64decode(encoded, validate=True) or None
        except (binascii.Error, ValueError):
            # ValueError: characters beyond ASCII.
            raise self.error(
                f"{key} is not base64", key, hint=f"encode it with: base64 -w0 FILE, into {key}"
            ) from None

    def strings(self, key: str) -> tuple[str, ...]:
        items = self._items(key)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise self.error(f"{key}[{index}] must be text, not {type_name(item)}", key, index)
        return tuple(items)

    def section(self, key: str, label: str = "") -> Section | None:
        """The mapping under `key`; None when absent."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(f"{key} must be a mapping, not {type_name(value)}", key)
        return Section(self.document, (*self.path, key), label or self.label, value)

    def sections(self, key: str) -> list[Section]:
        """The mappings in the list under `key`."""
        sections = []
        for index, item in enumerate(self._items(key)):
            if not isinstance(item, dict):
                raise self.error(
                    f"{key}[{index}] must be a mapping, not {type_name(item)}", key, index
                )
            sections.append(Section(self.document, (*self.path, key, index), self.label, item))
        return sections

    def _items(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{key} must be a list, not {type_name(value)}", key)
        return value
