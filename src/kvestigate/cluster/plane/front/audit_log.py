"""The audit log: who asked for what and how it ended, a JSON line for every request.

The lines are `audit.k8s.io/v1` Events of level Metadata. Nothing of bodies gets in, and
nothing of credentials: where a refusal quotes what was sent, its words are left out. A
stream is noted when it begins.
"""

from __future__ import annotations

import logging
import os
import uuid
from pathlib import Path
from typing import Any

import msgspec

from kvestigate.cluster.plane.front.guard import Visit
from kvestigate.cluster.plane.model.metadata import micro_timestamp
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.errors import UsageError
from kvestigate.http.message import Request, Response, Upgrade

_log = logging.getLogger(__name__)

LARGEST = 100 * 2**20
"""Bytes of a file before the next is begun."""
KEPT = 10
"""Older files, `PATH.1` being the youngest."""

_SWITCHING = 101
_QUOTING = (400, 422)
"""Refusals that may repeat what was sent, a secret perhaps."""


class AuditLog:
    """Appends to a file that only its owner can read, and begins a new one when it is full."""

    def __init__(self, path: Path, *, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept
        try:
            self._open()
        except OSError as error:
            raise UsageError(
                f"--audit-log: {path} cannot be written: {error.strerror}",
                hint="name a file in a directory that is there and yours",
            ) from error

    def record(
        self,
        visit: Visit,
        incoming: Request,
        response: Response | Upgrade,
        received: float,
        now: float,
    ) -> None:
        line = msgspec.json.encode(event(visit, incoming, response, received, now)) + b"\n"
        try:
            if self._size and self._size + len(line) > self._largest:
                self._rotate()
            os.write(self._file, line)
        except OSError as error:
            # A full disk must not stop the server.
            _log.error("%s: a line is lost: %s", self._path, error)
        else:
            self._size += len(line)

    def close(self) -> None:
        os.close(self._file)

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        for number in range(self._kept, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        full = self._file
        self._open()
        os.close(full)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def event(
    visit: Visit, incoming: Request, response: Response | Upgrade, received: float, now: float
) -> dict[str, Any]:
    uri = f"{incoming.path}?{incoming.query}" if incoming.query else incoming.path
    found: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": str(uuid.uuid4()),
        "stage": "ResponseComplete",
        "requestURI": uri,
        "verb": visit.info.verb if visit.info else incoming.method.lower(),
        "user": {} if visit.user is None else _user(visit.user),
    }
    if visit.impersonated is not None:
        found["impersonatedUser"] = _user(visit.impersonated)
    if incoming.peer.address:
        found["sourceIPs"] = [incoming.peer.address.rpartition(":")[0].strip("[]")]
    if agent := incoming.headers.get("user-agent"):
        found["userAgent"] = agent
    if visit.info is not None and visit.info.resource:
        found["objectRef"] = _reference(visit.info)
    found["responseStatus"] = _status(response)
    found["requestReceivedTimestamp"] = micro_timestamp(received)
    found["stageTimestamp"] = micro_timestamp(now)
    if visit.user is not None:
        decision = "allow" if visit.allowed else "forbid"
        found["annotations"] = {"authorization.k8s.io/decision": decision, **visit.notes}
    return found


def _user(user: User) -> dict[str, Any]:
    shown: dict[str, Any] = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = user.groups
    if user.extra:
        shown["extra"] = dict(user.extra)
    return shown


def _reference(info: RequestInfo) -> dict[str, str]:
    parts = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in parts.items() if value}


def _status(response: Response | Upgrade) -> dict[str, Any]:
    code = response.status if isinstance(response, Response) else _SWITCHING
    shown: dict[str, Any] = {"metadata": {}}
    if isinstance(response, Response) and code >= 400 and isinstance(response.body, bytes):
        said = _said(response.body)
        shown["status"] = "Failure"
        if code not in _QUOTING and "message" in said:
            shown["message"] = said["message"]
        if "reason" in said:
            shown["reason"] = said["reason"]
    return {**shown, "code": code}


def _said(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}  # not every failure is a Status
