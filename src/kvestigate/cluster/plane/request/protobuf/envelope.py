"""The envelope around a protobuf body: a magic prefix, what it is, and the object itself."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.request.protobuf import messages
from kvestigate.cluster.plane.request.protobuf.wire import Malformed, Value, fields, text
from kvestigate.kube import facts

MEDIA = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"


class Unrecognized(Exception):
    """The bytes are not a Kubernetes protobuf envelope."""


class Undecodable(Exception):
    """The envelope names `kind`, but its message cannot be decoded."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def decode(data: bytes, kind: str, api_version: str) -> dict[str, Any]:
    """The object in a body; kind and apiVersion are those to assume if it does not say."""
    identity, content = _open(data)
    kind, api_version = identity.get(2) or kind, identity.get(1) or api_version
    group, _, version = api_version.rpartition("/")
    # DeleteOptions and the like are the same in every group; the table has them once.
    of = facts.for_kind(group, version, kind) or facts.for_kind("", "v1", kind)
    if of is None:
        raise Undecodable(kind, f'no kind "{kind}" is registered for version "{api_version}"')
    try:
        return {"kind": kind, "apiVersion": api_version, **messages.read(content, of)}
    except Malformed as error:
        raise Undecodable(kind, str(error)) from None
    except RecursionError:
        raise Undecodable(kind, "the message is nested too deep") from None


def _open(data: bytes) -> tuple[dict[int, str], bytes]:
    """apiVersion (1) and kind (2), and the bytes of the object."""
    if not data:
        raise Unrecognized("empty data")
    if not data.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise Unrecognized(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    if len(data) == len(MAGIC):
        raise Unrecognized("empty body")
    try:
        envelope = dict(fields(data[len(MAGIC) :]))
        identity = {
            number: text(value) if isinstance(value, bytes) else ""
            for number, value in fields(_bytes(envelope.get(1, b"")))
        }
        return identity, _bytes(envelope.get(2, b""))
    except Malformed as error:
        raise Unrecognized(str(error)) from None


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("proto: wrong wireType")
    return value
