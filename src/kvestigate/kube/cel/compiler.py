"""Checks a parsed CEL expression and turns it into closures, in one pass.

A rule is compiled once, when its CustomResourceDefinition or policy is written, and runs on every
write after that. So the evaluator does not walk a tree: `Compiler.compile` returns, for each node
of the syntax tree, its type and a closure that computes its value. Running the outermost closure
runs the expression; no type and no function is looked up by name any more.

- **Frame.** Closures take one argument, the frame: a list that holds the budget in slot 0, then the
  variables of the expression (`self`, `oldSelf`), then the variables of loops. The compiler hands
  out slots while it walks, so reading a variable is one index into a list.
- **Budget.** Every call and every round of a loop (`macros`) is paid from slot 0 (`budget`), which
  raises `OutOfBudget` below zero. So no expression runs for ever or fills the memory, whatever
  `cost` estimated before it was accepted.
- **Overloads.** `functions` maps a name to its overloads. If the types of the operands leave one
  overload, its Python function is bound right away (`_direct`). If an operand is `dyn`, the values
  decide at run time (`_dispatching`). `&&`, `||` and `?:` do not evaluate all their operands;
  `lazy` compiles them.
- **Constants.** Parts without variables are evaluated here. If one fails (`1 / 0`), the expression
  is refused with `failure` as the reason, as kube-apiserver does.
- **Mistakes** are collected in `issues`, because kube-apiserver reports all of them. A part with a
  mistake has the type `ERROR`, which fits everywhere, so that each mistake is reported once.
  `doubts` are reported only if there is no other mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvestigate.kube import patterns, pauses
from kvestigate.kube.cel import access, types
from kvestigate.kube.cel.budget import PER_CALL, Price, pay, price
from kvestigate.kube.cel.failures import NO_OVERLOAD, EvalError, Issue
from kvestigate.kube.cel.lazy import LAZY
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.messages import Message, Messages, no_messages
from kvestigate.kube.cel.signatures import Functions, Overload
from kvestigate.kube.cel.syntax import (
    Call,
    Given,
    Ident,
    ListOf,
    Literal,
    Make,
    MapOf,
    Node,
    Select,
    qualified,
)
from kvestigate.kube.cel.types import DYN, ERROR, Type
from kvestigate.kube.cel.values import TypeValue, Uint
from kvestigate.kube.patterns import InvalidPattern

Frame = list[Any]
Run = Callable[[Frame], Any]


@dataclass(frozen=True, slots=True)
class Typed:
    """A part that was checked."""

    type: Type
    run: Run


_LITERAL_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}

_FOLDED = ("bool", "double", "int", "uint")

_TYPE_NAMES = {
    **{name: name for name in ("bool", "int", "uint", "double", "string", "bytes")},
    **{name: name for name in ("list", "map", "null_type", "type", "optional_type")},
    "google.protobuf.Timestamp": "google.protobuf.Timestamp",
    "google.protobuf.Duration": "google.protobuf.Duration",
}


@dataclass(slots=True)
class _Alike:
    """The type that the elements of a literal have in common."""

    type: Type = DYN
    first: Type | None = None
    once: bool = False
    doubts: list[Issue] = field(default_factory=list)
    """Of elements that are not of the same type as the one in front; of the first if `once`."""

    def add(self, type_: Type, at: int) -> None:
        if self.first is None:
            self.first = self.type = type_
            return
        self.type = types.common(self.type, type_)
        alike = (self.first is DYN) == (type_ is DYN) and (
            types.common(self.first, type_) == self.first
        )
        if ERROR not in (self.first, type_) and not alike and not (self.once and self.doubts):
            message = f"expected type '{self.first}' but found '{type_}'"
            self.doubts.append(Issue(at, message))


@dataclass(slots=True)
class Compiler:
    functions: Functions
    variables: Mapping[str, Type]
    macros: Mapping[tuple[str, int], Callable[[Compiler, Call], Typed]]
    messages: Messages = no_messages
    issues: list[Issue] = field(default_factory=list)
    doubts: list[Issue] = field(default_factory=list)
    """Told only if nothing worse is wrong."""
    failure: str = ""
    """Why a part without variables has no value."""
    types: dict[int, Type] | None = None
    """Where to note the types of all parts, by their identities; None if nobody asks."""
    slots: int = 1
    _scope: dict[str, tuple[int, Type]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, type_ in self.variables.items():
            self._scope[name] = (self.slots, type_)
            self.slots += 1

    def compile(self, node: Node) -> Typed:
        pauses.rest_if_due()
        made = self._compile(node)
        if self.types is not None:
            self.types[id(node)] = made.type
        return made

    def _compile(self, node: Node) -> Typed:
        match node:
            case Literal():
                return self._literal(node)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Make():
                return self._make(node)
        raise AssertionError(node)

    def wrong(self, at: int, text: str) -> Typed:
        self.issues.append(Issue(at, text))
        return Typed(ERROR, _never)

    def inside(self, names: Mapping[str, Type], compile_: Callable[[list[int]], Typed]) -> Typed:
        """Something compiled where these names are variables; it is told their slots."""
        outer = dict(self._scope)
        slots = []
        for name, type_ in names.items():
            self._scope[name] = (self.slots, type_)
            slots.append(self.slots)
            self.slots += 1
        made = compile_(slots)
        self._scope = outer
        return made

    # -- parts ---------------------------------------------------------------------------

    def _literal(self, node: Literal) -> Typed:
        value = node.value
        if type(value) is int and not -(2**63) <= value < 2**63:
            return self.wrong(node.at, "invalid int literal")
        if type(value) is Uint and value >= 2**64:
            return self.wrong(node.at, "invalid uint literal")
        return Typed(_LITERAL_TYPES.get(type(value), types.UINT), lambda frame: value)

    def _ident(self, node: Ident) -> Typed:
        known = self._scope.get(node.name)
        if known is not None:
            slot, type_ = known
            return Typed(type_, lambda frame: frame[slot])
        return self._type_named(node.name) or self.wrong(
            node.at, f"undeclared reference to '{node.name}' (in container '')"
        )

    def _type_named(self, name: str) -> Typed | None:
        if (message := self.messages(name)) is not None:
            named = TypeValue(name)
            return Typed(types.type_of(message.type), lambda frame: named)
        if name not in _TYPE_NAMES:
            return None
        value = TypeValue(_TYPE_NAMES[name])
        return Typed(types.type_of(Type(name)), lambda frame: value)

    def _select(self, node: Select) -> Typed:
        if (name := qualified(node)) and (made := self._qualified_value(name)):
            return made
        operand = self.compile(node.operand)
        inner = operand.type
        through = inner.name == "optional_type"
        if through:
            inner = inner.params[0]
        found = self._field(inner, node)
        if found is None:
            return Typed(ERROR, _never)
        key, type_ = found
        run = operand.run
        if node.tests:
            tester = access.tester(run, key, null_counts=inner.is_dynamic)
            return Typed(types.BOOL, tester)
        if node.optional or through:
            if type_.name == "optional_type":
                type_ = type_.params[0]
            return Typed(types.optional_of(type_), access.optional_selector(run, key))
        return Typed(type_, access.selector(run, key))

    def _qualified_value(self, name: str) -> Typed | None:
        """A variable or a type whose name has dots in it."""
        if name.partition(".")[0] in self._scope and name not in self._scope:
            return None
        if name in self._scope:
            slot, type_ = self._scope[name]
            return Typed(type_, lambda frame: frame[slot])
        return self._type_named(name)

    def _field(self, type_: Type, node: Select) -> tuple[str, Type] | None:
        """The key and type of a field; None if it was wrong to ask for it."""
        if type_.is_dynamic:
            return node.field, DYN
        if type_.name == "map":
            return node.field, type_.params[1]
        if type_.fields is None:
            self.wrong(node.at, f"type '{type_}' does not support field selection")
        elif (known := type_.fields.get(node.field)) is not None:
            return known.key, known.type
        else:
            self.wrong(node.at, f"undefined field '{node.field}'")
        return None

    def _list(self, node: ListOf) -> Typed:
        parts = [self.compile(each) for each in node.elements]
        elements = _Alike(once=True)
        for position, (part, each) in enumerate(zip(parts, node.elements, strict=True)):
            type_ = part.type
            if position in node.optional and type_.name == "optional_type":
                type_ = type_.params[0]
            elements.add(type_, each.at)
        run = access.list_maker([part.run for part in parts], node.optional)
        self.doubts += elements.doubts
        return Typed(types.list_of(elements.type), run)

    def _map(self, node: MapOf) -> Typed:
        keys, values = _Alike(), _Alike()
        runs = []
        for entry in node.entries:
            left, right = self.compile(entry.key), self.compile(entry.value)
            type_ = right.type
            if entry.optional and type_.name == "optional_type":
                type_ = type_.params[0]
            keys.add(left.type, entry.key.at)
            values.add(type_, entry.value.at)
            runs.append((left.run, right.run, entry.optional))
        self.doubts += keys.doubts + values.doubts
        return Typed(types.map_of(keys.type, values.type), access.map_maker(runs))

    def _make(self, node: Make) -> Typed:
        message = self.messages(node.type)
        if message is None and node.type in _TYPE_NAMES:
            return self.wrong(node.at, f"'{node.type}' is not a message type")
        if message is None:
            return self.wrong(node.at, f"undeclared reference to '{node.type}' (in container '')")
        runs = [(each.name, self._given(each, message), each.optional) for each in node.fields]
        return Typed(message.type, access.object_maker(runs, message.make))

    def _given(self, field: Given, message: Message) -> Run:
        """A field of an object to be made."""
        value = self.compile(field.value)
        type_ = value.type
        if field.optional and not type_.is_dynamic:
            if type_.name != "optional_type":
                mismatch = f"expected type 'optional_type({type_})' but found '{type_}'"
                self.wrong(field.value.at, mismatch)
                return _never
            type_ = type_.params[0]
        fields = message.type.fields
        known = None if fields is None else fields.get(field.name)
        if known is None or not types.fits(type_, known.type, {}):
            wanted = "" if known is None else known.type
            self.wrong(
                field.at,
                f"expected type of field '{field.name}' is '{wanted}' but provided type is "
                f"'{type_}'",
            )
        return value.run

    # -- calls ---------------------------------------------------------------------------

    def _call(self, node: Call) -> Typed:
        if (macro := self.macros.get((node.name, len(node.args)))) and self._expands(node):
            return macro(self, node)
        if node.name in _LITERAL_CHECKS and (doubt := _LITERAL_CHECKS[node.name](node)):
            self.doubts.append(doubt)
        target = node.target
        if target is not None and (name := self._function_named(target, node.name)):
            parts = self._arguments(node)
            return self._apply(name, node.at, tuple(parts), is_method=False)
        operands = node.args if target is None else (target, *node.args)
        parts = self._arguments(Call(node.at, node.name, operands))
        if node.name in LAZY and target is None:
            return self._lazy(node, parts)
        made = self._apply(node.name, node.at, tuple(parts), is_method=target is not None)
        if node.name in _FOLDED and all(isinstance(each, Literal) for each in operands):
            self._fold(made)
        return made

    def _arguments(self, node: Call) -> list[Typed]:
        doubts = len(self.doubts)
        parts = [self.compile(each) for each in node.args]
        if node.name == "format":  # takes a list of anything
            del self.doubts[doubts:]
        return parts

    def _fold(self, made: Typed) -> None:
        """A conversion of a literal always has the same outcome: see that it has one."""
        if made.type is not ERROR:
            try:
                made.run([PER_CALL])
            except EvalError as error:
                self.failure = self.failure or str(error)

    def _expands(self, node: Call) -> bool:
        return (node.target is None) == (node.name == "has")

    def _function_named(self, target: Node, name: str) -> str:
        """The function `sets.contains`, unless `sets` is a variable."""
        prefix = qualified(target)
        if not prefix or prefix.partition(".")[0] in self._scope:
            return ""
        return f"{prefix}.{name}" if (f"{prefix}.{name}", False) in self.functions else ""

    def _lazy(self, node: Call, parts: list[Typed]) -> Typed:
        """An operator that does not always look at all its operands."""
        wanted, result, make = LAZY[node.name]
        bound: types.Bindings = {}
        if not all(
            types.fits(part.type, types.parsed(each), bound)
            for part, each in zip(parts, wanted, strict=True)
        ):
            return self._mismatch(node.name, node.at, tuple(parts), is_method=False)
        run = make(*[part.run for part in parts])
        if node.name == "_?_:_" and DYN in (parts[1].type, parts[2].type):
            return Typed(DYN, run)  # only the value will tell which it was
        if node.name == "_?_:_" and _is_empty(node.args[1]):
            return Typed(parts[2].type, run)  # what holds nothing may be a list of anything
        return Typed(types.resolved(types.parsed(result), bound), run)

    def _apply(self, name: str, at: int, parts: tuple[Typed, ...], *, is_method: bool) -> Typed:
        known = self.functions.get((name, is_method))
        if known is None and (name, not is_method) in self.functions:
            known = ()
        if known is None:
            return self.wrong(at, f"undeclared reference to '{name}' (in container '')")
        candidates: list[Overload] = []
        result: Type | None = None
        for overload in known:
            bound: types.Bindings = {}
            if len(overload.params) == len(parts) and all(
                types.fits(part.type, wanted, bound)
                for part, wanted in zip(parts, overload.params, strict=True)
            ):
                made = types.resolved(overload.result, bound)
                result = made if result is None or result == made else DYN
                candidates.append(overload)
        if result is None:
            return self._mismatch(name, at, parts, is_method=is_method)
        certain = len(candidates) == 1 and not any(part.type.is_dynamic for part in parts)
        runs = tuple(part.run for part in parts)
        if certain:
            return Typed(result, _direct(candidates[0].run, runs, price(name)))
        return Typed(result, _dispatching(tuple(candidates), runs, price(name)))

    def _mismatch(self, name: str, at: int, parts: tuple[Typed, ...], *, is_method: bool) -> Typed:
        shown = [str(part.type) for part in parts]
        given = f"({', '.join(shown)})"
        if is_method:
            given = f"{shown[0]}.({', '.join(shown[1:])})"
        return self.wrong(at, f"found no matching overload for '{name}' applied to '{given}'")


def _is_empty(node: Node) -> bool:
    match node:
        case ListOf(elements=()) | MapOf(entries=()):
            return True
    return False


def _never(frame: Frame) -> Any:
    raise AssertionError("an expression with mistakes is never run")


def _direct(run: Callable[..., Any], operands: tuple[Run, ...], cost: Price | None) -> Run:
    values = _paid(operands, cost)
    return lambda frame: run(*values(frame))


def _paid(operands: tuple[Run, ...], cost: Price | None) -> Callable[[Frame], tuple[Any, ...]]:
    """The values of the operands of a call, which is paid for."""

    def values(frame: Frame) -> tuple[Any, ...]:
        given = tuple([operand(frame) for operand in operands])
        pay(frame, 1 if cost is None else cost(given, frame[0]))
        return given

    return values


def _dispatching(
    overloads: tuple[Overload, ...], operands: tuple[Run, ...], cost: Price | None
) -> Run:
    values = _paid(operands, cost)

    def run(frame: Frame) -> Any:
        given = values(frame)
        for overload in overloads:
            if overload.takes(given):
                return overload.run(*given)
        raise EvalError(NO_OVERLOAD)

    return run


def _checking(name: str, check: Callable[[Any], object]) -> Callable[[Call], Issue | None]:
    def validate(node: Call) -> Issue | None:
        argument = node.args[-1] if node.args else None
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            return None
        try:
            check(argument.value)
        except (EvalError, InvalidPattern):
            return Issue(argument.at, f"invalid {name} argument")
        return None

    return validate


_LITERAL_CHECKS = {
    "matches": _checking("matches", patterns.compiled),
    "duration": _checking("duration", times.duration),
    "timestamp": _checking("timestamp", times.timestamp),
}
"""Functions whose argument, if it is a literal, is checked before anything runs."""
