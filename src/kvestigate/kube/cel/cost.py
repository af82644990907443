"""What an expression may cost at most, told from its text and the extents of its variables.

Units and factors are those of kube-apiserver, which refuses definitions whose rules may become too
expensive; so are its oddities: a value that comes from no variable is taken for the whole object
once something is selected of it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from kvestigate.kube.cel import types
from kvestigate.kube.cel.extents import Extent
from kvestigate.kube.cel.syntax import (
    Call,
    Ident,
    ListOf,
    Literal,
    Make,
    MapOf,
    Node,
    Select,
    qualified,
)
from kvestigate.kube.cel.types import DYN, Type

MOST = 2**64 - 1
_TRAVERSAL, _REGEX = 0.1, 0.25
_LIST, _MAP, _OBJECT = 10, 30, 40
_UNSEEN = Extent()
"""Of what a path leads to that the schema does not have."""


class Size(NamedTuple):
    least: int
    most: int


_UNKNOWN = Size(0, MOST)
_ONE = Size(1, 1)


class Part(msgspec.Struct):
    """What is known of a part of an expression."""

    cost: int
    type: Type = DYN
    size: Size | None = None
    extent: Extent | None = None
    """Of what its path leads to; None if it has no path."""
    entry: Size | None = None
    """Of the elements of a literal."""
    literal: object = None

    @property
    def known_size(self) -> Size:
        if self.size is not None:
            return self.size
        if self.extent is not None and self.extent is not _UNSEEN:
            return Size(0, self.extent.most)
        if _is_scalar(self.type):
            return _ONE
        return _UNKNOWN


def _is_scalar(type_: Type) -> bool:
    if type_.name == "optional_type":
        return _is_scalar(type_.params[0])
    return type_.name in ("bool", "int", "uint", "double", "duration", "timestamp")


def _capped(value: int) -> int:
    return min(value, MOST)


def _factor(value: int, factor: float) -> int:
    return min(math.ceil(float(value) * factor), MOST)


def _traversed(size: Size, factor: float = _TRAVERSAL) -> int:
    return _factor(size.most, factor)


def _times(left: int, right: int) -> int:
    return _capped(left * right)


def estimate(node: Node, types_: Mapping[int, Type], root: Extent) -> int:
    """The most that a run may cost; `types_` are those of all parts, by their identities."""
    return _Coster(types_, root).part(node).cost


class _Coster:
    def __init__(self, types_: Mapping[int, Type], root: Extent) -> None:
        self._types = types_
        self._root = root
        self._locals: dict[str, Part] = {}

    def part(self, node: Node) -> Part:
        type_ = self._types.get(id(node), DYN)
        match node:
            case Literal():
                return Part(0, type_, _literal(node.value), literal=node.value)
            case Ident():
                known = self._locals.get(node.name)
                if known is None:
                    return Part(1, type_, extent=self._root)
                return Part(1, type_, known.size, known.extent, known.entry)
            case Select():
                return self._select(node, type_)
            case Call():
                made = self._call(node)
                made.type = type_
                return made
            case ListOf():
                return self._list(node, type_)
            case MapOf():
                held = [
                    self.part(each) for entry in node.entries for each in (entry.key, entry.value)
                ]
                cost = sum(each.cost for each in held) + _MAP
                return Part(_capped(cost), type_, Size(len(node.entries), len(node.entries)))
            case Make():
                cost = sum(self.part(each.value).cost for each in node.fields) + _OBJECT
                return Part(_capped(cost), type_)
        raise AssertionError(node)

    def _list(self, node: ListOf, type_: Type) -> Part:
        held = [self.part(each) for each in node.elements]
        sizes = [each.known_size for each in held]
        least = min((size.least for size in sizes), default=0)
        entry = Size(least, max((size.most for size in sizes), default=0))
        cost = sum(each.cost for each in held) + _LIST
        return Part(_capped(cost), type_, Size(len(held), len(held)), entry=entry)

    def _select(self, node: Select, type_: Type) -> Part:
        operand = self.part(node.operand)
        if node.tests:
            return Part(operand.cost, type_)
        if node.optional:
            return Part(_capped(operand.cost + 1), type_)
        step = 1 if operand.type.name == "map" or operand.type.fields is not None else 0
        extent = self._root
        if operand.extent is not None:
            extent = operand.extent.fields.get(node.field, _UNSEEN)
        return Part(_capped(operand.cost + step), type_, extent=extent)

    def _inside(self, part: Part) -> Extent:
        """What the elements of a list or the values of a map are."""
        if part.extent is None:
            return self._root
        return part.extent.element or _UNSEEN

    # -- calls ---------------------------------------------------------------------------

    def _call(self, node: Call) -> Part:
        if node.name == "has" and node.target is None and isinstance(node.args[0], Select):
            return self._select(msgspec.structs.replace(node.args[0], tests=True), types.BOOL)
        if node.target is not None and node.name in _LOOPS and id(node.args[0]) not in self._types:
            return self._loop(node)
        args = [self.part(each) for each in node.args]
        if node.target is None:
            return self._function(node.name, None, args)
        if id(node.target) not in self._types:  # no value, but a part of the function's name
            return self._function(f"{qualified(node.target)}.{node.name}", None, args)
        return self._function(node.name, self.part(node.target), args)

    def _function(self, name: str, target: Part | None, args: list[Part]) -> Part:
        given = sum(each.cost for each in args) + (0 if target is None else target.cost)
        match name:
            case "dyn":
                size = args[0].known_size
                known = None if size == _UNKNOWN else size
                return Part(_capped(given + 1), size=known, entry=args[0].entry)
            case "_&&_" | "_||_":
                return Part(_capped(given))
            case "_?_:_":
                condition, first, second = args
                sizes = first.known_size, second.known_size
                size = Size(min(sizes[0].least, sizes[1].least), max(sizes[0].most, sizes[1].most))
                return Part(_capped(condition.cost + max(first.cost, second.cost)), size=size)
            case "_[_]":
                return Part(_capped(given + 1), size=args[0].entry, extent=self._inside(args[0]))
        costs = _FUNCTIONS.get(name)
        own, result = (1, None) if costs is None else costs(target, args)
        return Part(_capped(given + own), size=result)

    def _loop(self, node: Call) -> Part:
        assert node.target is not None
        over = self.part(node.target)
        names, form = _variables(node), _LOOPS[node.name][1]
        declared = [each.name for each in node.args[:names] if isinstance(each, Ident)]
        outer = dict(self._locals)
        for name, held in zip(declared, self._ranged(over, names), strict=True):
            self._locals[name] = held
        bodies = [self.part(each).cost for each in node.args[names:]]
        self._locals = outer
        count = over.known_size
        start, step, end = form(bodies)
        cost = over.cost + start + end + _times(count.most, step)
        return Part(_capped(cost), size=count if start else _ONE)

    def _ranged(self, over: Part, names: int) -> list[Part]:
        """What the variables of a loop are."""
        is_map = over.type.name == "map"
        value = Part(1, extent=self._inside(over))
        key = Part(1, extent=self._root if over.extent is None else over.extent.key or _UNSEEN)
        if names == 2:
            return [key, value]
        return [key if is_map or over.type.is_dynamic else value]


def _literal(value: object) -> Size:
    length = len(value) if isinstance(value, str | bytes) else 1
    return Size(length, length)


# -- loops: what is paid at first, for each round and at last, given what the bodies cost -----


def _all(bodies: list[int]) -> tuple[int, int, int]:
    return 0, 2 + 1 + bodies[0], 1


def _exists(bodies: list[int]) -> tuple[int, int, int]:
    return 0, 3 + 1 + bodies[0], 1


def _exists_one(bodies: list[int]) -> tuple[int, int, int]:
    return 0, bodies[0] + 2, 2


def _filter(bodies: list[int]) -> tuple[int, int, int]:
    return _LIST, bodies[0] + 3 + _LIST, 1


def _collect(bodies: list[int]) -> tuple[int, int, int]:
    return _LIST, sum(bodies) + 2 + _LIST, 1


def _insert(bodies: list[int]) -> tuple[int, int, int]:
    return _MAP, sum(bodies) + 3, 1


Form = Callable[[list[int]], tuple[int, int, int]]

_LOOPS: dict[str, tuple[int, Form]] = {
    "all": (1, _all),
    "exists": (1, _exists),
    "exists_one": (1, _exists_one),
    "existsOne": (2, _exists_one),
    "filter": (1, _filter),
    "map": (1, _collect),
    "sortBy": (1, _collect),
    "transformList": (2, _collect),
    "transformMap": (2, _insert),
    "transformMapEntry": (2, _insert),
    "optMap": (1, _collect),
    "optFlatMap": (1, _collect),
}
_ALSO_PAIRED = ("all", "exists", "exists_one")


def _variables(node: Call) -> int:
    """How many names a loop declares."""
    names, _ = _LOOPS[node.name]
    return 2 if node.name in _ALSO_PAIRED and len(node.args) == 3 else names


# -- functions: what they cost besides their arguments, and the size of what they make ---------

Own = tuple[int, Size | None]
Function = Callable[[Part | None, list[Part]], Own]


def _size(part: Part | None) -> Size:
    return _UNKNOWN if part is None else part.known_size


def _compared(target: Part | None, args: list[Part]) -> Own:
    if args[0].type.name in _NOMINAL and args[0].type == args[1].type:
        return 1, None
    return _factor(min(args[0].known_size.most, args[1].known_size.most), _TRAVERSAL), None


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
    size = Size(_capped(left.least + right.least), _capped(left.most + right.most))
    kinds = {each.type.name for each in args}
    if kinds & {"string", "bytes"}:
        return _traversed(size), size
    if "list" in kinds:
        return 1, size
    return (max(1, _traversed(size)), size) if "dyn" in kinds else (1, None)


def _in(target: Part | None, args: list[Part]) -> Own:
    return (1 if args[1].type.name == "map" else max(args[1].known_size.most, 0)), None


def _by_argument(target: Part | None, args: list[Part]) -> Own:
    return _traversed(_size(args[0] if args else None)), None


def _parsed(target: Part | None, args: list[Part]) -> Own:
    return (1, None) if not args else _by_argument(target, args)


def _same_text(target: Part | None, args: list[Part]) -> Own:
    size = _size(target if target is not None else args[0])
    return _traversed(size), size


def _matched(target: Part | None, args: list[Part]) -> Own:
    text, regex = (target, args[0]) if target is not None else (args[0], args[-1])
    size = _size(text)
    longer = Size(_capped(size.least + 1), _capped(size.most + 1))
    return _times(_traversed(longer), _traversed(_size(regex), _REGEX)), None


def _found(target: Part | None, args: list[Part]) -> Own:
    return _matched(target, args)[0], Size(0, _size(target).most)


def _contained(target: Part | None, args: list[Part]) -> Own:
    return _times(_traversed(_size(target)), _traversed(_size(args[0]))), None


def _split(target: Part | None, args: list[Part]) -> Own:
    size = _size(target)
    most = size.most
    if len(args) > 1 and isinstance(args[1].literal, int):
        most = args[1].literal % (MOST + 1)
    return _traversed(size, 2 * _TRAVERSAL), Size(0, most)


def _replaced(target: Part | None, args: list[Part]) -> Own:
    size, old, new = _size(target), _size(args[0]), _size(args[1])
    if old.least == 0:
        most = _capped(_times(_capped(size.most + 1), new.most) + size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = _times(math.ceil(size.most / old.least), new.most)
    return _traversed(size, 2 * _TRAVERSAL), Size(0, most)


def _joined(target: Part | None, args: list[Part]) -> Own:
    count, element = _size(target).most, _elements(target).most
    most = _times(count, element)
    if args:
        most = _capped(most + _times(_size(args[0]).most, max(count - 1, 0)))
    size = Size(0, most)
    return _traversed(size), size


def _elements(part: Part | None) -> Size:
    if part is None or part.extent is None or part.extent.element is None:
        return _UNKNOWN
    return Size(0, part.extent.element.most)


def _each_element(target: Part | None, args: list[Part]) -> Own:
    if target is None:
        return 1, None
    if target.type.name != "list":
        return _traversed(target.known_size), None
    cost = 1
    if target.type.params[0].name in ("string", "bytes"):
        cost = _capped(1 + _traversed(_elements(target)))
    return _times(target.known_size.most, cost), None


def _converted(target: Part | None, args: list[Part]) -> Own:
    """Text becomes bytes, up to four for a character."""
    size, kind = _size(args[0]), args[0].type.name
    if kind not in ("string", "dyn"):
        return 1, None
    return max(_traversed(size), kind == "dyn"), Size(0, _capped(size.most * 4))


def _text_of(target: Part | None, args: list[Part]) -> Own:
    size, kind = _size(args[0]), args[0].type.name
    if kind not in ("bytes", "dyn"):
        return 1, None
    return max(_traversed(size), kind == "dyn"), Size(0, size.most)


def _set_compared(factor: int) -> Function:
    def compared(target: Part | None, args: list[Part]) -> Own:
        pairs = _times(_size(args[0]).most, _size(args[1]).most)
        return _capped(_times(pairs, factor) + 1), None

    return compared


def _held_address(fixed: int) -> Function:
    """Addresses are compared byte by byte; text is read first."""

    def held(target: Part | None, args: list[Part]) -> Own:
        read = _traversed(_size(args[0])) if args[0].type.name == "string" else 0
        return _capped(fixed + read), None

    return held


def _formatted(target: Part | None, args: list[Part]) -> Own:
    return _traversed(_size(target)), None


def _validated(target: Part | None, args: list[Part]) -> Own:
    return _factor(_traversed(_size(args[0])), 128 * _REGEX), None


_FUNCTIONS: dict[str, Function] = {
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
    "ip.isCanonical": lambda target, args: (_traversed(_size(args[0]), 2 * _TRAVERSAL), None),
    "validate": _validated,
}
