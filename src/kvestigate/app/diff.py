"""Whether an App is still what was applied: by its digest, then field by field."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from pathlib import Path

from kvestigate.app.digest import spec_hash
from kvestigate.app.model import AppOutcome
from kvestigate.app.spec import AppPhase, AppSpec, Target
from kvestigate.app.status import RecordedStatus, read_status
from kvestigate.app.target import pick_target
from kvestigate.kube.documents import written
from kvestigate.kube.redaction import names_a_secret
from kvestigate.manifests.difference import differences
from kvestigate.manifests.model import Change


class DriftStatus(enum.StrEnum):
    NEVER_APPLIED = "never-applied"
    """Not from this machine, or it was taken down since."""
    IN_SYNC = "in-sync"
    DRIFTED = "drifted"
    """The App says something else by now."""
    UNFINISHED = "unfinished"
    """It is the same, but what was begun failed or was broken off."""


@dataclass(frozen=True, slots=True)
class AppDiff:
    namespace: str
    name: str
    status: DriftStatus
    spec_hash: str
    target: Target
    """Never `auto`."""
    recorded_hash: str = ""
    recorded_target: Target | None = None
    phase: AppPhase | None = None
    recorded_at: str = ""
    changes: tuple[Change, ...] = ()
    """In the App's own fields; of what is named like a secret only that it changed."""


@dataclass(frozen=True, slots=True)
class Drift:
    app: AppDiff
    """Against the record of this machine."""
    plan: AppOutcome
    """Against the cluster."""


def diff_app(spec: AppSpec, status_path: Path) -> AppDiff:
    """The App against its recorded status. Asks no cluster."""
    return compare(spec, read_status(status_path))


def compare(spec: AppSpec, recorded: RecordedStatus | None) -> AppDiff:
    """PURE. The same with what was recorded."""
    found = AppDiff(
        namespace=spec.metadata.namespace,
        name=spec.metadata.name,
        status=DriftStatus.NEVER_APPLIED,
        spec_hash=spec_hash(spec),
        target=pick_target(spec).target,
    )
    if recorded is None:
        return found
    found = replace(
        found,
        recorded_hash=recorded.spec_hash,
        recorded_target=recorded.target,
        phase=recorded.phase,
        recorded_at=recorded.recorded_at,
    )
    if recorded.phase is AppPhase.DOWN:
        return found
    if recorded.spec_hash != found.spec_hash:
        changes = tuple(map(_discreet, differences(written(recorded.app), written(spec))))
        return replace(found, status=DriftStatus.DRIFTED, changes=changes)
    up = recorded.phase is AppPhase.UP
    return replace(found, status=DriftStatus.IN_SYNC if up else DriftStatus.UNFINISHED)


def _discreet(change: Change) -> Change:
    if not change.path.startswith("env") or not names_a_secret(change.path):
        return change
    before, after = (
        None if value is None else "(hidden)" for value in (change.before, change.after)
    )
    return Change(change.path, before, after)
