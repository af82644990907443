"""Objects of custom resources on their way between versions, by the webhook of their definition.

A definition with `conversion.strategy: Webhook` has versions that differ in more than their name,
and only its webhook knows how. So a write is judged in the version that the client speaks, and
converted to the storage version right before it is stored (`put`). Stored objects say themselves
at which version they are: after the storage version was changed, older ones stay as they are until
somebody writes them anew. Whatever leaves the store for a client is converted first (`shown`), so
that all other code sees objects of the client's version only.

Nothing is remembered: the webhook may answer differently once it was replaced. Many objects are
asked for at once, in reviews of a bounded size, and answers are bounded too: what a webhook sends
is a tenant's word. It may change labels and annotations, and all that is not metadata.

All other kinds pass through here untouched and without an `await` that yields.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kvestigate.cluster.plane.admission.policies.asking import Convert
from kvestigate.cluster.plane.egress.webhooks import CallFailed, CallRefused, Webhooks
from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.store.model import Item, Put, fill
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, BadRequest
from kvestigate.kube import causes, names

_SECONDS = 30
"""How long a webhook may take; definitions cannot say."""
_MOST_OBJECTS, _MOST_BYTES = 500, 1 << 20
"""What one review asks for; a larger object is asked for alone."""
_ANSWER_LIMIT = 8 << 20
_REVIEWS = ("v1", "v1beta1")
_SMALL = 1 << 16
"""Bytes of an answer that are decoded at once."""


async def find(call: Call, state: PlaneState) -> Item:
    """The object that the path names, at the version that the client speaks; or NotFound."""
    item = call.find(state)
    return item if call.served.conversion is None else await shown(call, item)


async def shown(call: Call, item: Item) -> Item:
    """A stored object at the version that the client speaks."""
    (converted,) = await all_shown(call, (item,))
    return converted


async def all_shown(call: Call, items: Sequence[Item]) -> Sequence[Item]:
    """Stored objects at the version that the client speaks."""
    kind = call.served
    if kind.conversion is None or not isinstance(kind, CustomKind):
        return items
    foreign = [item for item in items if not item.data.startswith(kind.head)]
    if not foreign:
        return items
    converted = iter(await convert(call, [_read(item, kind) for item in foreign], kind))
    return [
        item if item.data.startswith(kind.head) else _item(item, next(converted), kind)
        for item in items
    ]


async def put(call: Call, obj: Object, expect: int) -> Put:
    """The mutation that stores an object, at the storage version."""
    kind = call.kind
    storage = kind.storage
    if storage is not kind and isinstance(storage, CustomKind):
        (obj,) = await convert(call, [obj], storage)
    return objects.put(obj, storage, expect)


def _read(item: Item, kind: CustomKind) -> Object:
    """A stored object as the schema of its own version has it."""
    obj = objects.read(item)
    own = kind.versions.get(obj["apiVersion"])
    return obj if own is None else {**own.structure.shaped(obj), "kind": obj["kind"]}


def _item(item: Item, obj: Object, kind: CustomKind) -> Item:
    data = fill(objects.body(obj, kind), item.revision)
    return replace(item, data=data, labels=obj["metadata"].get("labels") or {}, cut=None)


def converter(call: Call) -> Convert:
    """What converts the objects of a write for admission webhooks of another version."""

    async def convert_one(obj: Object, kind: Kind) -> Object:
        assert isinstance(kind, CustomKind)
        (converted,) = await convert(call, [obj], kind)
        return converted

    return convert_one


async def convert(call: Call, objs: Sequence[Object], to: CustomKind) -> list[Object]:
    """Objects at the version of a kind. Raises the error with which kube-apiserver says that the
    webhook failed."""
    converted: list[Object] = []
    for portion in _portions(objs):
        converted += await _ask(call, portion, to)
        await call.breathe()
    return converted


def _portions(objs: Sequence[Object]) -> Iterator[list[Object]]:
    portion: list[Object] = []
    size = 0
    for obj in objs:
        length = len(msgspec.json.encode(obj))
        if portion and (len(portion) == _MOST_OBJECTS or size + length > _MOST_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(obj)
        size += length
    if portion:
        yield portion


async def _ask(call: Call, objs: list[Object], to: CustomKind) -> list[Object]:
    assert to.conversion is not None
    version = next(each for each in to.conversion["conversionReviewVersions"] if each in _REVIEWS)
    uid = str(uuid.UUID(int=call.random.getrandbits(128), version=4))
    wanted = to.resource.api_version
    request = {"uid": uid, "desiredAPIVersion": wanted, "objects": objs}
    review = {
        "kind": "ConversionReview",
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "request": request,
    }
    webhooks = Webhooks(call.backends, call.plane.state, call.random)
    about = f"conversion webhook for {objs[0]['apiVersion']}, Kind={to.resource.kind}"
    try:
        data = await webhooks.post(
            to.conversion["clientConfig"],
            msgspec.json.encode(review),
            seconds=_SECONDS,
            limit=_ANSWER_LIMIT,
            agent="kube-apiserver-conversion",
        )
        if len(data) > _SMALL:
            answer = await call.aside(lambda: _understood(data, uid, review["apiVersion"]))
        else:
            answer = _understood(data, uid, review["apiVersion"])
    except CallRefused as why:
        raise BadRequest(f"{about} failed: {why}") from None
    except CallFailed as why:
        raise ApiError(f"{about} failed: {why}") from None
    if len(answer) != len(objs):
        raise ApiError(f"{about} returned {len(answer)} objects, expected {len(objs)}")
    return [_checked(about, at, pair, to) for at, pair in enumerate(zip(objs, answer, strict=True))]


def _understood(data: bytes, uid: str, version: Any) -> list[Any]:
    """The objects in the answer of a webhook. Raises CallFailed."""
    try:
        review = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallFailed(f"couldn't get version/kind; json parse error: {error}") from None
    review = review if isinstance(review, dict) else {}
    answered = review.get("apiVersion", ""), review.get("kind", "")
    if answered != (version, "ConversionReview"):
        expected = f"{version}, Kind=ConversionReview"
        why = f"expected webhook response of {expected}, got {answered[0]}, Kind={answered[1]}"
        raise CallFailed(f"invalid response: {why}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallFailed("no response provided")
    if response.get("uid") != uid and not str(version).endswith("v1beta1"):
        raise CallFailed(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise CallFailed(
            result.get("message")
            or result.get("reason")
            or f"response.result.status was '{status}', not 'Success'"
        )
    converted = response.get("convertedObjects")
    return converted if isinstance(converted, list) else []


def _checked(about: str, position: int, pair: tuple[Object, Any], to: CustomKind) -> Object:
    """A converted object with the metadata of the original; ApiError if it is another object."""
    original, converted = pair
    fields = converted if isinstance(converted, dict) else {}
    resource = to.resource
    for field, wanted, name in (
        ("apiVersion", resource.api_version, "groupVersion"),
        ("kind", resource.kind, "kind"),
    ):
        if fields.get(field) != wanted:
            why = f"invalid {name} (expected {wanted}, received {fields.get(field, '')})"
            raise ApiError(f"{about} returned invalid object at index {position}: {why}")
    before, meta = original["metadata"], fields.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    for field, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        own, returned = before.get(field) or "", meta.get(field) or ""
        if own != returned:
            why = f"must have the same {name}: {own} != {returned}"
            raise ApiError(f"{about} returned invalid object: {why}")
    kept = {name: value for name, value in before.items() if name not in _CHANGEABLE}
    for field in _CHANGEABLE:
        if meta.get(field) is not None:
            kept[field] = _texts(meta[field], field, f"{about} returned invalid metadata: ")
    return {**fields, "metadata": kept}


_CHANGEABLE = ("labels", "annotations")
"""Metadata that a webhook may change."""


def _texts(value: Any, field: str, about: str) -> dict[str, str]:
    """Labels or annotations; ApiError if they are none."""
    if not isinstance(value, dict):
        raise ApiError(f"{about}metadata.{field} is not a map in converted object")
    for key, text in value.items():
        if not isinstance(text, str):
            raise ApiError(f"{about}metadata.{field}[{key}] must be a string in converted object")
        labels = field == "labels"
        for part, problems in (
            (key, names.qualified_name_problems(key if labels else key.lower())),
            (text, names.label_value_problems(text) if labels else []),
        ):
            if problems:
                raise ApiError(f"{about}{causes.invalid(f'metadata.{field}', part, problems[0])}")
    return value
