"""apply (server-side): a patch with the fields that its manager wants, and then owns."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.request import body, versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.yaml_body import parse_yaml
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import managed, writing
from kvestigate.cluster.plane.verbs.update import check_name, check_version
from kvestigate.errors import AlreadyExists, ApiError, BadRequest
from kvestigate.http.message import Response
from kvestigate.kube import duplicates
from kvestigate.kube.apply.checking import misfit
from kvestigate.kube.duplicates import ONCE, Repeated

MEDIA = "application/apply-patch+yaml"


def is_apply(call: Call) -> bool:
    """Whether a patch is a server-side apply, by its media type."""
    return call.request.headers.get("content-type").partition(";")[0].strip() == MEDIA


async def apply(call: Call) -> Response:
    config, repeated = await read(call)
    await call.breathe()
    if call.info.subresource or call.plane.tip.get(call.kind.key, call.namespace, call.info.name):
        return answer.one(call, await _change(call, config, repeated))
    try:
        return answer.one(call, await _create(call, config, repeated), 201)
    except AlreadyExists:  # by another writer, just now
        return answer.one(call, await _change(call, config, repeated))


async def read(call: Call) -> tuple[Object, Repeated]:
    """The configuration in the body, checked against the kind that is served, and what the
    body says twice."""
    config, repeated = await _decode(call)
    resource = call.served.resource
    if (_text(config, "apiVersion"), _text(config, "kind")) != (
        resource.api_version,
        resource.kind,
    ):
        raise BadRequest(f"invalid object type: {_type_text(config)}")
    metadata = config.get("metadata")
    meta = metadata if isinstance(metadata, dict) else {}
    if meta.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if problem := misfit(config, call.served.shape):
        place = f"{_text(meta, 'namespace')}/{_text(meta, 'name')}"
        raise ApiError(
            f"failed to create typed patch object ({place}; {_type_text(config)}): {problem}"
        )
    return {**config, "metadata": meta}, repeated


async def _change(call: Call, config: Object, repeated: Repeated) -> Item:
    meta = config["metadata"]

    def alter(current: Object, item: Item) -> Object:
        changed = applied(call, config, current, repeated)
        check_version(call, changed["metadata"].get("resourceVersion") or "", item)
        return changed

    pinned = versions.names_one(_text(meta, "resourceVersion"))
    return await writing.change(call, alter, pinned=pinned, tracked=True)


async def _create(call: Call, config: Object, repeated: Repeated) -> Item:
    if uid := config["metadata"].get("uid"):
        raise call.conflict(
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was "
            "found"
        )
    call.check_name()
    call.require("create")
    obj = applied(call, config, None, repeated)
    obj["metadata"].pop("resourceVersion", None)
    new = await writing.prepare_new(call, obj, tracked=True)
    return await writing.commit_new(call, new)


def applied(
    call: Call, config: Object, live: Object | None, repeated: Repeated, *, speaking: str = ""
) -> Object:
    """The live object, or a new one, with the configuration applied; see `managed.apply`.

    What the configuration says twice is told only then: conflicts come first.
    """
    merged = managed.apply(call, config, live, speaking=speaking)
    _tell(call, repeated)
    try:
        fitted = body.fit(merged, call)
    except body.Misfit as misfit:
        resource = call.served.resource
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {misfit}"
        ) from None
    check_name(fitted["metadata"].get("name") or "", call.info.name)
    return call.served.to_stored(fitted)


def _tell(call: Call, repeated: Repeated) -> None:
    strictness = body.strictness(call)
    if repeated.warnings and strictness == "Strict":
        why = repeated.complaints[0]
        raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: {why}")
    if strictness == "Warn":
        call.warnings.extend(repeated.warnings)


async def _decode(call: Call) -> tuple[Object, Repeated]:
    config, repeated = await _parse(call)
    if config is None:
        return {}, repeated
    if not isinstance(config, dict):
        raise BadRequest("error decoding YAML: the configuration is not an object")
    return config, repeated


async def _parse(call: Call) -> tuple[Any, Repeated]:
    data = call.request.body
    body.check_amount(data)
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # not the JSON that programs send, but YAML
    else:
        if duplicates.none_in(data, value):
            return value, ONCE
    text = data.decode(errors="replace").encode()
    parsed = await call.aside(lambda: parse_yaml(text))
    if parsed.problem:
        why = parsed.problem
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {why}")
    return parsed.value, duplicates.in_yaml(parsed.repeated)


def _type_text(config: Object) -> str:
    """Group, version and kind as Go shows them: `/v1, Kind=Pod`."""
    version = _text(config, "apiVersion")
    group, _, number = version.rpartition("/")
    grouped = "/" if "/" in group else f"{group}/{number}"
    kind = "" if "/" in group else _text(config, "kind")
    return f"{grouped}, Kind={kind}"


def _text(value: Object, field: str) -> str:
    text = value.get(field)
    return text if isinstance(text, str) else ""
