"""YAML whose values remember where they were written, so that errors can point at them.

Knows nothing about kubeconfigs beyond the error class that a broken one gets.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvestigate.errors import ConfigError

if TYPE_CHECKING:
    import yaml

_TYPE_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


_DEEPEST = 100
"""Levels of nesting; a kubeconfig has about ten."""


def type_name(value: object) -> str:
    """How messages call the type of a YAML value: `a number`."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


class Document:
    """The first document of a YAML text: its plain value, and the position of every part."""

    __slots__ = ("_node", "file", "value")

    def __init__(self, file: str, node: yaml.Node | None, value: object) -> None:
        self.file = file
        self.value = value
        self._node = node

    def where(self, *path: str | int) -> str:
        """`file:line:column` of the value at `path`, or of its nearest existing parent."""
        mark = None
        for node in _walk(self._node, path):
            mark = node.start_mark
        return self.file if mark is None else f"{self.file}:{mark.line + 1}:{mark.column + 1}"


def _walk(node: yaml.Node | None, path: tuple[str | int, ...]) -> Iterator[yaml.Node]:
    for step in (None, *path):
        if step is not None and node is not None:
            node = _child(node, step)
        if node is None:
            return
        yield node


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    import yaml

    if isinstance(step, int):
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        return items[step] if step < len(items) else None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value == step), None)


def parse(file: str, data: bytes) -> Document:
    """The first document in `data`; `file` is only for messages."""
    import yaml

    try:
        text = data.decode("utf-8-sig")
        _check_depth(file, text)
        loader = _loader_class()(text)
        try:
            node = loader.get_node() if loader.check_node() else None
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _not_yaml(file, error) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except ValueError:
        # A scalar that looks like a number and is none; its text may be a secret.
        raise ConfigError(f"{file}: not YAML: a number in it cannot be read") from None
    return Document(file, node, value)


def _check_depth(file: str, text: str) -> None:
    """The C loader builds nodes by recursion: deep enough nesting would crash the interpreter."""
    import yaml

    depth = 0
    for event in yaml.parse(text, _loader_class()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            return
        if depth > _DEEPEST:
            raise ConfigError(f"{file}: nested too deeply to be a kubeconfig")


def _loader_class() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]  # C or Python loader, known only at run time
        """Keeps dates as text, as the YAML-to-JSON reading of kubeconfigs does."""

        yaml_implicit_resolvers = {  # noqa: RUF012  # overrides the library's class attribute
            first: [(tag, regex) for tag, regex in resolvers if not tag.endswith(":timestamp")]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

    return Loader


def _not_yaml(file: str, error: Exception) -> ConfigError:
    # Only the problem and its place: the library's full text quotes the line, secrets included.
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = file if mark is None else f"{file}:{mark.line + 1}:{mark.column + 1}"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    return ConfigError(
        f"{where}: not YAML: {problem}", hint="fix the file at that place, or restore it"
    )


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
        found = []
        for index, item in enumerate(self._items(key)):
            if not isinstance(item, dict):
                raise self.error(
                    f"{key}[{index}] must be a mapping, not {type_name(item)}", key, index
                )
            found.append(Section(self.document, (*self.path, key, index), self.label, item))
        return found

    def _items(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{key} must be a list, not {type_name(value)}", key)
        return value
