"""What functions cost besides their arguments, and the size of what they make. Pure.

Those that are not listed cost one unit. So do those that sort, slice and flatten lists, for which
kube-apiserver asks more.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kvestigate.kube.cel.sizes import (
    MOST,
    REGEX,
    TRAVERSAL,
    UNKNOWN,
    Part,
    Size,
    capped,
    factored,
    times,
    traversed,
)

Own = tuple[int, Size | None]
Function = Callable[[Part | None, list[Part]], Own]


def _size(part: Part | None) -> Size:
    return UNKNOWN if part is None else part.known_size


def _compared(target: Part | None, args: list[Part]) -> Own:
    if args[0].type.name in _NOMINAL and args[0].type == args[1].type:
        return 1, None
    return factored(min(args[0].known_size.most, args[1].known_size.most), TRAVERSAL), None


_NOMINAL = (
    "net.IP",
    "net.CIDR",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.authorization.Authorizer",
)


def _ordered(target: Part | None, args: list[Part]) -> Own:
    """Numbers are compared at once, text by its characters."""
    kinds = {each.type.name for each in args}
    texts, _ = _compared(target, args)
    if kinds & {"string", "bytes"}:
        return texts, None
    return (max(1, texts) if "dyn" in kinds else 1), None


def _added(target: Part | None, args: list[Part]) -> Own:
    left, right = args[0].known_size, args[1].known_size
    size = Size(capped(left.least + right.least), capped(left.most + right.most))
    kinds = {each.type.name for each in args}
    if kinds & {"string", "bytes"}:
        return traversed(size), size
    if "list" in kinds:
        return 1, size
    return (max(1, traversed(size)), size) if "dyn" in kinds else (1, None)


def _in(target: Part | None, args: list[Part]) -> Own:
    return (1 if args[1].type.name == "map" else max(args[1].known_size.most, 0)), None


def _by_argument(target: Part | None, args: list[Part]) -> Own:
    return traversed(_size(args[0] if args else None)), None


def _parsed(target: Part | None, args: list[Part]) -> Own:
    return (1, None) if not args else _by_argument(target, args)


def _same_text(target: Part | None, args: list[Part]) -> Own:
    size = _size(target if target is not None else args[0])
    return traversed(size), size


def _matched(target: Part | None, args: list[Part]) -> Own:
    text, regex = (target, args[0]) if target is not None else (args[0], args[-1])
    size = _size(text)
    longer = Size(capped(size.least + 1), capped(size.most + 1))
    return times(traversed(longer), traversed(_size(regex), REGEX)), None


def _found(target: Part | None, args: list[Part]) -> Own:
    return _matched(target, args)[0], Size(0, _size(target).most)


def _contained(target: Part | None, args: list[Part]) -> Own:
    return times(traversed(_size(target)), traversed(_size(args[0]))), None


def _split(target: Part | None, args: list[Part]) -> Own:
    size = _size(target)
    most = size.most
    if len(args) > 1 and isinstance(args[1].literal, int):
        most = args[1].literal % (MOST + 1)
    return traversed(size, 2 * TRAVERSAL), Size(0, most)


def _replaced(target: Part | None, args: list[Part]) -> Own:
    size, old, new = _size(target), _size(args[0]), _size(args[1])
    if old.least == 0:
        most = capped(times(capped(size.most + 1), new.most) + size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = times(math.ceil(size.most / old.least), new.most)
    return traversed(size, 2 * TRAVERSAL), Size(0, most)


def _joined(target: Part | None, args: list[Part]) -> Own:
    count, element = _size(target).most, _elements(target).most
    most = times(count, element)
    if args:
        most = capped(most + times(_size(args[0]).most, max(count - 1, 0)))
    size = Size(0, most)
    return traversed(size), size


def _elements(part: Part | None) -> Size:
    if part is None or part.extent is None or part.extent.element is None:
        return UNKNOWN
    return Size(0, part.extent.element.most)


def _each_element(target: Part | None, args: list[Part]) -> Own:
    if target is None:
        return 1, None
    if target.type.name != "list":
        return traversed(target.known_size), None
    cost = 1
    if target.type.params[0].name in ("string", "bytes"):
        cost = capped(1 + traversed(_elements(target)))
    return times(target.known_size.most, cost), None


def _converted(target: Part | None, args: list[Part]) -> Own:
    """Text becomes bytes, up to four for a character."""
    size, kind = _size(args[0]), args[0].type.name
    if kind not in ("string", "dyn"):
        return 1, None
    return max(traversed(size), kind == "dyn"), Size(0, capped(size.most * 4))


def _text_of(target: Part | None, args: list[Part]) -> Own:
    size, kind = _size(args[0]), args[0].type.name
    if kind not in ("bytes", "dyn"):
        return 1, None
    return max(traversed(size), kind == "dyn"), Size(0, size.most)


def _set_compared(factor: int) -> Function:
    def compared(target: Part | None, args: list[Part]) -> Own:
        pairs = times(_size(args[0]).most, _size(args[1]).most)
        return capped(times(pairs, factor) + 1), None

    return compared


def _held_address(fixed: int) -> Function:
    """Addresses are compared byte by byte; text is read first."""

    def held(target: Part | None, args: list[Part]) -> Own:
        read = traversed(_size(args[0])) if args[0].type.name == "string" else 0
        return capped(fixed + read), None

    return held


def _formatted(target: Part | None, args: list[Part]) -> Own:
    return traversed(_size(target)), None


def _validated(target: Part | None, args: list[Part]) -> Own:
    return factored(traversed(_size(args[0])), 128 * REGEX), None


FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("_==_", "_!=_"), _compared),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "_+_": _added,
    "@in": _in,
    **dict.fromkeys(("startsWith", "endsWith"), _by_argument),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _by_argument),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _by_argument),
    "ip": _parsed,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _same_text),
    "matches": _matched,
    **dict.fromkeys(("find", "findAll"), _found),
    "contains": _contained,
    "split": _split,
    "replace": _replaced,
    "join": _joined,
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _each_element
    ),
    "bytes": _converted,
    "string": _text_of,
    "format": _formatted,
    **dict.fromkeys(("sets.contains", "sets.intersects"), _set_compared(1)),
    "sets.equivalent": _set_compared(2),
    "containsIP": _held_address(4),
    "containsCIDR": _held_address(7),
    "ip.isCanonical": lambda target, args: (traversed(_size(args[0]), 2 * TRAVERSAL), None),
    "validate": _validated,
}
