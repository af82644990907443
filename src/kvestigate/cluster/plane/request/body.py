"""The request body as an object, refused the way kube-apiserver refuses it.

A body may be JSON, YAML or protobuf. `decode` brings it into the stored form of the kind that the
path names, in four steps, each with its own error:

1. **`read`**: bytes to a dict. What is not JSON, YAML or protobuf is a 400 that says where. Keys
   given twice are remembered (`Repeated`): JSON decoders keep the last in silence, but
   `fieldValidation=Strict` must refuse them.
2. **`identify`**: `kind` and `apiVersion` may be left out of a built-in object, but must not
   be another kind's. Custom resources must state both.
3. **`fit`**: fields that the type does not know and values of the wrong type. A wrong type
   is always a 400. Unknown and repeated fields are refused, sent back as warnings or ignored, as
   `fieldValidation` asks. What is left is the object as decoding into Go's struct and encoding
   again would leave it: nulls and empty values that Go omits are gone, quantities and times are
   canonical.
4. `to_stored`: conversion to the stored version.

Most bodies are fine, so step 3 first asks `Kind.tidied`, which walks an object once and gives up at
the first doubt; only then are problems collected and the object rebuilt. A patch knows even more:
what it left alone was in normal form before. `refit` looks only at the parts that are not the very
same objects as in the stored one (`_unshared`); that is most of the speed of a PATCH.

`Misfit` says why a value does not fit; the verb decides which error that becomes, because
kube-apiserver words it differently for a body, a patch and an apply.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.yaml_body import ParsedYaml, parse_yaml
from kvestigate.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from kvestigate.kube import causes, duplicates, pauses
from kvestigate.kube.duplicates import ONCE, Repeated
from kvestigate.kube.schema import Problems

_decode = msgspec.json.Decoder().decode

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = f"application/json, application/yaml, {PROTOBUF}"


async def decode(call: Call) -> Object:
    """The object in the body of a create or update, checked against the path's kind and brought
    into its stored version. Done beside the loop if the body is large."""
    if is_large(call.request.body, _media(call)):
        return await call.aside(lambda: _decoded(call))
    return _decoded(call)


def _decoded(call: Call) -> Object:
    obj, repeated = _read(call.request.body, _media(call), call.served)
    if call.served.type is None:
        _check_custom_identity(obj, call)
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    return call.served.to_stored(accepted(obj, call, repeated))


def accepted(obj: Object, call: Call, repeated: Repeated) -> Object:
    """The normal form of an object; BadRequest if it is of another kind or does not fit its own."""
    kind = call.served
    try:
        if kind.type is not None:
            identify(obj, kind)
        return fit(obj, call, repeated, _as_json(call))
    except Misfit as misfit:
        version = (obj.get("apiVersion") or "").rpartition("/")[2] or kind.resource.version
        raise BadRequest(
            f'{obj.get("kind") or kind.resource.kind} in version "{version}" cannot be handled as '
            f"a {kind.resource.kind}: {misfit}"
        ) from None


async def read(call: Call, kind: Kind) -> tuple[Object, Repeated]:
    """The object in the body, and the keys that the body repeats; read beside the loop if large."""
    data, media = call.request.body, _media(call)
    if is_large(data, media):
        return await call.aside(lambda: _read(data, media, kind))
    return _read(data, media, kind)


def is_large(data: bytes, media: str) -> bool:
    """Whether to read the body would hold others up."""
    return media == "application/yaml" or len(data) > _LARGE


_LARGE = 8_192
"""Bytes of JSON or protobuf that are read at once. A few aliases in YAML may say very much."""


def _read(data: bytes, media: str, kind: Kind) -> tuple[Object, Repeated]:
    repeated = ONCE
    if media == "application/json":
        value, repeated = _json(data, kind)
    elif media == "application/yaml":
        value, repeated = _yaml(data, kind, parse_yaml(data))
    elif media == PROTOBUF and kind.type is not None:
        value = _protobuf(data, kind)
    else:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{ACCEPTED}"
        )
    if value is None:
        return {}, repeated
    if not isinstance(value, dict):
        raise _unrecognized(kind, data, "the body is not an object")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field, ""), str | None):
            raise _unrecognized(kind, data, f"{field} is not a string")
    return value, repeated


def _media(call: Call) -> str:
    content_type = call.request.headers.get("content-type")
    return content_type.partition(";")[0].strip() or "application/json"


class Misfit(Exception):
    """A value does not fit the kind. The verb decides which error this becomes."""


def _check_custom_identity(obj: Object, call: Call) -> None:
    """Refuse a custom resource whose kind or apiVersion is missing or wrong."""
    resource = call.served.resource
    told_kind, told_version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if not told_kind:
        shown = call.request.body.decode(errors="replace")
        raise _unrecognized(
            call.served, call.request.body, f"Object 'Kind' is missing in '{shown}'"
        )
    if told_version != resource.api_version:
        unknown = [name for name in sorted(obj) if name not in ("apiVersion", "kind", "metadata")]
        call.warnings.extend(f'unknown field "{name}"' for name in unknown)
        raise BadRequest(
            f"the API version in the data ({told_version}) does not match the expected API "
            f"version ({resource.api_version})"
        )
    if told_kind != resource.kind:
        cause = causes.invalid("kind", told_kind, f"must be {resource.kind}")
        name = (obj.get("metadata") or {}).get("name") or ""
        raise causes.reject(told_kind, resource.group, name, [cause])


def identify(obj: Object, kind: Kind) -> None:
    """Raise Misfit if kind or apiVersion are not those of the path; both may be left out."""
    resource = kind.resource
    told_kind = obj.get("kind") or resource.kind
    told_version = obj.get("apiVersion") or resource.api_version
    if told_kind != resource.kind:
        raise Misfit(f"the path is for a {resource.kind}, not a {told_kind}")
    if told_version != resource.api_version:
        raise BadRequest(
            f"the API version in the data ({told_version}) does not match the expected API "
            f"version ({resource.api_version})"
        )
    obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version


def refit(obj: Object, known: Object, call: Call, repeated: Repeated) -> Object:
    """What `fit` returns for a patched object; `known` is the object before, in its normal form.

    Parts that both share are not checked again.
    """
    if call.served.type is None or not _goes_on(obj, known):
        return fit(obj, call, repeated)
    meta = obj["metadata"]
    part, part_of_meta = _unshared(obj, known), _unshared(meta, known["metadata"])
    touched = {**part, "metadata": part_of_meta}
    fitted = fit(touched, call, repeated)
    if fitted is touched:
        return obj
    renewed_meta = _renewed(meta, part_of_meta, fitted["metadata"])
    return {**_renewed(obj, part, fitted), "metadata": renewed_meta}


_ABSENT = object()


def _unshared(obj: Object, known: Object) -> Object:
    if obj is known:
        return {}
    return {name: value for name, value in obj.items() if known.get(name, _ABSENT) is not value}


def _renewed(obj: Object, part: Object, fitted: Object) -> Object:
    """The object, with the fields of `part` replaced by those in `fitted`, or dropped."""
    return {
        name: fitted[name] if name in part else value
        for name, value in obj.items()
        if name not in part or name in fitted
    }


def _goes_on(obj: Object, known: Object) -> bool:
    """Whether `obj` has all fields of `known`. A dropped field may change the form of the rest."""
    meta = obj["metadata"]
    return (
        isinstance(meta, dict)
        and known.keys() <= obj.keys()
        and known["metadata"].keys() <= meta.keys()
    )


def _as_json(call: Call) -> str:
    """The body, if it is JSON."""
    media = _media(call)
    return call.request.body.decode(errors="replace") if media == "application/json" else ""


def fit(obj: Object, call: Call, repeated: Repeated = ONCE, text: str = "") -> Object:
    """The object in its normal form; Misfit if it does not fit the kind.

    Unknown and repeated fields are treated as `fieldValidation` asks. `text`: the JSON in which
    the client sent all of the object.
    """
    if repeated is ONCE and (tidy := call.served.tidied(obj)) is not None:
        return tidy
    problems = call.served.problems(obj)
    if problems.mistyped:
        raise Misfit(problems.mistyped)
    if (problems or repeated.warnings) and strictness(call) != "Ignore":
        _tell(obj, call, problems, repeated, text)
    fitted = call.served.normalised(obj)
    if obj["metadata"].get("managedFields") == []:  # says more than nothing: forget them
        fitted = {**fitted, "metadata": {**fitted["metadata"], "managedFields": []}}
    return fitted


def _tell(obj: Object, call: Call, problems: Problems, repeated: Repeated, text: str) -> None:
    """Refuse unknown and repeated fields, or warn of them, in the order that clients know.

    Go meets the fields of a built-in object where they are in the JSON. What was sent as YAML or
    as a patch becomes JSON with sorted keys first.
    """
    complaints, warnings, unknown = repeated.complaints, repeated.warnings, problems.warnings
    if call.served.type is not None:
        if not text:
            in_order = _decode(msgspec.json.encode(obj, order="sorted"))
            unknown = call.served.problems(in_order).warnings
        elif repeated.warnings and problems.unknown:
            complaints = warnings = duplicates.in_order(text, problems.unknown)
            unknown = ()
    if strictness(call) == "Strict":
        listed = (*complaints, *unknown)[: duplicates.MOST_TOLD]
        raise Misfit(f"strict decoding error: {', '.join(listed)}")
    call.warnings.extend((*warnings, *unknown)[: duplicates.MOST_TOLD])


def strictness(call: Call) -> str:
    return call.info.params.get("fieldValidation", "") or "Warn"


def _json(data: bytes, kind: Kind) -> tuple[Any, Repeated]:
    try:
        return decode_json(data)
    except UnicodeDecodeError:  # as Go does, replace what is no UTF-8
        return _json(data.decode("utf-8", "replace").encode(), kind)
    except (msgspec.DecodeError, RecursionError) as error:
        why = f"couldn't get version/kind; json parse error: {json_problem(error)}"
        raise _unrecognized(kind, data, why) from None


MOST_VALUES = 120_000
"""Values of a body in JSON: the decoder cannot be interrupted."""


def decode_json(data: bytes) -> tuple[Any, Repeated]:
    """The value of a text, and the keys that the text repeats.

    Raises DecodeError, UnicodeDecodeError or RecursionError if the text is not JSON.
    """
    check_amount(data)
    if _is_deep(data):
        raise RecursionError
    value = _decode(data)
    return value, duplicates.checked(data, value)


def check_amount(data: bytes) -> None:
    """Refuse a text in JSON that has very many values."""
    if _has_many_values(data):
        raise RequestEntityTooLarge(f"the request has more than {MOST_VALUES} values")


def _has_many_values(data: bytes) -> bool:
    """Whether there are too many commas and brackets, of which each value takes one, outside of
    strings. Few texts have as many with those inside of strings."""
    if len(data) <= MOST_VALUES or _separators(data) <= MOST_VALUES:
        return False
    return sum(map(_separators, _without_escapes(data).split(b'"')[::2])) > MOST_VALUES


def _without_escapes(data: bytes) -> bytes:
    """JSON in which every quote begins or ends a string."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"")


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


MOST_LEVELS = 250
"""Lists and objects inside of each other. To find out by an overflow of the stack takes longer."""
_BETWEEN_RESTS = 64 * 1024
_CURLY = bytes.maketrans(b"[]", b"{}")
_NO_BRACKETS = bytes(set(range(256)) - set(b'{}[]"'))


def _is_deep(data: bytes) -> bool:
    """Whether JSON has more than MOST_LEVELS. Of most objects the number of brackets says so."""
    if data.count(b"{") + data.count(b"[") <= MOST_LEVELS:
        return False
    plain, pieces = _without_escapes(data), []
    for start in range(0, len(plain), _BETWEEN_RESTS):
        pauses.rest_if_due()
        pieces.append(plain[start : start + _BETWEEN_RESTS].translate(_CURLY, _NO_BRACKETS))
    brackets = b"".join(b"".join(pieces).split(b'"')[::2])
    for _ in range(MOST_LEVELS):
        pauses.rest_if_due()
        outer = brackets.replace(b"{}", b"")
        if len(outer) == len(brackets):
            return False  # nothing is left, or brackets that the decoder complains about
        brackets = outer
    return bool(brackets)


def json_problem(error: Exception) -> str:
    """What is wrong with bytes that the JSON decoder refused."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _yaml(data: bytes, kind: Kind, parsed: ParsedYaml) -> tuple[Any, Repeated]:
    if parsed.problem:
        raise _unrecognized(kind, data, parsed.problem)
    return parsed.value, duplicates.in_yaml(parsed.repeated)


def _protobuf(data: bytes, kind: Kind) -> Object:
    from kvestigate.cluster.plane.request.protobuf import envelope

    resource = kind.resource
    try:
        return envelope.decode(data, resource.kind, resource.api_version)
    except envelope.Unrecognized as error:
        raise _unrecognized(kind, data, str(error)) from None
    except envelope.Undecodable as error:
        raise BadRequest(
            f'{error.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None


_SHOWN = 30
"""Bytes of a body that are shown when it is no object."""


def _unrecognized(kind: Kind, data: bytes, why: str) -> BadRequest:
    shown = data[:_SHOWN].decode(errors="replace") if data[:1] == b"{" else data[:_SHOWN].hex()
    if len(data) > _SHOWN:
        shown += " ..."
    return BadRequest(
        f"the object provided is unrecognized (must be of type {kind.resource.kind}): {why} "
        f"({shown or '<empty>'})"
    )
