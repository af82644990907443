"""The Pod Security levels that the labels of a namespace ask for. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

PREFIX = "pod-security.kubernetes.io/"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,17})", re.ASCII)
_BAD_VERSION = 'must be "latest" or "v1.x"'


class Level(IntEnum):
    """The stricter level is the greater one."""

    privileged = 0
    baseline = 1
    restricted = 2


class Standard(NamedTuple):
    """A level as some version of Kubernetes defined it."""

    level: Level = Level.privileged
    minor: int | None = None
    """The x of v1.x; None is the latest version."""

    def __str__(self) -> str:
        version = "latest" if self.minor is None else f"v1.{self.minor}"
        return f"{self.level.name}:{version}"


class Policy(NamedTuple):
    """What a namespace refuses, notes in the audit log, and warns of."""

    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()

    @property
    def privileged(self) -> bool:
        return all(standard.level is Level.privileged for standard in self)


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[Cause]]:
    """The policy of a namespace and what is wrong with its labels.

    An unreadable label to enforce means restricted; an unreadable one to audit or warn means
    privileged. An unreadable version means the latest.
    """
    problems: list[Cause] = []
    enforce = _standard(labels, "enforce", Level.restricted, problems)
    audit = _standard(labels, "audit", Level.privileged, problems)
    warn = _standard(labels, "warn", Level.privileged, problems)
    enforced = labels.get(f"{PREFIX}enforce", "") in Level.__members__
    if enforced and f"{PREFIX}warn" not in labels and enforce.level > warn.level:
        version = warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor
        warn = Standard(enforce.level, version)
    return Policy(enforce, audit, warn), problems


def _standard(
    labels: Mapping[str, str], mode: str, unreadable: Level, problems: list[Cause]
) -> Standard:
    level, minor = Level.privileged, None
    if (name := labels.get(f"{PREFIX}{mode}")) is not None:
        if name in Level.__members__:
            level = Level[name]
        else:
            level = unreadable
            why = f"must be one of {', '.join(Level.__members__)}"
            problems.append(causes.invalid(f"metadata.labels[{PREFIX}{mode}]", name, why))
    if (text := labels.get(f"{PREFIX}{mode}-version")) is not None and text != "latest":
        if match := _VERSION.fullmatch(text):
            minor = int(match[1])
        else:
            path = f"metadata.labels[{PREFIX}{mode}-version]"
            problems.append(causes.invalid(path, text, _BAD_VERSION))
    return Standard(level, minor)
