"""The request body as an object, refused the way kube-apiserver refuses it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.errors import BadRequest, UnsupportedMediaType
from kvestigate.kube import schema
from kvestigate.plane.call import Call
from kvestigate.plane.kinds.kind import Kind, Object

_decode = msgspec.json.Decoder().decode

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = f"application/json, application/yaml, {PROTOBUF}"


def decode(call: Call) -> Object:
    """The object in the body of a create or update, checked against the path's kind and brought
    into its stored version."""
    obj = parse(call.request.body, call.request.headers.get("content-type"), call.served)
    check_identity(obj, call.served)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return call.served.to_stored(normal_form(obj, call))


def parse(data: bytes, content_type: str, kind: Kind) -> Object:
    media = content_type.partition(";")[0].strip() or "application/json"
    if media == "application/json":
        value = _json(data, kind)
    elif media == "application/yaml":
        value = _yaml(data, kind)
    elif media == PROTOBUF and kind.type is not None:
        value = _protobuf(data, kind)
    else:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{ACCEPTED}"
        )
    if not isinstance(value, dict):
        raise _unrecognized(kind, "json: cannot unmarshal into an object")
    return value


def check_identity(obj: Object, kind: Kind) -> None:
    """kind and apiVersion may be left out, but not be another's."""
    resource = kind.resource
    found_kind, found_version = obj.get("kind") or resource.kind, obj.get("apiVersion")
    found_version = found_version or resource.api_version
    if found_version != resource.api_version:
        if resource.group:
            raise BadRequest(
                f"the API version in the data ({found_version}) does not match the expected API "
                f"version ({resource.api_version})"
            )
        raise BadRequest(
            f'{found_kind} in version "{resource.version}" cannot be handled as a '
            f'{resource.kind}: no kind "{found_kind}" is registered for version '
            f'"{found_version}"'
        )
    if found_kind != resource.kind:
        raise BadRequest(
            f'{found_kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: a {resource.kind} was expected"
        )
    obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version


def normal_form(obj: Object, call: Call) -> Object:
    """The object as its type keeps it; misfits are treated as `fieldValidation` asks."""
    strictness = call.asked.params.get("fieldValidation", "") or "Warn"
    found = call.served.problems(obj)
    if found:
        resource = call.served.resource
        if found.mistyped or strictness == "Strict":
            raise schema.refusal(found, kind=resource.kind, version=resource.version)
        if strictness == "Warn":
            call.warnings.extend(found.warnings)
    return call.served.normalised(obj)


def _json(data: bytes, kind: Kind) -> Any:
    try:
        return _decode(data)
    except UnicodeDecodeError:  # as Go does, replace what is no UTF-8
        return _json(data.decode("utf-8", "replace").encode(), kind)
    except (msgspec.DecodeError, RecursionError) as error:
        shown = data[:64].decode(errors="replace") or "<empty>"
        raise _unrecognized(kind, f"{error} ({shown})") from None


def _yaml(data: bytes, kind: Kind) -> Any:
    from kvestigate.errors import InputError
    from kvestigate.kube.yaml_documents import load

    try:
        documents = load(data.decode(), source="body")
    except (InputError, UnicodeDecodeError) as error:
        raise _unrecognized(kind, str(error)) from None
    return documents[0].value if documents else None


def _protobuf(data: bytes, kind: Kind) -> Object:
    from kvestigate.plane.protobuf import envelope

    resource = kind.resource
    try:
        return envelope.decode(data, resource.kind, resource.api_version)
    except envelope.Unrecognized as error:
        shown = data[:64].hex() or "<empty>"
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {resource.kind}): {error} "
            f"({shown})"
        ) from None
    except envelope.Undecodable as error:
        raise BadRequest(
            f'{error.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None


def _unrecognized(kind: Kind, why: str) -> BadRequest:
    return BadRequest(
        f"the object provided is unrecognized (must be of type {kind.resource.kind}): couldn't "
        f"get version/kind; json parse error: {why}"
    )
