"""Protobuf in requests, in the words of kube-apiserver where it refuses."""

from __future__ import annotations

import pytest

from tests.cluster.plane.conftest import Api

MEDIA = "application/vnd.kubernetes.protobuf"
PATH = "/api/v1/namespaces/default/configmaps"


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def body(kind: str, content: bytes, version: str = "v1") -> bytes:
    identity = field(1, version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, identity) + field(2, content)


NAMED = field(1, field(1, b"a"))


async def test_an_object_is_created(api: Api) -> None:
    sent = body("ConfigMap", NAMED + field(2, field(1, b"key") + field(2, b"value")))
    answer = await api.post(PATH, sent, content_type=MEDIA)
    assert answer.status == 201
    assert answer.headers.get("content-type") == "application/json"
    stored = (await api.get(f"{PATH}/a")).body
    assert stored["data"] == {"key": "value"}
    assert stored["metadata"]["name"] == "a"


async def test_what_it_does_not_say_comes_from_the_path(api: Api) -> None:
    answer = await api.post(PATH, b"k8s\x00" + field(2, NAMED), content_type=MEDIA)
    assert (answer.status, answer.body["kind"]) == (201, "ConfigMap")


async def test_unknown_numbers_are_skipped(api: Api) -> None:
    later = bytes([15 << 3, 5]) + bytes([14 << 3 | 5]) + b"1234" + field(13, b"?")
    answer = await api.post(PATH, body("ConfigMap", later + NAMED), content_type=MEDIA)
    assert answer.status == 201


async def test_an_object_is_deleted_with_options(api: Api) -> None:
    await api.post(PATH, {"metadata": {"name": "a"}})
    uid = field(1, b"another")
    refused = await api.delete(
        f"{PATH}/a", body("DeleteOptions", field(2, uid)), content_type=MEDIA
    )
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    removed = await api.delete(f"{PATH}/a", body("DeleteOptions", b""), content_type=MEDIA)
    assert (removed.status, removed.body["status"]) == (200, "Success")


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
MISFIT = 'in version "v1" cannot be handled as a ConfigMap: '


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", f"{UNRECOGNIZED}empty data (<empty>)"),
        (
            b"hello",
            f"{UNRECOGNIZED}provided data does not appear to be a protobuf message, expected "
            "prefix [107 56 115 0] (68656c6c6f)",
        ),
        (b"k8s\x00", f"{UNRECOGNIZED}empty body (6b387300)"),
        (b"k8s\x00\n\n", f"{UNRECOGNIZED}unexpected EOF (6b3873000a0a)"),
        (body("ConfigMap", b"\x0a\x09"), f"ConfigMap {MISFIT}unexpected EOF"),
        (
            body("ConfigMap", b"\x08\x09"),
            f"ConfigMap {MISFIT}proto: wrong wireType for field metadata",
        ),
        (body("ConfigMap", b"\x0b"), f"ConfigMap {MISFIT}proto: illegal wireType 3"),
        (
            body("ConfigMax", NAMED),
            f'ConfigMax {MISFIT}no kind "ConfigMax" is registered for version "v1"',
        ),
    ],
    ids=["empty", "text", "magic", "cut", "cut inside", "mistyped", "group", "unknown kind"],
)
async def test_what_is_wrong_is_told(sent: bytes, message: str, api: Api) -> None:
    answer = await api.post(PATH, sent, content_type=MEDIA)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == message


async def test_nesting_without_end_is_refused(api: Api) -> None:
    schema = b""
    for _ in range(3000):
        schema = field(28, schema)  # `not`
    version = field(4, field(1, schema))
    sent = body("CustomResourceDefinition", field(2, field(7, version)), "apiextensions.k8s.io/v1")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await api.post(path, sent, content_type=MEDIA)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert "nested too deep" in answer.body["message"]


async def test_text_that_is_no_utf8_is_replaced(api: Api) -> None:
    sent = body("ConfigMap", NAMED + field(2, field(1, b"key") + field(2, b"x\xffy")))
    assert (await api.post(PATH, sent, content_type=MEDIA)).body["data"] == {"key": "x\ufffdy"}
    in_json = b'{"metadata":{"name":"b"},"data":{"key":"x\xffy"}}'
    assert (await api.post(PATH, in_json)).body["data"] == {"key": "x\ufffdy"}


async def test_json_without_end_is_refused(api: Api) -> None:
    answer = await api.post(PATH, b'{"metadata":' + b"[" * 100_000)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
