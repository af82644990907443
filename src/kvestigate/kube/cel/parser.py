"""From tokens to the tree of an expression, by recursive descent."""

from __future__ import annotations

from typing import NoReturn

from kvestigate.kube import pauses
from kvestigate.kube.cel.failures import CompileError, Issue
from kvestigate.kube.cel.lexer import END, Token, tokens
from kvestigate.kube.cel.syntax import (
    Call,
    Entry,
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

MAX_LENGTH = 100_000
"""Characters of an expression; cel-go takes as many."""
MAX_DEPTH = 64
"""Of brackets, calls and the like inside each other."""
MAX_CHAIN = 100
"""Of operators, selections and calls one after the other. `&&` and `||` do not count."""
TOO_DEEP = "expression recursion limit exceeded"

_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
    "STRING, BYTES, IDENTIFIER}"
)
_FIELD_STARTS = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
_WORDS = {"true": True, "false": False, "null": None}
_LITERALS = ("int", "uint", "float", "string", "bytes")
_BINARY: tuple[dict[str, str], ...] = (
    {"||": "_||_"},
    {"&&": "_&&_"},
    {
        **{op: f"_{op}_" for op in ("<", "<=", ">=", ">", "==", "!=")},
        "in": "@in",
    },
    {"+": "_+_", "-": "_-_"},
    {"*": "_*_", "/": "_/_", "%": "_%_"},
)
"""The operators, from those that bind least to those that bind most."""


_LOGICAL = ("_||_", "_&&_")
_LOGICAL_OF = dict(enumerate(_LOGICAL))


def parse(source: str) -> Node:
    if len(source) > MAX_LENGTH:
        why = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_LENGTH}"
        raise CompileError(source[:MAX_LENGTH], [Issue(0, why)])
    return _Parser(source).whole()


def _balanced(operator: str, operands: list[Node], places: list[int]) -> Node:
    """A tree that is as shallow as can be: `&&` and `||` mean the same however they are nested."""
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    left = _balanced(operator, operands[:half], places[: half - 1])
    right = _balanced(operator, operands[half:], places[half:])
    return Call(places[half - 1], operator, (left, right))


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = tokens(source)
        self._next = next(self._tokens)
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        token = self._peek()
        if token.kind != END:
            self._fail(token, f"extraneous input '{token.text}' expecting <EOF>")
        return node

    # -- tokens --------------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._next

    def _take(self) -> Token:
        pauses.rest_if_due()
        token = self._next
        self._next = next(self._tokens, token)  # the end is followed by itself
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._peek().kind == kind else None

    def _expect(self, kind: str) -> Token:
        token = self._peek()
        if token.kind != kind:
            self._fail(token, f"missing '{kind}' at '{token.text}'")
        return self._take()

    def _fail(self, token: Token, why: str) -> NoReturn:
        raise CompileError(self._source, [Issue(token.at, f"Syntax error: {why}")])

    # -- expressions ---------------------------------------------------------------------

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CompileError(self._source, [Issue(self._peek().at, TOO_DEEP)])
        condition = self._binary(0)
        if question := self._accept("?"):
            first = self._binary(0)
            self._expect(":")
            condition = Call(question.at, "_?_:_", (condition, first, self._expression()))
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        if level == len(_BINARY):
            return self._unary()
        node = self._binary(level + 1)
        chain = [node]
        places: list[int] = []
        while operator := _BINARY[level].get(self._operator()):
            places.append(self._take().at)
            right = self._binary(level + 1)
            if operator in _LOGICAL:
                chain.append(right)
            else:
                self._lengthen(places)
                node = Call(places[-1], operator, (node, right))
        if len(chain) > 1:
            return _balanced(_LOGICAL_OF[level], chain, places)
        return node

    def _lengthen(self, places: list[int]) -> None:
        """A chain of operators is as deep a tree as it is long."""
        if len(places) > MAX_CHAIN:
            raise CompileError(self._source, [Issue(places[-1], TOO_DEEP)])

    def _operator(self) -> str:
        token = self._peek()
        return token.text if token.kind == token.text or token.text == "in" else ""

    def _unary(self) -> Node:
        token = self._peek()
        if token.kind not in ("!", "-"):
            return self._member()
        count = 0
        while self._accept(token.kind):
            count += 1
        node = self._member()
        if token.kind == "-" and isinstance(node, Literal) and type(node.value) in (int, float):
            return Literal(token.at, -node.value if count % 2 else node.value)
        name = "!_" if token.kind == "!" else "-_"
        return Call(token.at, name, (node,)) if count % 2 else node

    def _member(self) -> Node:
        node = self._primary()
        places: list[int] = []
        while True:
            token = self._peek()
            places.append(token.at)
            self._lengthen(places)
            if token.kind == ".":
                node = self._selected(node, self._take())
            elif token.kind == "[":
                self._take()
                name = "_[?_]" if self._accept("?") else "_[_]"
                node = Call(token.at, name, (node, self._expression()))
                self._expect("]")
            elif token.kind == "{" and (name := qualified(node)):
                node = self._made(name, self._take())
            else:
                return node

    def _selected(self, node: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        name = self._peek()
        if name.kind != "name":
            self._fail(name, f"mismatched input '{name.text}' expecting IDENTIFIER")
        self._take()
        if not optional and (bracket := self._accept("(")):
            return Call(bracket.at, name.value, self._arguments(")"), node)
        return Select(dot.at, node, name.value, optional)

    def _arguments(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._accept(end):
            if found:
                self._expect(",")
                if end == "]" and self._accept(end):
                    break
            found.append(self._expression())
        return tuple(found)

    def _primary(self) -> Node:
        token = self._peek()
        if token.kind in _LITERALS:
            self._take()
            return Literal(token.at, token.value)
        if token.kind == "(":
            self._take()
            node = self._expression()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list(self._take())
        if token.kind == "{":
            return self._map(self._take())
        if token.kind == ".":
            self._take()
            token = self._peek()
        if token.kind != "name" or token.text == "in":
            self._fail(token, f"mismatched input '{token.text}' expecting {_STARTS}")
        self._take()
        if token.text in _WORDS:
            return Literal(token.at, _WORDS[token.text])
        if bracket := self._accept("("):
            return Call(bracket.at, token.value, self._arguments(")"))
        return Ident(token.at, token.value)

    def _list(self, start: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if elements:
                self._expect(",")
                if self._accept("]"):
                    break
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
        return ListOf(start.at, tuple(elements), frozenset(optional))

    def _map(self, start: Token) -> Node:
        entries: list[Entry] = []
        while not self._accept("}"):
            if entries:
                self._expect(",")
                if self._accept("}"):
                    break
            optional = self._accept("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append(Entry(key, self._expression(), optional))
        return MapOf(start.at, tuple(entries))

    def _made(self, name: str, start: Token) -> Node:
        fields: list[Given] = []
        while not self._accept("}"):
            if fields:
                comma = self._peek()
                if comma.kind != ",":
                    self._fail(comma, f"mismatched input '{comma.text}' expecting {{'}}', ','}}")
                self._take()
                if self._accept("}"):
                    break
            optional = self._accept("?") is not None
            field = self._peek()
            if field.kind != "name":
                self._fail(field, f"mismatched input '{field.text}' expecting {_FIELD_STARTS}")
            if field.text.startswith("`"):
                raise CompileError(self._source, [Issue(field.at, "unsupported syntax: '`'")])
            self._take()
            colon = self._expect(":")
            fields.append(Given(colon.at, field.value, self._expression(), optional))
        return Make(start.at, name, tuple(fields))
