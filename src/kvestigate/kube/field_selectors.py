"""Field selectors: `metadata.name=web,status.phase!=Running`.

Like a label selector, one is an immutable value whose `matches` is a compiled function. Which
fields a resource can be selected by is for whoever hands over the fields to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from kvestigate.errors import InputError

Predicate = Callable[[Mapping[str, str]], bool]

_FIELD_HINT = (
    "write it like metadata.name=web or status.phase!=Running, joined by commas; "
    r"put a backslash before a comma, an equals sign or a backslash in a value"
)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """`path=value`, or `path!=value` if negated."""

    path: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        operator = "!=" if self.negated else "="
        return f"{self.path}{operator}{_ESCAPED.sub(_escape, self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All of its terms must hold. A field that is absent has the empty value."""

    terms: tuple[FieldTerm, ...] = ()
    matches: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", _compile_fields(self.terms))

    @property
    def selects_everything(self) -> bool:
        return not self.terms

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def _compile_fields(terms: tuple[FieldTerm, ...]) -> Predicate:
    if not terms:
        return lambda _: True
    if len(terms) == 1:
        path, value, negated = terms[0].path, terms[0].value, terms[0].negated
        return lambda fields: (fields.get(path, "") == value) is not negated
    tests = tuple((term.path, term.value, term.negated) for term in terms)
    return lambda fields: all(
        (fields.get(path, "") == value) is not negated for path, value, negated in tests
    )


_TERM_END = re.compile(r"(?:\\.|[^,\\]|\\$)*", re.DOTALL)
_TERM_OPERATOR = re.compile("!=|==|=")
_ESCAPED = re.compile(r"[\\,=]")
_WELL_FORMED = re.compile(r"(?:[^\\,=]|\\[\\,=])*", re.DOTALL)
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> FieldSelector:
    """The selector of a request's `fieldSelector`; empty text selects everything."""
    parts = []
    start = 0
    while start <= len(text):
        match = _TERM_END.match(text, start)
        end = match.end() if match else start
        if end > start:
            parts.append((text[start:end], start))
        start = end + 1
    terms = (_field_term(part, position, text) for part, position in sorted(parts))
    return FieldSelector(tuple(term for term in terms if term.path or term.value))


def _field_term(part: str, position: int, text: str) -> FieldTerm:
    where = f"field selector {text!r}, character {position + 1}"
    operator = _TERM_OPERATOR.search(part)
    if operator is None:
        raise InputError(f"can't understand '{part}'", where=where, hint=_FIELD_HINT)
    raw = part[operator.end() :]
    well_formed = _WELL_FORMED.match(raw)
    end = well_formed.end() if well_formed else 0
    if end < len(raw):
        problem = "invalid escape sequence" if raw[end] == "\\" else "unescaped character in value"
        shown = raw[end : end + 2] if raw[end] == "\\" else raw[end]
        where = f"field selector {text!r}, character {position + operator.end() + end + 1}"
        raise InputError(f"{problem}: {shown}", where=where, hint=_FIELD_HINT)
    return FieldTerm(part[: operator.start()], _UNESCAPE.sub(r"\1", raw), operator[0] == "!=")
