"""JSON patch (RFC 6902) with the leniencies of the library that kube-apiserver applies it with.

Those are: negative array indexes count from the end; `replace` creates a missing object key;
`test` for null passes on a missing key; `copy` of a missing key yields null; a missing `value`
is null; only `replace` and `test` can address the whole document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kvestigate.errors import BadRequest, Invalid, RequestEntityTooLarge
from kvestigate.kube.patches.values import OPERATION, OPERATIONS, mistyped, same

MAX_OPERATIONS: Final = 10_000

MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""Copies may double a document again and again, so their sum is limited."""

MAX_SHIFTED: Final = 50_000_000
"""About 20 ms. Thousands of operations at the beginning of a long array would take much longer."""

_MAX_DEPTH: Final = 10_000
"""No document is as deep: encoders refuse it."""

_INDEX = re.compile("[+-]?[0-9]{1,18}", re.ASCII)


def apply(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """`document` with all operations applied, or an error and no change at all."""
    try:
        return attempt(document, operations)
    except DoesNotApply as problem:
        raise Invalid(
            "the server rejected our request due to an error in our request",
            details={},
            hint=f"operation {problem.position} of the JSON patch: {problem}",
        ) from None


def attempt(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The same for those who tell others what went wrong: DoesNotApply."""
    _check_shape(operations)
    draft = _Draft(document)
    for position, operation in enumerate(operations):
        try:
            _apply_one(draft, operation)
        except DoesNotApply as problem:
            problem.position = position
            raise
    return draft.root


def _check_shape(operations: Any) -> None:
    if not isinstance(operations, list):
        raise BadRequest(f"error decoding patch: {mistyped(operations, OPERATIONS)}")
    for operation in operations:
        if not isinstance(operation, dict):
            raise BadRequest(f"error decoding patch: {mistyped(operation, OPERATION)}")
        for name in ("op", "path", "from"):
            member = operation.get(name)
            if member is not None and not isinstance(member, str):
                problem = mistyped(member, f"struct field jsonPatchOp.{name} of type string")
                raise BadRequest(f"error decoding patch: {problem}")
    if len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}"
        )


class DoesNotApply(Exception):
    """An operation for which the document has no place, or no value to pass its test."""

    position = 0


class FailedTest(DoesNotApply):
    """A `test` operation found another value."""


class _Draft:
    """A document under change: a container is copied the first time that it is written to."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0
        self._shifted = 0
        # By identity; holding the containers keeps their identities from being reused.
        self._own: dict[int, Any] = {}

    def writable(self, path: str) -> tuple[Any, str]:
        """The container that holds the last part of `path`, free to change, and that part."""
        *parents, last = _parts(path)
        self.root = container = self._owned(self.root)
        for part in parents:
            child = self._owned(_step_into(container, part, path))
            if isinstance(container, dict):
                container[part] = child
            else:
                container[_index(part, len(container), path)] = child
            container = child
        return container, last

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own:
            return container
        mine = container.copy() if isinstance(container, dict | list) else container
        self._own[id(mine)] = mine
        return mine

    def read(self, path: str) -> Any:
        """The value at `path`; a missing key of an object reads as null."""
        *parents, last = _parts(path)
        container = self.root
        for part in parents:
            container = _step_into(container, part, path)
        if isinstance(container, dict):
            return container.get(last)
        return container[_index(last, len(container), path)]

    def shift(self, elements: int) -> None:
        """Count the elements of an array that move when one before them comes or goes."""
        self._shifted += elements
        if self._shifted > MAX_SHIFTED:
            raise RequestEntityTooLarge(
                f"the operations of the JSON patch move more than {MAX_SHIFTED} array elements"
            )

    def share(self, value: Any) -> None:
        """Count a value that now stands in two places, and own nothing any more."""
        try:
            self.copied_bytes += len(msgspec.json.encode(value))
        except RecursionError:
            # Copying an object into itself deepens it as fast as it grows.
            raise DoesNotApply("copy operations nest the document too deeply") from None
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise DoesNotApply(f"copy operations add more than {MAX_COPIED_BYTES} bytes")
        self._own.clear()


def _step_into(container: Any, part: str, path: str) -> Any:
    if isinstance(container, dict):
        child = container.get(part)
    else:
        child = container[_index(part, len(container), path)]
    if not isinstance(child, dict | list):
        raise DoesNotApply(f"nothing to enter at {part!r} of path {path!r}")
    return child


def _parts(path: str) -> list[str]:
    if path.count("/") > _MAX_DEPTH:
        raise DoesNotApply(f"a path of more than {_MAX_DEPTH} fields leads nowhere")
    parts = path.split("/")
    if len(parts) < 2:
        raise DoesNotApply(f"path {path!r} names no field, write it like /spec/replicas")
    # What precedes the first slash is ignored, as the server does.
    return [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]


def _index(part: str, length: int, path: str) -> int:
    if not _INDEX.fullmatch(part):
        raise DoesNotApply(f"{part!r} is not an index of an array, in path {path!r}")
    index = int(part)
    if not -length <= index < length:
        raise DoesNotApply(f"index {index} is outside an array of {length}, in path {path!r}")
    return index + length if index < 0 else index


def _apply_one(draft: _Draft, operation: Mapping[str, Any]) -> None:
    name = operation.get("op") or ""
    run = _OPERATIONS.get(name)
    if run is None:
        raise DoesNotApply(f"{name!r} is no operation, use one of {', '.join(_OPERATIONS)}")
    run(draft, operation)


def _pointer(operation: Mapping[str, Any], name: str) -> str:
    path: str | None = operation.get(name)
    if path is None:
        raise DoesNotApply(f"{operation['op']} needs {name!r}")
    return path


def _add(draft: _Draft, operation: Mapping[str, Any]) -> None:
    _add_value(draft, _pointer(operation, "path"), operation.get("value"))


def _add_value(draft: _Draft, path: str, value: Any) -> None:
    container, last = draft.writable(path)
    if isinstance(container, dict):
        container[last] = value
    elif last == "-":
        container.append(value)
    else:
        index = _index(last, len(container) + 1, path)
        draft.shift(len(container) - index)
        container.insert(index, value)


def _remove(draft: _Draft, operation: Mapping[str, Any]) -> None:
    _remove_value(draft, _pointer(operation, "path"))


def _remove_value(draft: _Draft, path: str) -> None:
    container, last = draft.writable(path)
    if isinstance(container, list):
        index = _index(last, len(container), path)
        draft.shift(len(container) - index)
        del container[index]
    elif last in container:
        del container[last]
    else:
        raise DoesNotApply(f"nothing to remove at {path!r}")


def _replace(draft: _Draft, operation: Mapping[str, Any]) -> None:
    path, value = _pointer(operation, "path"), operation.get("value")
    if not path:
        if not isinstance(value, dict | list):
            raise DoesNotApply("the whole document can only become an object or an array")
        draft.root = value
        return
    container, last = draft.writable(path)
    if isinstance(container, dict):
        container[last] = value
    else:
        container[_index(last, len(container), path)] = value


def _move(draft: _Draft, operation: Mapping[str, Any]) -> None:
    source = _pointer(operation, "from")
    value = draft.read(source)
    _remove_value(draft, source)
    _add_value(draft, _pointer(operation, "path"), value)


def _copy(draft: _Draft, operation: Mapping[str, Any]) -> None:
    value = draft.read(_pointer(operation, "from"))
    path = _pointer(operation, "path")
    draft.share(value)
    _add_value(draft, path, value)


def _test(draft: _Draft, operation: Mapping[str, Any]) -> None:
    path = _pointer(operation, "path")
    value = draft.read(path) if path else draft.root
    if not same(value, operation.get("value")):
        raise FailedTest(f"the value at {path!r} is not the one tested for")


_OPERATIONS: Final[Mapping[str, Callable[[_Draft, Mapping[str, Any]], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
