"""Who last changed the objects of findings, and when: often the cause of the cause.

The API server keeps the writers of an object in its managed fields. Only the objects of the first
findings are asked for, one by one; lists do not grow by it. What may not be read is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kvestigate.client.api import Api
from kvestigate.errors import KvestigateError
from kvestigate.health.model import Change, Finding, Subject
from kvestigate.kube import builtins
from kvestigate.kube.views.meta import View

_MOST = 20
"""Findings whose objects are asked for. Their order is that of urgency."""
_TOGETHER = 8
_SECONDS = 5.0
_CREATED = timedelta(minutes=1)
"""What was written as soon after the creation belongs to it, and is no news."""
_NOT_CONTENT = {"f:metadata", "f:status"}
"""Fields that controllers write beside the work of people: annotations, and what they observe."""


class Writer(View, frozen=True):
    """An entry of `metadata.managedFields`."""

    manager: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class WritersMeta(View, frozen=True):
    creation_timestamp: datetime | None = None
    managed_fields: tuple[Writer, ...] = ()


class Written(View, frozen=True):
    metadata: WritersMeta = WritersMeta()


async def with_changes(
    api: Api, findings: Sequence[Finding], unknown: Collection[Subject]
) -> tuple[Finding, ...]:
    """The findings, the first of them with the last change of their object.

    `unknown` are objects of custom kinds, which have no path that is known here.
    """
    room = asyncio.Semaphore(_TOGETHER)

    async def change_of(finding: Finding) -> Change | None:
        for subject in _concerned(finding):
            if subject not in unknown:
                async with room:
                    written = await _read(api, subject)
                if written is not None:
                    return last_change(subject, written)
        return None

    changes = await asyncio.gather(*map(change_of, findings[:_MOST]))
    changed = [
        replace(finding, changed=change) for finding, change in zip(findings, changes, strict=False)
    ]
    return (*changed, *findings[_MOST:])


def _concerned(finding: Finding) -> Iterator[Subject]:
    """The object, and if it does not exist, the first that needs it."""
    yield finding.subject.whole
    for effect in finding.effects[:1]:
        yield effect.subject.whole


async def _read(api: Api, subject: Subject) -> Written | None:
    """None for what cannot be read or does not exist."""
    try:
        resource = builtins.resource(subject.kind.lower())
        namespace = subject.namespace if resource.namespaced else None
        async with asyncio.timeout(_SECONDS):
            return await api.get(resource, subject.name, namespace=namespace, type=Written)
    except (KvestigateError, TimeoutError):
        return None


def last_change(subject: Subject, written: Written) -> Change | None:
    """The last write of anything but metadata and status; None if that was the creation."""
    meta = written.metadata
    writes = [
        (writer.time, writer.manager)
        for writer in meta.managed_fields
        if writer.time is not None
        and writer.manager
        and writer.subresource != "status"
        and writer.fields.keys() - _NOT_CONTENT
    ]
    at, by = max(writes, default=(None, ""))
    born = meta.creation_timestamp
    if at is None or (born is not None and at - born < _CREATED):
        return None
    return Change(subject, by, at)
