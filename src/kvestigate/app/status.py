"""What the last `up` or `down` of an App from this machine came to.

Each cluster that an App is on has a record of its own; the newest is kept once more under the
App's name alone, for those who know of no cluster.

It is a record, not the truth: that is in the cluster. It tells what an App was when it was
applied, so that drift can be seen without asking anybody.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kvestigate.app.spec import AppPhase, AppSpec, Target
from kvestigate.errors import InputError
from kvestigate.files import replace_file
from kvestigate.kube.names import label_problems


def _state_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "kvestigate" / "apps"


APP_STATUS_DIR = _state_directory()
"""Looked up here at each call, so that tests can put another in its place."""


@dataclass(frozen=True, slots=True)
class RecordedStatus:
    namespace: str
    name: str
    target: Target
    """Never `auto`."""
    spec_hash: str
    phase: AppPhase
    recorded_at: str
    """`2026-10-05T12:34:56Z`"""
    app: AppSpec
    """As it was applied, its config files read."""
    server: str = ""
    """The cluster's address."""
    context: str = ""
    message: str = ""
    """Why it failed."""
    holder: str = ""
    """Within a cyberspace, in whose name: `pool/ada`."""


def status_path_for(namespace: str, name: str, server: str = "") -> Path:
    """Where the status of an App is kept: on that cluster, or wherever it changed last."""
    for field, value in (("namespace", namespace), ("name", name)):
        if problems := label_problems(value):
            raise InputError(f"{value!r}: {problems[0]}", where=f"metadata.{field}")
    # No name has an @ in it.
    ending = f"@{hashlib.sha256(server.encode()).hexdigest()[:12]}" if server else ""
    return APP_STATUS_DIR / namespace / f"{name}{ending}.json"


def write_status(status: RecordedStatus) -> Path:
    """Keep it, at once or not at all; for its owner's eyes, since variables may be secrets."""
    path = status_path_for(status.namespace, status.name)
    here = status_path_for(status.namespace, status.name, status.server)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in dict.fromkeys((here, path)):
            replace_file(each, msgspec.json.encode(status), mode=0o600)
    except OSError as error:
        raise InputError(
            f"the App's status cannot be kept: {error.strerror}",
            where=str(path),
            hint="set XDG_STATE_HOME to a directory that you may write to",
        ) from error
    return path


def read_status(path: Path) -> RecordedStatus | None:
    """None if nothing was recorded."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    try:
        return msgspec.json.decode(data, type=RecordedStatus)
    except (msgspec.DecodeError, InputError) as error:
        raise InputError(
            f"not the status of an App: {error}", where=str(path), hint="remove the file"
        ) from error


def status_on(namespace: str, name: str, server: str) -> RecordedStatus | None:
    """What was recorded of an App on one cluster."""
    if found := read_status(status_path_for(namespace, name, server)):
        return found
    last = read_status(status_path_for(namespace, name))
    return last if last is not None and last.server == server else None


def recorded_statuses() -> list[RecordedStatus]:
    """Of all Apps on all clusters, by namespace and name, the newest first."""
    found: dict[tuple[str, str, str], RecordedStatus] = {}
    for path in sorted(APP_STATUS_DIR.glob("*/*.json")):
        if status := read_status(path):
            found[status.namespace, status.name, status.server] = status
    newest = sorted(found.values(), key=lambda status: status.recorded_at, reverse=True)
    return sorted(newest, key=lambda status: (status.namespace, status.name))
