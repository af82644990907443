"""`has` and the loops: what looks like a call, but gives its arguments names of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvestigate.kube.cel import types
from kvestigate.kube.cel.budget import ROUND, pay
from kvestigate.kube.cel.compiler import Compiler, Frame, Run, Typed
from kvestigate.kube.cel.failures import NO_OVERLOAD, EvalError
from kvestigate.kube.cel.syntax import Call, Ident, Node, Select
from kvestigate.kube.cel.types import BOOL, DYN, ERROR, INT, Type
from kvestigate.kube.cel.values import NOTHING, Optional

Loop = Callable[[Run, tuple[int, ...], tuple[Run, ...]], Run]
"""From what is looped over, the slots of the variables and the bodies to the closure."""


def _has(compiler: Compiler, node: Call) -> Typed:
    (argument,) = node.args
    if not isinstance(argument, Select):
        return compiler.wrong(argument.at, "invalid argument to has() macro")
    return compiler.compile(Select(argument.at, argument.operand, argument.field, tests=True))


# -- loops ------------------------------------------------------------------------------


def _each(frame: Frame, value: Any) -> Iterable[Any]:
    """Elements of a list or keys of a map, each paid for."""
    if not isinstance(value, list | dict):
        raise EvalError(NO_OVERLOAD)
    for element in value:
        pay(frame, ROUND)
        yield element


def _pairs(frame: Frame, value: Any) -> Iterable[tuple[Any, Any]]:
    """Positions and elements, or keys and values."""
    if not isinstance(value, list | dict):
        raise EvalError(NO_OVERLOAD)
    for pair in value.items() if isinstance(value, dict) else enumerate(value):
        pay(frame, ROUND)
        yield pair


def _steps(over: Run, slots: tuple[int, ...]) -> Callable[[Frame], Iterable[Any]]:
    """Sets the variables for each round, and yields what the first one is."""
    if len(slots) == 1:
        (slot,) = slots

        def single(frame: Frame) -> Iterable[Any]:
            for element in _each(frame, over(frame)):
                frame[slot] = element
                yield element

        return single
    first, second = slots

    def double(frame: Frame) -> Iterable[Any]:
        for key, value in _pairs(frame, over(frame)):
            frame[first], frame[second] = key, value
            yield key

    return double


def _quantifier(decisive: bool) -> Loop:
    """all and exists: one round may decide, even if others fail."""

    def make(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
        steps, (body,) = _steps(over, slots), bodies

        def run(frame: Frame) -> bool:
            failure: EvalError | None = None
            for _ in steps(frame):
                try:
                    if _boolean(body(frame)) is decisive:
                        return decisive
                except EvalError as error:
                    failure = error
            if failure is not None:
                raise failure
            return not decisive

        return run

    return make


def _exists_one(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
    steps, (body,) = _steps(over, slots), bodies
    return lambda frame: sum(_boolean(body(frame)) for _ in steps(frame)) == 1


def _filter(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
    steps, (body,) = _steps(over, slots), bodies
    return lambda frame: [element for element in steps(frame) if _boolean(body(frame))]


def _map(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
    steps = _steps(over, slots)
    *conditions, body = bodies
    if not conditions:
        return lambda frame: [body(frame) for _ in steps(frame)]
    (condition,) = conditions
    return lambda frame: [body(frame) for _ in steps(frame) if _boolean(condition(frame))]


def _transform_map(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
    steps = _steps(over, slots)
    *conditions, body = bodies

    def run(frame: Frame) -> dict[Any, Any]:
        return {
            key: body(frame)
            for key in steps(frame)
            if all(_boolean(condition(frame)) for condition in conditions)
        }

    return run


def _transform_entries(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
    steps = _steps(over, slots)
    *conditions, body = bodies

    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for _ in steps(frame):
            if all(_boolean(condition(frame)) for condition in conditions):
                for key, value in body(frame).items():
                    if key in made:
                        raise EvalError(f"insert failed: key {key} already exists")
                    made[key] = value
        return made

    return run


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise EvalError(NO_OVERLOAD)
    return value


def _ranged(type_: Type) -> tuple[Type, Type] | None:
    """What the variables of a loop are: of one, the first of a map or the second of a list."""
    if type_.is_dynamic:
        return DYN, DYN
    if type_.name == "list":
        return INT, type_.params[0]
    return type_.params if type_.name == "map" else None  # type: ignore[return-value] # has two


Result = Callable[[Type, list[Typed]], Type]


def _loop(names: int, make: Loop, result: Result) -> Callable[[Compiler, Call], Typed]:
    """The macro that loops over its target with so many variables."""

    def expand(compiler: Compiler, node: Call) -> Typed:
        assert node.target is not None
        over = compiler.compile(node.target)
        declared = _names(compiler, node, node.args[:names])
        found = _ranged(over.type)
        if found is None:
            compiler.wrong(
                node.target.at,
                f"expression of type '{over.type}' cannot be range of a comprehension (must be "
                "list, map, or dynamic)",
            )
            found = ERROR, ERROR
        if declared is None:
            return Typed(ERROR, over.run)
        pair = found if names == 2 else (found[1] if over.type.name == "list" else found[0],)
        bodies: list[Typed] = []

        def inside(slots: list[int]) -> Typed:
            bodies.extend(compiler.compile(each) for each in node.args[names:])
            for condition, at in _conditions(node, names, bodies):
                if not types.fits(condition.type, BOOL, {}):
                    text = f"expected type 'bool' but found '{condition.type}'"
                    compiler.wrong(at, text)
            run = make(over.run, tuple(slots), tuple(body.run for body in bodies))
            return Typed(result(over.type, bodies), run)

        return compiler.inside(dict(zip(declared, pair, strict=True)), inside)

    return expand


_CONDITIONAL = ("all", "exists", "exists_one", "existsOne", "filter")


def _conditions(node: Call, names: int, bodies: list[Typed]) -> list[tuple[Typed, int]]:
    """The bodies that must be boolean, and where they are."""
    chosen = bodies if node.name in _CONDITIONAL else bodies[:-1]
    return [(body, node.args[names + at].at) for at, body in enumerate(chosen)]


def _names(compiler: Compiler, node: Call, given: tuple[Node, ...]) -> list[str] | None:
    found = [each.name for each in given if isinstance(each, Ident)]
    if len(found) == len(given):
        return found
    wrong = next(each for each in given if not isinstance(each, Ident))
    compiler.wrong(wrong.at, "argument must be a simple name")
    return None


def _sort_by(over: Run, slots: tuple[int, ...], bodies: tuple[Run, ...]) -> Run:
    steps, (body,) = _steps(over, slots), bodies

    def run(frame: Frame) -> list[Any]:
        keyed = [(body(frame), element) for element in steps(frame)]
        try:
            return [element for _, element in sorted(keyed, key=lambda pair: pair[0])]
        except TypeError:
            raise EvalError(NO_OVERLOAD) from None

    return run


# -- optionals --------------------------------------------------------------------------


def _opt_map(*, flat: bool) -> Callable[[Compiler, Call], Typed]:
    def expand(compiler: Compiler, node: Call) -> Typed:
        assert node.target is not None
        target = compiler.compile(node.target)
        declared = _names(compiler, node, node.args[:1])
        if declared is None:
            return Typed(ERROR, target.run)
        inner = target.type.params[0] if target.type.name == "optional_type" else DYN

        def inside(slots: list[int]) -> Typed:
            body = compiler.compile(node.args[1])
            type_ = body.type if flat else types.optional_of(body.type)
            return Typed(type_, _optional_body(target.run, slots[0], body.run, flat=flat))

        return compiler.inside({declared[0]: inner}, inside)

    return expand


def _optional_body(target: Run, slot: int, body: Run, *, flat: bool) -> Run:
    def run(frame: Frame) -> Any:
        value = target(frame)
        if not isinstance(value, Optional):
            raise EvalError(NO_OVERLOAD)
        if not value.present:
            return NOTHING
        frame[slot] = value.value
        return body(frame) if flat else Optional(True, body(frame))

    return run


def _to_bool(over: Type, bodies: list[Typed]) -> Type:
    return BOOL


def _same_elements(over: Type, bodies: list[Typed]) -> Type:
    if over.name == "map":
        return types.list_of(over.params[0])
    return types.list_of(over.params[0] if over.name == "list" else DYN)


def _list_of_bodies(over: Type, bodies: list[Typed]) -> Type:
    return types.list_of(bodies[-1].type)


def _map_of_bodies(over: Type, bodies: list[Typed]) -> Type:
    key = over.params[0] if over.name == "map" else INT if over.name == "list" else DYN
    return types.map_of(key, bodies[-1].type)


def _type_of_body(over: Type, bodies: list[Typed]) -> Type:
    return bodies[-1].type


MACROS: dict[tuple[str, int], Callable[[Compiler, Call], Typed]] = {
    ("has", 1): _has,
    ("all", 2): _loop(1, _quantifier(decisive=False), _to_bool),
    ("exists", 2): _loop(1, _quantifier(decisive=True), _to_bool),
    ("exists_one", 2): _loop(1, _exists_one, _to_bool),
    ("filter", 2): _loop(1, _filter, _same_elements),
    ("map", 2): _loop(1, _map, _list_of_bodies),
    ("map", 3): _loop(1, _map, _list_of_bodies),
    ("sortBy", 2): _loop(1, _sort_by, _same_elements),
    ("all", 3): _loop(2, _quantifier(decisive=False), _to_bool),
    ("exists", 3): _loop(2, _quantifier(decisive=True), _to_bool),
    ("existsOne", 3): _loop(2, _exists_one, _to_bool),
    ("exists_one", 3): _loop(2, _exists_one, _to_bool),
    ("transformList", 3): _loop(2, _map, _list_of_bodies),
    ("transformList", 4): _loop(2, _map, _list_of_bodies),
    ("transformMap", 3): _loop(2, _transform_map, _map_of_bodies),
    ("transformMap", 4): _loop(2, _transform_map, _map_of_bodies),
    ("transformMapEntry", 3): _loop(2, _transform_entries, _type_of_body),
    ("transformMapEntry", 4): _loop(2, _transform_entries, _type_of_body),
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
}
"""By name and number of arguments."""
