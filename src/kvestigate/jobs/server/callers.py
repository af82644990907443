"""Who asks the server, and what they may do. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kvestigate.jobs.tasks.identity import User


class Role(StrEnum):
    USER = "user"
    """Their own tasks and volumes."""
    ADMIN = "admin"
    """Also `all_users`."""


@dataclass(frozen=True, slots=True)
class Caller:
    user: User
    role: Role
