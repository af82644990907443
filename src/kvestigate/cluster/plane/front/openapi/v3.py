"""OpenAPI version 3: an index, and a document for each group and version."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from kvestigate.cluster.plane.front.discovery import once_per_types
from kvestigate.cluster.plane.front.openapi import operations, schemas
from kvestigate.cluster.plane.front.openapi.operations import Operation
from kvestigate.cluster.plane.front.openapi.schemas import GVK, META, V3, Json
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.response.answer import Document
from kvestigate.cluster.plane.store.plane import Breathe
from kvestigate.http.message import Request, Response
from kvestigate.kube import facts

ROOT = "/openapi/v3"


class OpenApi:
    """The documents of one set of types, each made when first requested.

    The index contains the digest of every document, so it needs all of them.
    """

    def __init__(self, types: Types) -> None:
        self._kinds: dict[str, list[Kind]] = {}
        for kind in types:
            resource = kind.resource
            root = "apis" if resource.group else "api"
            self._kinds.setdefault(f"{root}/{resource.api_version}", []).append(kind)
        self._documents: dict[str, Document] = {}

    async def respond(
        self, path: str, request: Request, digest: str, breathe: Breathe
    ) -> Response | None:
        """The document at a path, None if there is none.

        `digest`: that of the document in the index that the client read.
        """
        if path == ROOT:
            for name in self._kinds:
                await self.document(name, breathe)
            return answer.json_bytes(self._index)
        name = path.removeprefix(f"{ROOT}/")
        if name not in self._kinds:
            return None
        document = await self.document(name, breathe)
        if digest and digest != document.digest:
            headers = [("location", _url(name, document)), ("etag", document.tag)]
            return Response(301, headers)
        # A document that is requested by its digest never changes.
        return document.answer(request, "public, immutable" if digest else "no-cache, private")

    async def document(self, name: str, breathe: Breathe) -> Document:
        """The document of a group and version: `apis/apps/v1`."""
        document = self._documents.get(name)
        if document is None:
            kinds = tuple(self._kinds[name])
            document = _by_kinds.get(kinds)
            if document is None:
                value = await _document(kinds, breathe)
                document = _by_kinds[kinds] = Document(answer.encode(value))
            self._documents[name] = document
        return document

    @cached_property
    def _index(self) -> bytes:
        paths = {
            name: {"serverRelativeURL": _url(name, self._documents[name])}
            for name in sorted(self._kinds)
        }
        return answer.encode({"paths": paths})


_by_kinds: WeakValueDictionary[tuple[Kind, ...], Document] = WeakValueDictionary()
"""Planes that differ in some of their types share the documents of the others."""
of = once_per_types(OpenApi)


def _url(name: str, document: Document) -> str:
    return f"{ROOT}/{name}?hash={document.digest}"


async def _document(kinds: Sequence[Kind], breathe: Breathe) -> Json:
    paths: dict[str, Json] = {}
    used = {f"{META}.APIResourceList"}
    for kind in kinds:
        if "watch" in kind.resource.verbs:
            used.add(f"{META}.WatchEvent")
        for operation in operations.of_kind(kind):
            used |= {operation.request_schema, operation.response_schema}
            entry = paths.setdefault(operation.path, {})
            entry[operation.method] = _operation(operation)
            entry.setdefault("parameters", _path_parameters(operation))
        await breathe()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": facts.release()},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": await _schemas(kinds, used, breathe),
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}
            },
        },
    }


async def _schemas(kinds: Sequence[Kind], used: set[str], breathe: Breathe) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for kind in kinds:
        if kind.type is None:
            used |= {schemas.OBJECT_META, schemas.LIST_META}
            result[schemas.custom_name(kind)] = schemas.custom(kind, V3)
            result[f"{schemas.custom_name(kind)}List"] = schemas.custom_list(kind, V3)
    for name in schemas.reachable([name for name in used if name and name not in result]):
        result[name] = schemas.builtin_text(name, V3)
        await breathe()
    return dict(sorted(result.items()))


def _operation(operation: Operation) -> Json:
    value: Json = {
        "operationId": operation.id,
        "parameters": [_parameter(name, "query") for name in operation.parameters],
        "responses": {"200": _response(operation.response_schema)},
        "x-kubernetes-action": operation.action,
        GVK: operation.gvk,
    }
    if operation.request_schema:
        schema = V3.reference(operation.request_schema)
        content = {media: {"schema": schema} for media in operation.consumes}
        value["requestBody"] = {"content": content}
    return value


def _response(schema: str) -> Json:
    if not schema:
        return {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}
    return {"description": "OK", "content": {"application/json": {"schema": V3.reference(schema)}}}


def _path_parameters(operation: Operation) -> list[Json]:
    return [{**_parameter(name, "path"), "required": True} for name in operation.variables]


def _parameter(name: str, place: str) -> Json:
    schema = {"type": operations.parameter_type(name), "uniqueItems": True}
    return {"name": name, "in": place, "schema": schema}
