"""The parser of Prometheus' text format. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# `name="value"`, where a quote, a backslash and a line end are written with a backslash.
# Exporters are not trusted: possessive quantifiers, and names that start only where no name goes
# on, keep both patterns linear.
_LABEL = re.compile(r'(?<![a-zA-Z0-9_])([a-zA-Z_][a-zA-Z0-9_]*+)="((?:[^"\\]|\\.)*+)"')
_LINE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\})?'
    r"\s+(?P<value>\S+)"
)
_ESCAPED = re.compile(r"\\(.)")
_UNESCAPED = {"n": "\n"}


@dataclass(frozen=True, slots=True)
class Sample:
    labels: dict[str, str]
    value: float


def samples(exposed: bytes, metric: str) -> Iterator[Sample]:
    """The samples of one metric. Lines that are not samples are ignored."""
    wanted = metric.encode()
    for line in exposed.split(b"\n"):
        if not line.startswith(wanted):
            continue
        match = _LINE.match(line.decode("utf-8", "replace"))
        if match is None or match["name"] != metric:
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        labels = {name: _unescaped(text) for name, text in _LABEL.findall(match["labels"] or "")}
        yield Sample(labels, value)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPED.get(match[1], match[1]), text)
