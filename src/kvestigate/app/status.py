"""What the last `up` or `down` of an App from this machine came to: one file an App.

It is a record, not the truth: that is in the cluster. It tells what an App was when it was
applied, so that drift can be seen without asking anybody.
"""

from __future__ import annotations

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


def status_path_for(namespace: str, name: str) -> Path:
    """Where the status of an App is kept."""
    for field, value in (("namespace", namespace), ("name", name)):
        if problems := label_problems(value):
            raise InputError(f"{value!r}: {problems[0]}", where=f"metadata.{field}")
    return APP_STATUS_DIR / namespace / f"{name}.json"


def write_status(status: RecordedStatus) -> Path:
    """Keep it, at once or not at all; for its owner's eyes, since variables may be secrets."""
    path = status_path_for(status.namespace, status.name)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(status), mode=0o600)
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


def recorded_statuses() -> list[RecordedStatus]:
    """Of all Apps, by namespace and name."""
    found = (read_status(path) for path in sorted(APP_STATUS_DIR.glob("*/*.json")))
    return [status for status in found if status is not None]
