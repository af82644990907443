"""Label selectors: `app=web,tier in (a,b),!beta`, and the `LabelSelector` fields of objects.

A selector is parsed once into an immutable value whose `matches` is a compiled function, because
it meets every object of a list or a watch. `str()` is the API server's canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from kvestigate.errors import InputError
from kvestigate.kube.names import label_value_problems, qualified_name_problems

Predicate = Callable[[Mapping[str, str]], bool]

_LABEL_HINT = "write it like app=web, tier!=db, env in (dev,test), gpu or !gpu, joined by commas"


class Operator(Enum):
    """How a label is tested; the value is what the selector grammar calls it."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    NOT_EXISTS = "!"
    GREATER = ">"
    LESS = "<"


_ANY_OF: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)
_NONE_OF: Final = (Operator.NOT_EQUALS, Operator.NOT_IN)
_SETS: Final = (Operator.IN, Operator.NOT_IN)
_PRESENCE: Final = (Operator.EXISTS, Operator.NOT_EXISTS)
_ORDER: Final = (Operator.GREATER, Operator.LESS)

# The operators of `matchExpressions`; node selector terms alone know the last two.
_EXPRESSION_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.NOT_EXISTS,
}
_NODE_OPERATORS: Final = {
    **_EXPRESSION_OPERATORS,
    "Gt": Operator.GREATER,
    "Lt": Operator.LESS,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One test of one label. Build it with `requirement`, which checks it."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        operator = self.operator
        if operator is Operator.EXISTS:
            return self.key
        if operator is Operator.NOT_EXISTS:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if operator in _SETS:
            return f"{self.key} {operator.value} ({values})"
        return f"{self.key}{operator.value}{values}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All of its requirements must hold; with none of them it selects everything."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False
    """An absent `LabelSelector` in an object selects nothing, unlike an empty one."""
    matches: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda item: item.key))
        object.__setattr__(self, "requirements", ordered)
        matches = _never if self.selects_nothing else _compile(ordered)
        object.__setattr__(self, "matches", matches)

    @property
    def selects_everything(self) -> bool:
        return not self.requirements and not self.selects_nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def requirement(
    key: str, operator: Operator, values: Iterable[str] = (), *, where: str | None = None
) -> Requirement:
    """A checked requirement; `where` is the field path to blame."""
    values = tuple(values)
    problem = "; ".join(qualified_name_problems(key))
    if problem:
        raise InputError(f"label key {key!r}: {problem}", where=where, hint=_LABEL_HINT)
    problem = _arity_problem(operator, values)
    if problem:
        raise InputError(f"{problem}, got {list(values)}", where=where, hint=_LABEL_HINT)
    for value in values:
        problem = "; ".join(label_value_problems(value))
        if problem:
            message = f"value {value!r} of label {key!r}: {problem}"
            raise InputError(message, where=where, hint=_LABEL_HINT)
    return Requirement(key, operator, values)


def _arity_problem(operator: Operator, values: tuple[str, ...]) -> str:
    if operator in _SETS:
        return "" if values else "for 'in', 'notin' operators, values set can't be empty"
    if operator in _PRESENCE:
        return "values set must be empty for exists and does not exist" if values else ""
    if operator in _ORDER:
        if len(values) != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        known = _integer(values[0]) is not None
        return "" if known else "for 'Gt', 'Lt' operators, the value must be an integer"
    return "" if len(values) == 1 else "exact-match compatibility requires one single value"


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """The selector of an object's `LabelSelector` field; None selects nothing."""
    if selector is None:
        return NOTHING
    collected = [
        requirement(key, Operator.EQUALS, (value,), where="matchLabels")
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    expressions = selector.get("matchExpressions") or ()
    collected += _expressions(expressions, _EXPRESSION_OPERATORS, "label selector")
    return LabelSelector(tuple(collected)) if collected else EVERYTHING


def from_node_expressions(expressions: Iterable[Mapping[str, Any]]) -> LabelSelector:
    """The selector of a node selector term's `matchExpressions`, which also know Gt and Lt."""
    return LabelSelector(tuple(_expressions(expressions, _NODE_OPERATORS, "node selector")))


def _expressions(
    expressions: Iterable[Mapping[str, Any]], operators: Mapping[str, Operator], kind: str
) -> list[Requirement]:
    collected = []
    for position, expression in enumerate(expressions):
        where = f"matchExpressions[{position}]"
        name = expression.get("operator") or ""
        operator = operators.get(name)
        if operator is None:
            message = f'"{name}" is not a valid {kind} operator'
            raise InputError(message, where=where, hint=f"use one of {', '.join(operators)}")
        values = expression.get("values") or ()
        collected.append(requirement(expression.get("key") or "", operator, values, where=where))
    return collected


def _compile(requirements: tuple[Requirement, ...]) -> Predicate:
    if not requirements:
        return _always
    equal = {
        item.key: item.values[0]
        for item in requirements
        if item.operator in _ANY_OF and len(item.values) == 1
    }
    if len(equal) == len(requirements) > 1:
        # The usual shape, `app=web,tier=db`: one comparison in C instead of a call per label.
        wanted = equal.items()
        return lambda labels: wanted <= labels.items()
    predicates = [_predicate(item) for item in requirements]
    if len(predicates) == 1:
        return predicates[0]
    return lambda labels: all(predicate(labels) for predicate in predicates)


def _predicate(item: Requirement) -> Predicate:
    key, operator = item.key, item.operator
    if operator is Operator.EXISTS:
        return lambda labels: key in labels
    if operator is Operator.NOT_EXISTS:
        return lambda labels: key not in labels
    if operator in _ORDER:
        return _order_predicate(key, operator, item.values[0])
    values = frozenset(item.values)
    # A label that is absent reads as None, which is no value: never among, always not among.
    if operator in _NONE_OF:
        return lambda labels: labels.get(key) not in values
    if len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) == value
    return lambda labels: labels.get(key) in values


def _order_predicate(key: str, operator: Operator, value: str) -> Predicate:
    bound = _integer(value)
    sign = 1 if operator is Operator.GREATER else -1

    def matches(labels: Mapping[str, str]) -> bool:
        number = _integer(labels.get(key, ""))
        return number is not None and bound is not None and (number - bound) * sign > 0

    return matches


_INTEGER = re.compile("[+-]?[0-9]{1,64}", re.ASCII)


def _integer(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _always(_: Mapping[str, str]) -> bool:
    return True


def _never(_: Mapping[str, str]) -> bool:
    return False


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(selects_nothing=True)


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """The selector of `-l` and of a request's `labelSelector`; empty text selects everything."""
    return LabelSelector(tuple(_Parser(text).requirements()))


_BLANK = " \t\r\n"
_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+))")
_BINARY_OPERATORS = {operator.value: operator for operator in Operator if operator not in _PRESENCE}


class _Parser:
    """Recursive descent over (position, literal, is a word); the last token is empty."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [
            (match.start(match.lastgroup or 0), match[match.lastgroup or 0], bool(match["word"]))
            for match in _TOKEN.finditer(text.rstrip(_BLANK))
        ]
        self._tokens.append((len(text), "", False))
        self._next = 0

    def requirements(self) -> list[Requirement]:
        collected: list[Requirement] = []
        if len(self._tokens) == 1:
            return collected
        while True:
            collected.append(self._requirement())
            if self._at_end():
                return collected
            self._expect(",", "',' or 'end of string'")

    def _requirement(self) -> Requirement:
        position = self._tokens[self._next][0]
        wanted = "identifier after ','" if self._next else "!, identifier, or 'end of string'"
        absent = self._accept("!")
        key = self._word("identifier" if absent else wanted)
        if absent:
            return self._checked(position, key, Operator.NOT_EXISTS)
        if self._at_end() or self._peek() == ",":
            return self._checked(position, key, Operator.EXISTS)
        operator = _BINARY_OPERATORS.get(self._peek())
        if operator is None:
            raise self._unexpected("in, notin, =, ==, !=, gt, lt")
        self._next += 1
        values = self._set() if operator in _SETS else {self._exact_value()}
        return self._checked(position, key, operator, sorted(values))

    def _checked(
        self, position: int, key: str, operator: Operator, values: Iterable[str] = ()
    ) -> Requirement:
        try:
            return requirement(key, operator, values)
        except InputError:  # where it is shows the whole text: not for each of thousands
            return requirement(key, operator, values, where=self._where(position))

    def _exact_value(self) -> str:
        return "" if self._at_end() or self._peek() == "," else self._word("identifier")

    def _set(self) -> set[str]:
        self._expect("(", "'('")
        values, wanted = set(), "',', ')' or identifier"
        while True:
            # Nothing between two commas or parentheses is the empty value: `(,a)`, `()`.
            is_word = self._tokens[self._next][2]
            values.add(self._word("identifier") if is_word else "")
            if self._accept(")"):
                return values
            self._expect(",", "',' or ')'" if is_word else wanted)
            wanted = "',', or identifier"

    def _at_end(self) -> bool:
        return self._next == len(self._tokens) - 1

    def _peek(self) -> str:
        return self._tokens[self._next][1]

    def _accept(self, symbol: str) -> bool:
        collected = self._peek() == symbol
        self._next += collected
        return collected

    def _expect(self, symbol: str, expected: str) -> None:
        if not self._accept(symbol):
            raise self._unexpected(expected)

    def _word(self, expected: str) -> str:
        _, literal, is_word = self._tokens[self._next]
        if not is_word:
            raise self._unexpected(expected)
        self._next += 1
        return literal

    def _unexpected(self, expected: str) -> InputError:
        position, literal, _ = self._tokens[self._next]
        return InputError(
            f"found '{literal}', expected: {expected}",
            where=self._where(position),
            hint=_LABEL_HINT,
        )

    def _where(self, position: int) -> str:
        return f"label selector {self._text!r}, character {position + 1}"
