"""OpenAPI version 2: one document with everything, encoded an entry at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from weakref import ref

import msgspec

from kvestigate.cluster.plane.front.discovery import once_per_types
from kvestigate.cluster.plane.front.openapi import operations, schemas, v2_protobuf
from kvestigate.cluster.plane.front.openapi.operations import Operation
from kvestigate.cluster.plane.front.openapi.schemas import GVK, V2, Json
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.request import negotiate
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.response.answer import Document
from kvestigate.cluster.plane.store.plane import Breathe
from kvestigate.http.message import Request, Response
from kvestigate.kube import facts

PATH = "/openapi/v2"
JSON = "application/json"

_CACHING = "no-cache, private"


class OpenApi:
    """The document of one set of types; encoded in each media type when first requested."""

    def __init__(self, types: Types) -> None:
        # A weak reference: this object is the value of a WeakKeyDictionary with these keys.
        self._types = ref(types)
        self._documents: dict[str, Document] = {}

    async def respond(self, request: Request, breathe: Breathe) -> Response:
        for media, _ in negotiate.alternatives(request.headers.get("accept") or "*/*"):
            if media in negotiate.JSON:
                return (await self._document(JSON, breathe)).answer(request, _CACHING)
            if media in v2_protobuf.ASKED:
                document = await self._document(v2_protobuf.MEDIA, breathe)
                return document.answer(request, _CACHING)
        return Response(406, [("vary", "Accept")])

    async def _document(self, media: str, breathe: Breathe) -> Document:
        document = self._documents.get(media)
        if document is None:
            types = self._types()
            assert types is not None, "the caller has them"
            if media == JSON:
                body = answer.encode(await _document(types, _as_json, breathe))
            else:
                body = v2_protobuf.encode(await _document(types, _as_protobuf, breathe))
            document = self._documents[media] = Document(body, media)
        return document


of = once_per_types(OpenApi)


class _Encoding(NamedTuple):
    """How the entries of a document are encoded."""

    path: Callable[[Json], Any]
    builtin: Callable[[str], Any]
    """Encodes the schema of the definition with this name."""
    schema: Callable[[Json], Any]
    builtin_paths: dict[Kind, dict[str, Any]]
    """The encoded paths of built-in kinds, which all documents share."""


def _raw(value: Json) -> msgspec.Raw:
    return msgspec.Raw(answer.encode(value))


def _protobuf_of_builtin(name: str) -> bytes:
    return v2_protobuf.schema(schemas.builtin(name, V2))


_as_json = _Encoding(_raw, lambda name: schemas.builtin_text(name, V2), _raw, {})
_as_protobuf = _Encoding(v2_protobuf.path, cache(_protobuf_of_builtin), v2_protobuf.schema, {})


async def _document(types: Types, encoding: _Encoding, breathe: Breathe) -> Json:
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name in facts.definition_names():
        definitions[name] = encoding.builtin(name)
        await breathe()
    for kind in types:
        if kind.type is None:
            name = schemas.custom_name(kind)
            definitions[name] = encoding.schema(schemas.custom(kind, V2))
            definitions[f"{name}List"] = encoding.schema(schemas.custom_list(kind, V2))
        paths.update(await _paths(kind, encoding, breathe))
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": facts.release()},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": {
            "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}
        },
        "security": [{"BearerToken": []}],
    }


async def _paths(kind: Kind, encoding: _Encoding, breathe: Breathe) -> dict[str, Any]:
    """The encoded paths of a kind."""
    paths = encoding.builtin_paths.get(kind)
    if paths is None:
        paths = {}
        for path, entry in _entries(kind).items():
            paths[path] = encoding.path(entry)
            await breathe()
        if kind.type is not None:
            encoding.builtin_paths[kind] = paths
    return paths


def _entries(kind: Kind) -> dict[str, Json]:
    """The operations on objects of a kind, by path."""
    entries: dict[str, Json] = {}
    for operation in operations.of_kind(kind):
        entry = entries.setdefault(operation.path, {})
        entry[operation.method] = _operation(operation)
        entry.setdefault("parameters", _path_parameters(operation))
    return entries


def _operation(operation: Operation) -> Json:
    parameters: list[Json] = [
        {"name": name, "in": "query", "type": operations.parameter_type(name), "uniqueItems": True}
        for name in operation.parameters
    ]
    if operation.request_schema:
        schema = V2.reference(operation.request_schema)
        parameters.insert(0, {"name": "body", "in": "body", "schema": schema})
    name = operation.response_schema
    response = V2.reference(name) if name else {"type": "string"}
    return {
        "operationId": operation.id,
        "consumes": list(operation.consumes),
        "produces": ["application/json", "application/yaml"],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "schema": response}},
        "x-kubernetes-action": operation.action,
        GVK: operation.gvk,
    }


def _path_parameters(operation: Operation) -> list[Json]:
    return [
        {"name": name, "in": "path", "type": "string", "required": True, "uniqueItems": True}
        for name in operation.variables
    ]
