"""Planting the cases of the fault bank on a cluster, and judging an audit of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.health.model import Finding
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource

Object = dict[str, Any]
_PATIENCE = 30.0
BANK = Path(__file__).parent / "bank"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    healthy: bool
    objects: tuple[Object, ...]
    then: tuple[Object, ...]
    named: tuple[str, ...]
    cause: tuple[str, ...]
    topic: str
    """The file that it is from."""

    @property
    def namespace(self) -> str:
        return f"bank-{self.name}"


def cases() -> Iterator[Case]:
    for path in sorted(BANK.glob("*.yaml")):
        for given in yaml.safe_load(path.read_text()):
            name = given.get("fault") or given["healthy"]
            text = yaml.safe_dump(given).replace("$ns", f"bank-{name}")
            case = yaml.safe_load(text)
            yield Case(
                name,
                "healthy" in given,
                tuple(case.get("objects", ())),
                tuple(case.get("then", ())),
                tuple(case.get("named", ())),
                tuple(map(str, case.get("cause", ()))),
                path.stem,
            )


async def plant(api: Api, case: Case) -> None:
    await api.create(
        builtins.resource("namespaces"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}},
    )
    custom: dict[str, Resource] = {}
    for given in case.objects:
        resource = custom.get(given["kind"]) or builtins.resource(given["kind"].lower())
        await api.create(resource, given, namespace=_namespace(resource, given, case))
        if given["kind"] == "CustomResourceDefinition":
            custom |= _defined(given)
    for step in case.then:
        await _step(api, case, step, custom)


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
    return [finding for finding in findings if _names(finding) & set(case.named)]


def telling(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Those that also say the cause."""
    return [
        finding
        for finding in naming(case, findings)
        if all(re.search(word, _text(finding), re.IGNORECASE) for word in case.cause)
    ]


def alarms(case: Case, findings: Sequence[Finding]) -> list[str]:
    """What is said of a healthy case."""
    return [
        _text(finding)
        for finding in findings
        if any(case.namespace in name or case.name in name.split() for name in _names(finding))
    ]


def _names(finding: Finding) -> set[str]:
    subjects = [finding.subject, *finding.objects, *(effect.subject for effect in finding.effects)]
    return {str(subject) for subject in subjects}


def _text(finding: Finding) -> str:
    effects = (f"{effect.subject}: {effect.evidence}" for effect in finding.effects)
    return " ".join([f"{finding.rule} {finding.subject}: {finding.evidence}", *effects])
