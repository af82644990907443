"""The most that a user may have at one time, and whether a task exceeds it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kvestigate.errors import Forbidden, InputError
from kvestigate.jobs.tasks.model import Resources, Task
from kvestigate.jobs.users import User
from kvestigate.kube import quantities
from kvestigate.kube.documents import read

_NANOS = 10**9


@dataclass(frozen=True, slots=True)
class Usage:
    """The requests of unfinished tasks."""

    jobs: int = 0
    """Tasks, however many nodes they have."""
    cpus: int = 0
    """Billionths of a CPU, so that sums are exact."""
    gpus: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.jobs + other.jobs, self.cpus + other.cpus, self.gpus + other.gpus)


def _count(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{value!r} is not a whole number from 0", where=path)
    return value


def _cpus(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{value!r} is not a number of CPUs", where=path, hint="write 64 or 500m")
    try:
        amount = quantities.parse(str(value)).nanos
    except InputError as error:
        raise InputError(error.message, where=path, hint="write 64 or 500m") from None
    if amount < 0:
        raise InputError(f"{value!r} is less than 0", where=path)
    return amount


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that one user may have; None for no limit."""

    jobs: Annotated[int | None, _count] = None
    cpus: Annotated[int | None, _cpus] = None
    """Billionths of a CPU."""
    gpus: Annotated[int | None, _count] = None


@dataclass(frozen=True, slots=True)
class Quotas:
    default: Quota = Quota()
    users: Mapping[str, Quota] = field(default_factory=dict)
    """By exact name; a field that an entry leaves out has the value of the default."""

    def __post_init__(self) -> None:
        for name in self.users:
            User(name)

    def of(self, user: User) -> Quota | None:
        """The quota of a user; None without any limit."""
        own = self.users.get(user.name, Quota())
        quota = Quota(
            *(
                fallback if mine is None else mine
                for mine, fallback in (
                    (own.jobs, self.default.jobs),
                    (own.cpus, self.default.cpus),
                    (own.gpus, self.default.gpus),
                )
            )
        )
        return None if quota == Quota() else quota


def read_quotas(document: Any, path: str) -> Quotas:
    """The quotas of a document; `path` is where the document is part of another one."""
    return read(Quotas, document, path)


def demand(task: Task, resources: Resources) -> Usage:
    """The usage that a task adds."""
    cpus = quantities.parse(resources.cpus.quantity).nanos if resources.cpus else 0
    gpus = resources.accelerator.count if resources.accelerator else 0
    return Usage(1, cpus * task.num_nodes, gpus * task.num_nodes)


def total(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())


def check(quota: Quota, used: Usage, wanted: Usage) -> None:
    """Raise Forbidden if `used` and `wanted` together exceed the quota."""
    for name, most, have, more in (
        ("jobs", quota.jobs, used.jobs, wanted.jobs),
        ("CPUs", quota.cpus, used.cpus, wanted.cpus),
        ("GPUs", quota.gpus, used.gpus, wanted.gpus),
    ):
        if most is None or not more or have + more <= most:
            continue
        if name == "CPUs":
            have, more, most = (_Cpus(amount) for amount in (have, more, most))
        raise Forbidden(
            f"quota exceeded: your tasks use {have} {name}, this task requests {more}, "
            f"and the limit is {most}",
            hint="wait until tasks end, or stop some: `k8s-cli jobs queue`"
            if int(more) <= int(most)
            else f"no task can have more than {most} {name}: request less",
        )


class _Cpus(int):
    """Shown in CPUs: `2.5`."""

    def __str__(self) -> str:
        return f"{self / _NANOS:g}"

    def __format__(self, spec: str) -> str:
        return str(self)
