"""Who is asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    """`alice`, `system:serviceaccount:default:builder`"""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Insider:
    """A part of the server itself that acts on one plane, and on no other."""

    plane: str
    user: User


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
