"""Types that expressions can make objects of by their names: `Object.spec{replicas: 3}`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kvestigate.kube.cel.types import DYN, Field, Type


class Message(NamedTuple):
    """A type that has a name and fields."""

    type: Type
    make: Callable[[dict[str, Any]], Any]
    """The object with these fields; EvalError if there can be none."""


Messages = Callable[[str], Message | None]
"""By name; None if it means nothing."""


def no_messages(name: str) -> Message | None:
    return None


class AnyFields(Mapping[str, Field]):
    """Of objects of which nothing is known: whatever is asked for may be there."""

    def __getitem__(self, key: str) -> Field:
        return Field(key, DYN)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyFields)

    def __hash__(self) -> int:
        return hash(AnyFields)
