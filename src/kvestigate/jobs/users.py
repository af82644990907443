"""Users of the launcher: their name, how the cluster's labels hold it, and their role. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from kvestigate.errors import UsageError
from kvestigate.kube.names import LABEL_MAX

_LONGEST = 253
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]")
_EDGES = "-_."


@dataclass(frozen=True, slots=True)
class User:
    name: str
    """As they log in: `user@example.com`."""

    def __post_init__(self) -> None:
        if not self.name.strip() or self.name != self.name.strip():
            raise UsageError(f"{self.name!r} is not a user name", hint="k8s-cli auth login NAME")
        if len(self.name) > _LONGEST or not self.name.isprintable():
            raise UsageError(
                f"user name {self.name[:40]!r}: up to {_LONGEST} printable characters are allowed",
                hint="k8s-cli auth login NAME",
            )

    @property
    def label(self) -> str:
        """`user-example.com`. Two users may share it: nothing is decided by it."""
        return label_value(self.name) or "user"

    @property
    def digest(self) -> str:
        """What owns tasks and volumes: 32 hexadecimal digits, different for every name."""
        return hashlib.sha256(self.name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Role(StrEnum):
    USER = "user"
    """May see and change their own tasks and volumes."""
    ADMIN = "admin"
    """May also ask for those of all users."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The user who asks the launcher for something, and what they may do."""

    user: User
    role: Role


def label_value(text: str) -> str:
    """`text` as the value of a label; empty if nothing of it can be in one."""
    return _NOT_IN_LABELS.sub("-", text)[:LABEL_MAX].strip(_EDGES)
