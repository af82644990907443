"""The audit log: the user, the request and the status of its response, a JSON line for each.

The lines are `audit.k8s.io/v1` Events of level Metadata. They contain neither bodies nor
credentials; the message of an error that may quote the body is left out. A stream is recorded
when it begins.
"""

from __future__ import annotations

import logging
import os
import uuid
from pathlib import Path
from typing import Any

import msgspec

from kvestigate.cluster.plane.model.metadata import micro_timestamp
from kvestigate.cluster.plane.model.request_info import RequestInfo, Visit
from kvestigate.cluster.plane.model.user import User
from kvestigate.errors import UsageError
from kvestigate.files import private_file
from kvestigate.http.message import Request, Response, Upgrade

_log = logging.getLogger(__name__)

LARGEST = 100 * 2**20
"""The size in bytes at which a file is rotated."""
KEPT = 10
"""Rotated files; `PATH.1` is the newest."""

_SWITCHING_PROTOCOLS = 101
_QUOTING = (400, 422)
"""Statuses whose message may quote the body of the request, which may be a Secret."""


class AuditLog:
    """Appends to a file that only its owner can read; rotates it when it is full."""

    def __init__(self, path: Path, *, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept
        try:
            self._open()
        except OSError as error:
            raise UsageError(
                f"--audit-log: {path} cannot be written: {error.strerror}",
                hint="name a file in an existing directory that you may write to",
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
            _log.error("%s: an audit event is lost: %s", self._path, error)
        else:
            self._size += len(line)

    def close(self) -> None:
        os.close(self._file)

    def _open(self) -> None:
        self._file = private_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
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
    audit_event: dict[str, Any] = {
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
        audit_event["impersonatedUser"] = _user(visit.impersonated)
    if incoming.peer.address:
        audit_event["sourceIPs"] = [incoming.peer.address.rpartition(":")[0].strip("[]")]
    if agent := incoming.headers.get("user-agent"):
        audit_event["userAgent"] = agent
    if visit.info is not None and visit.info.resource:
        audit_event["objectRef"] = _reference(visit.info)
    audit_event["responseStatus"] = _status(response)
    audit_event["requestReceivedTimestamp"] = micro_timestamp(received)
    audit_event["stageTimestamp"] = micro_timestamp(now)
    if visit.user is not None:
        decision = "allow" if visit.allowed else "forbid"
        audit_event["annotations"] = {"authorization.k8s.io/decision": decision, **visit.notes}
    return audit_event


def _user(user: User) -> dict[str, Any]:
    user_info: dict[str, Any] = {"username": user.name}
    if user.uid:
        user_info["uid"] = user.uid
    if user.groups:
        user_info["groups"] = user.groups
    if user.extra:
        user_info["extra"] = dict(user.extra)
    return user_info


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
    code = response.status if isinstance(response, Response) else _SWITCHING_PROTOCOLS
    recorded: dict[str, Any] = {"metadata": {}}
    if isinstance(response, Response) and code >= 400 and isinstance(response.body, bytes):
        try:
            status = msgspec.json.decode(response.body, type=dict[str, Any])
        except msgspec.MsgspecError:
            status = {}  # not every failure is a Status
        recorded["status"] = "Failure"
        if code not in _QUOTING and "message" in status:
            recorded["message"] = status["message"]
        if "reason" in status:
            recorded["reason"] = status["reason"]
    return {**recorded, "code": code}
