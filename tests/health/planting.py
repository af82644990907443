"""Planting the cases of the fault banks on a cluster, and judging an audit of it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import AlreadyExists, NotFound
from kvestigate.health.model import Finding
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource

Object = dict[str, Any]
_PATIENCE = 30.0
BANK = Path(__file__).parent / "bank"
"""Faults that happen: controllers, a scheduler and kubelets bring them about."""
STATES = Path(__file__).parent / "states"
"""Faults as others left them: objects with the status that controllers and kubelets write."""
OLD = "2026-02-20T08:00:00Z"
_RECENT = timedelta(minutes=2)
_LAST = ("ResourceQuota", "LimitRange")
"""Kinds that would refuse the objects of their own case."""


@dataclass(frozen=True, slots=True)
class Told:
    """One of these objects must be named, with all of these words."""

    named: tuple[str, ...]
    cause: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    healthy: bool
    objects: tuple[Object, ...]
    then: tuple[Object, ...]
    told: tuple[Told, ...]
    """What must be told: of several simultaneous causes every one."""
    topic: str
    """The file that it is from."""
    alone: str = ""
    """Why it cannot be planted on a server beside others."""

    @property
    def namespace(self) -> str:
        return f"bank-{self.name}"

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(name for told in self.told for name in told.named)


def cases(bank: Path = BANK, *, now: datetime | None = None) -> Iterator[Case]:
    """In files `$ns` is the case's namespace, `$old` days ago and `$recent` two minutes ago."""
    recent = (now or datetime.now(UTC)) - _RECENT
    words = {"$old": OLD, "$recent": f"{recent:%Y-%m-%dT%H:%M:%SZ}"}
    for path in sorted(bank.glob("*.yaml")):
        for given in yaml.load(path.read_text(), yaml.CSafeLoader):
            name = given.get("fault") or given["healthy"]
            case = _filled(given, words | {"$ns": f"bank-{name}"})
            told = case.get("all") or ([case] if "named" in case else [])
            yield Case(
                name,
                "healthy" in given,
                tuple(case.get("objects", ())),
                tuple(case.get("then", ())),
                tuple(Told(tuple(one["named"]), tuple(map(str, one["cause"]))) for one in told),
                path.stem,
                case.get("alone", ""),
            )


def _filled(value: Any, words: dict[str, str]) -> Any:
    """The value with the placeholders replaced; every call makes a copy."""
    if isinstance(value, dict):
        return {_filled(key, words): _filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, words) for one in value]
    if isinstance(value, str) and "$" in value:
        for word, meaning in words.items():
            value = value.replace(word, meaning)
    return value


def as_listed(case: Case) -> list[Object]:
    """The objects as a server would list them: with a namespace, an age, and uids of owners."""
    custom: dict[str, Resource] = {}
    objects = [_namespace_object(case), _account(case), *case.objects]
    for given in objects:
        if given["kind"] == "CustomResourceDefinition":
            custom |= _defined(given)
        resource = _resource(given, custom)
        meta = given["metadata"]
        if resource.namespaced:
            meta.setdefault("namespace", case.namespace)
        meta.setdefault("uid", f"{given['kind']} {meta['name']}")
        meta.setdefault("creationTimestamp", OLD)
        meta.setdefault("generation", 1)
        for owner in meta.get("ownerReferences", ()):
            owner.setdefault("uid", f"{owner['kind']} {owner['name']}")
    return objects


def _namespace_object(case: Case) -> Object:
    meta = {"name": case.namespace, "labels": {"kubernetes.io/metadata.name": case.namespace}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def _account(case: Case) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}


def _resource(given: Object, custom: dict[str, Resource]) -> Resource:
    defined = custom.get(given["kind"])
    if defined is not None and defined.api_version == given["apiVersion"]:
        return defined
    return builtins.resource(given["kind"].lower())


async def plant_state(api: Api, case: Case) -> None:
    """Where no controller makes the default account of a namespace, without which no pod is."""
    await api.create(builtins.resource("namespaces"), _namespace_object(case))
    accounts = builtins.resource("serviceaccounts")
    await api.create(accounts, _account(case), namespace=case.namespace)
    await _fill(api, case, sorted(case.objects, key=_comes_last))


async def plant(api: Api, case: Case) -> None:
    await api.create(builtins.resource("namespaces"), _namespace_object(case))
    await _fill(api, case, case.objects)


async def _fill(api: Api, case: Case, objects: Sequence[Object]) -> None:
    custom: dict[str, Resource] = {}
    uids: dict[tuple[str, str], str] = {}
    for given in objects:
        if given["kind"] == "CustomResourceDefinition":
            custom |= _defined(given)
            await _define(api, given)
        else:
            await _create(api, case, _resource(given, custom), given, uids)
    for step in case.then:
        await _step(api, case, step, custom)


def _comes_last(given: Object) -> bool:
    return given["kind"] in _LAST or given["kind"].endswith("WebhookConfiguration")


async def _define(api: Api, given: Object) -> None:
    """Several cases may have objects of one kind."""
    body = {key: value for key, value in given.items() if key != "status"}
    with contextlib.suppress(AlreadyExists):
        await api.create(builtins.resource("customresourcedefinitions"), body)


async def _create(
    api: Api, case: Case, resource: Resource, given: Object, uids: dict[tuple[str, str], str]
) -> None:
    """With its status, and with the uids of its owners; deleted if it is to be on its way out."""
    meta = dict(given["metadata"])
    deleted = meta.pop("deletionTimestamp", None)
    meta.pop("deletionGracePeriodSeconds", None)
    for owner in meta.get("ownerReferences", ()):
        owner["uid"] = uids.get((owner["kind"], owner["name"]), "00000000-unknown")
    body = {**given, "metadata": meta}
    status = body.pop("status", None)
    namespace = _namespace(resource, given, case)
    created = await _served(api, resource, body, namespace)
    name = created["metadata"]["name"]
    uids[given["kind"], name] = created["metadata"]["uid"]
    if deleted:
        await api.delete(resource, name, namespace=namespace)
    if status:
        patch = {"status": status}
        await api.patch(resource, name, patch, namespace=namespace, subresource="status")


async def _served(
    api: Api, resource: Resource, body: Object, namespace: str | None
) -> dict[str, Any]:
    """Creates the object; a new kind is served a moment after its definition was accepted."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            with contextlib.suppress(NotFound):
                return await api.create(resource, body, namespace=namespace)


def _namespace(resource: Resource, given: Object, case: Case) -> str | None:
    return given["metadata"].get("namespace", case.namespace) if resource.namespaced else None


def _defined(given: Object) -> dict[str, Resource]:
    spec = given["spec"]
    names, version = spec["names"], spec["versions"][0]["name"]
    namespaced = spec["scope"] == "Namespaced"
    resource = Resource(
        spec["group"], version, names["plural"], names["kind"], namespaced=namespaced
    )
    return {names["kind"]: resource, names["kind"].lower(): resource}


async def _step(api: Api, case: Case, step: Object, custom: dict[str, Resource]) -> None:
    verb = next(verb for verb in ("status", "patch", "delete", "wait") if verb in step)
    kind, _, name = step[verb].partition("/")
    resource = custom.get(kind) or builtins.resource(kind)
    namespace = step.get("namespace", case.namespace) if resource.namespaced else None
    if verb == "wait":
        await _until(api, resource, name, namespace, step["status-has"])
        return
    if verb == "delete":
        await api.delete(resource, name, namespace=namespace)
        return
    body = {"status": step["body"]} if verb == "status" else step["body"]
    subresource = "status" if verb == "status" else ""
    await api.patch(resource, name, body, namespace=namespace, subresource=subresource)


async def _until(
    api: Api, resource: Resource, name: str, namespace: str | None, wanted: Object
) -> None:
    """Returns once the status has these values."""
    chosen = Selection(namespace, fields=f"metadata.name={name}")
    async with asyncio.timeout(_PATIENCE), api.watch(resource, chosen, type=Object) as events:
        async for event in events:
            status = event.object.get("status") or {}
            if all(status.get(key) == value for key, value in wanted.items()):
                return


def naming(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that name one of the case's objects."""
    return [finding for finding in findings if names_in(finding) & set(case.named)]


def is_told(case: Case, findings: Sequence[Finding]) -> bool:
    """Whether every cause of the case is told of the right object."""
    return all(_telling(case, told, findings) for told in case.told)


def _telling(case: Case, told: Told, findings: Sequence[Finding]) -> bool:
    # The name of a case says what its fault is: it must not count as an answer.
    words = [word.replace(case.namespace, "NS") for word in told.cause]
    texts = (
        text_of(finding).replace(case.namespace, "NS")
        for finding in findings
        if names_in(finding) & set(told.named)
    )
    return any(all(re.search(word, text, re.IGNORECASE) for word in words) for text in texts)


def alarms(case: Case, findings: Sequence[Finding]) -> list[str]:
    """What is said of a healthy case."""
    return [
        text_of(finding)
        for finding in findings
        if any(case.namespace in name or case.name in name.split() for name in names_in(finding))
    ]


def names_in(finding: Finding) -> set[str]:
    subjects = [finding.subject, *finding.objects, *(effect.subject for effect in finding.effects)]
    return {str(subject) for subject in subjects}


def text_of(finding: Finding) -> str:
    effects = (f"{effect.subject}: {effect.evidence}" for effect in finding.effects)
    return " ".join([f"{finding.rule} {finding.subject}: {finding.evidence}", *effects])
