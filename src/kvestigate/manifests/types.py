"""Which resource a manifest is of: built in, served, or defined by the manifests themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.discovery import Discovery
from kvestigate.errors import InputError, nearest
from kvestigate.kube import builtins
from kvestigate.kube.resources import Registry, Resource
from kvestigate.manifests.model import Manifest

DEFINITIONS = ("apiextensions.k8s.io", "CustomResourceDefinition")


class Types:
    """Built-in types need no request; for the others the server is asked once."""

    def __init__(self, api: Api, manifests: Iterable[Manifest]) -> None:
        self._discovery = Discovery(api)
        self._defined = {
            (str(spec.get("group")), str(_names(spec).get("kind"))): spec
            for manifest in manifests
            if (manifest.group, manifest.kind) == DEFINITIONS
            and isinstance(spec := manifest.body.get("spec"), dict)
        }

    def is_defined(self, manifest: Manifest) -> bool:
        """Whether its type is among the manifests, so that it may not be served yet."""
        return (manifest.group, manifest.kind) in self._defined

    async def of(self, manifest: Manifest) -> Resource:
        """InputError hints at what was probably meant."""
        if (spec := self._defined.get((manifest.group, manifest.kind))) is not None:
            return _resource(manifest, spec)
        known = builtins.registry().for_kind(manifest.api_version, manifest.kind)
        if known is not None:
            return known
        registry = await self._discovery.registry()
        served = registry.for_kind(manifest.api_version, manifest.kind)
        if served is None:
            raise _unknown(manifest, registry)
        return served


def _resource(manifest: Manifest, spec: dict[str, Any]) -> Resource:
    return Resource(
        group=manifest.group,
        version=manifest.api_version.rpartition("/")[2],
        plural=str(_names(spec).get("plural", "")),
        kind=manifest.kind,
        namespaced=spec.get("scope") == "Namespaced",
    )


def _names(spec: dict[str, Any]) -> dict[str, Any]:
    names = spec.get("names")
    return names if isinstance(names, dict) else {}


def _unknown(manifest: Manifest, registry: Registry) -> InputError:
    elsewhere = [resource.api_version for resource in registry if resource.kind == manifest.kind]
    near = nearest(manifest.kind, {resource.kind for resource in registry})
    if elsewhere:
        hint = f"{manifest.kind} is in {' and '.join(dict.fromkeys(elsewhere))}"
    elif near:
        hint = f"did you mean kind {near}?"
    else:
        hint = "deploy the CustomResourceDefinition first, or in the same command"
    return InputError(
        f"the server has no kind {manifest.kind!r} in {manifest.api_version}",
        where=manifest.where,
        hint=hint,
    )
