"""Whether the validation rules of a definition may become too expensive. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.kube.cel.sizes import MOST

RULE_LIMIT = 10_000_000
TOTAL_LIMIT = 100_000_000
_TOLD = 4
"""How many of the most expensive rules are named if all together cost too much."""
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


class Ledger:
    """The costs of all rules of a schema."""

    def __init__(self) -> None:
        self._costs: list[tuple[int, str]] = []

    def enter(self, path: str, what: str, cost: int) -> Iterator[Cause]:
        """Record the estimated cost of an expression. Yields a cause if it exceeds the limit."""
        cost = min(cost, MOST)
        self._costs.append((cost, path))
        if cost > RULE_LIMIT:
            yield causes.forbidden(path, _excess(f"estimated {what} cost", cost, RULE_LIMIT))

    def close(self, path: str) -> Iterator[Cause]:
        """Yields a cause if all expressions together exceed the limit."""
        total = sum(cost for cost, _ in self._costs)
        if total <= TOTAL_LIMIT:
            return
        costly = [each for each in self._costs if each[0] >= TOTAL_LIMIT // 100]
        for _, at in sorted(costly, key=lambda each: -each[0])[:_TOLD]:
            yield causes.forbidden(
                at,
                "contributed to estimated rule cost total exceeding cost limit for entire "
                "OpenAPIv3 schema",
            )
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield causes.forbidden(path, _excess(what, min(total, MOST), TOTAL_LIMIT))


def _excess(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:.1f}x"
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def repeated(schema: Mapping[str, Any], times: int | None) -> int | None:
    """The largest number of values that a schema inside can have; None if unlimited."""
    if times is None:
        return None
    kind = schema.get("type")
    if kind == "array":
        most = schema.get("maxItems")
    elif kind == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    else:
        return times
    return None if most is None else min(times * max(0, most), MOST)
