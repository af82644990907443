"""What an expression may cost at most, told from its text and the extents of its variables.

Units and factors are those of kube-apiserver, which refuses definitions whose rules may become too
expensive; so are its oddities: a value that comes from no variable is taken for the whole object
once something is selected of it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from kvestigate.kube.cel import types
from kvestigate.kube.cel.extents import Extent
from kvestigate.kube.cel.function_costs import FUNCTIONS
from kvestigate.kube.cel.sizes import ONE, UNKNOWN, UNSEEN, Part, Size, capped, times
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

_LIST, _MAP, _OBJECT = 10, 30, 40


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
                return Part(capped(cost), type_, Size(len(node.entries), len(node.entries)))
            case Make():
                cost = sum(self.part(each.value).cost for each in node.fields) + _OBJECT
                return Part(capped(cost), type_)
        raise AssertionError(node)

    def _list(self, node: ListOf, type_: Type) -> Part:
        held = [self.part(each) for each in node.elements]
        sizes = [each.known_size for each in held]
        least = min((size.least for size in sizes), default=0)
        entry = Size(least, max((size.most for size in sizes), default=0))
        cost = sum(each.cost for each in held) + _LIST
        return Part(capped(cost), type_, Size(len(held), len(held)), entry=entry)

    def _select(self, node: Select, type_: Type) -> Part:
        operand = self.part(node.operand)
        if node.tests:
            return Part(operand.cost, type_)
        if node.optional:
            return Part(capped(operand.cost + 1), type_)
        step = 1 if operand.type.name == "map" or operand.type.fields is not None else 0
        extent = self._root
        if operand.extent is not None:
            extent = operand.extent.fields.get(node.field, UNSEEN)
        return Part(capped(operand.cost + step), type_, extent=extent)

    def _inside(self, part: Part) -> Extent:
        """What the elements of a list or the values of a map are."""
        if part.extent is None:
            return self._root
        return part.extent.element or UNSEEN

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
                known = None if size == UNKNOWN else size
                return Part(capped(given + 1), size=known, entry=args[0].entry)
            case "_&&_" | "_||_":
                return Part(capped(given))
            case "_?_:_":
                condition, first, second = args
                sizes = first.known_size, second.known_size
                size = Size(min(sizes[0].least, sizes[1].least), max(sizes[0].most, sizes[1].most))
                return Part(capped(condition.cost + max(first.cost, second.cost)), size=size)
            case "_[_]":
                return Part(capped(given + 1), size=args[0].entry, extent=self._inside(args[0]))
        costs = FUNCTIONS.get(name)
        own, result = (1, None) if costs is None else costs(target, args)
        return Part(capped(given + own), size=result)

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
        cost = over.cost + start + end + times(count.most, step)
        return Part(capped(cost), size=count if start else ONE)

    def _ranged(self, over: Part, names: int) -> list[Part]:
        """What the variables of a loop are."""
        is_map = over.type.name == "map"
        value = Part(1, extent=self._inside(over))
        key = Part(1, extent=self._root if over.extent is None else over.extent.key or UNSEEN)
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
