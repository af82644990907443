"""OpenAPI version 2: one document with everything."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary, ref

from kvestigate.kube import facts
from kvestigate.plane import answer, negotiate
from kvestigate.plane.documents import Document
from kvestigate.plane.openapi import operations, schemas, v2_protobuf
from kvestigate.plane.openapi.operations import Operation
from kvestigate.plane.openapi.schemas import GVK, V2, Json
from kvestigate.plane.types import Types
from kvestigate.wire.message import Request, Response

PATH = "/openapi/v2"

_CACHING = "no-cache, private"


class OpenApi:
    """The document about one set of types, in each form made when it is first asked for."""

    def __init__(self, types: Types) -> None:
        # Whoever keeps this by its types must not have it keep them.
        self._types = ref(types)

    def respond(self, request: Request) -> Response:
        for media, _ in negotiate.alternatives(request.headers.get("accept") or "*/*"):
            if media in negotiate.JSON:
                return self._json.answer(request, _CACHING)
            if media in v2_protobuf.ASKED:
                return self._protobuf.answer(request, _CACHING)
        return Response(406, [("vary", "Accept")])

    @cached_property
    def _json(self) -> Document:
        return Document(answer.encode(self._document()))

    @cached_property
    def _protobuf(self) -> Document:
        return Document(v2_protobuf.encode(self._document()), v2_protobuf.MEDIA)

    def _document(self) -> Json:
        types = self._types()
        assert types is not None, "asked for by them"
        return _document(types)


_made: WeakKeyDictionary[Types, OpenApi] = WeakKeyDictionary()


def of(types: Types) -> OpenApi:
    found = _made.get(types)
    if found is None:
        found = _made[types] = OpenApi(types)
    return found


def _document(types: Types) -> Json:
    paths: dict[str, Json] = {}
    definitions = {name: schemas.builtin(name, V2) for name in facts.definition_names()}
    for kind in types:
        if kind.type is None:
            definitions[schemas.custom_name(kind)] = schemas.custom(kind, V2)
            definitions[f"{schemas.custom_name(kind)}List"] = schemas.custom_list(kind, V2)
        for operation in operations.of_kind(kind):
            entry = paths.setdefault(operation.path, {})
            entry[operation.method] = _operation(operation)
            entry.setdefault("parameters", _path_parameters(operation))
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


def _operation(operation: Operation) -> Json:
    parameters: list[Json] = [
        {"name": name, "in": "query", "type": operations.parameter_type(name), "uniqueItems": True}
        for name in operation.parameters
    ]
    if operation.sent:
        schema = V2.reference(operation.sent)
        parameters.insert(0, {"name": "body", "in": "body", "schema": schema})
    received = V2.reference(operation.received) if operation.received else {"type": "string"}
    return {
        "operationId": operation.id,
        "consumes": list(operation.consumes),
        "produces": ["application/json", "application/yaml"],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "schema": received}},
        "x-kubernetes-action": operation.action,
        GVK: operation.gvk,
    }


def _path_parameters(operation: Operation) -> list[Json]:
    return [
        {"name": name, "in": "path", "type": "string", "required": True, "uniqueItems": True}
        for name in operation.variables
    ]
