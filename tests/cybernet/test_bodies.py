"""JSON in pieces: the same value wherever it is cut, and never more in memory than allowed."""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import tracemalloc
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cybernet.bodies import MOST_FILES, MOST_TEXT, NOTHING, Answer, Body, Room
from kvestigate.cybernet.refusals import ConstraintViolated, Malformed, TooLarge, Unavailable
from kvestigate.workspace.uploads import Upload


def taken(*pieces: bytes, room: Room | None = None) -> Any:
    """The value of what came, with files as their bytes."""
    with closing(Body(room or Room())) as body:
        for piece in pieces:
            body.write(piece)
        return plain(asyncio.run(body.value()))


def plain(value: Any) -> Any:
    if isinstance(value, Upload):
        return value.opened().read()
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items()}
    return [plain(it) for it in value] if isinstance(value, list) else value


texts = st.text(st.sampled_from('"\\/:archive {}\n\u00e9'), max_size=12)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(-9, 9) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts.filter(lambda it: it != "archive"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(texts, values), st.binary(max_size=40), st.data())
def test_where_it_is_cut_does_not_matter(
    parameters: dict[str, Any], content: bytes, data: st.DataObject
) -> None:
    sent = {**parameters, "archive": base64.b64encode(content).decode()}
    written = json.dumps(sent, indent=data.draw(st.sampled_from([None, 1])))
    if data.draw(st.booleans()):
        written = written.replace(sent["archive"], sent["archive"].replace("/", "\\/"))
    raw = written.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert taken(*pieces) == {**parameters, "archive": content}


def test_a_slash_and_its_escape_may_be_cut_apart() -> None:
    raw = b'{"archive": "%s"}' % (b"\\/" * 8)
    for cut in range(len(raw)):
        assert taken(raw[:cut], raw[cut:]) == {"archive": b"\xff" * 6}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"", NOTHING),
        (b" \n", NOTHING),
        (b"[1]", [1]),
        (b'{"params": {"archive" : "YQ=="}}', {"params": {"archive": b"a"}}),
        (b'{"archive": 1}', {"archive": 1}),
        (b'{"\\"archive": "x"}', {'"archive': "x"}),
        (b'{"a": "\\"archive\\": \\""}', {"a": '"archive": "'}),
        (b'{"xarchive": "YQ=="}', {"xarchive": "YQ=="}),
    ],
)
def test_what_is_a_file_and_what_is_not(raw: bytes, value: Any) -> None:
    assert taken(raw) == value


@pytest.mark.parametrize(
    ("raw", "kind", "said"),
    [
        (b'{"archive": "YQ=', Malformed, "not JSON"),
        (b'{"archive": "YQ="}', ConstraintViolated, "its end is missing"),
        (b'{"archive": "YQ==YQ=="}', ConstraintViolated, "no base64"),
        (b'{"archive": "Y*=="}', ConstraintViolated, "no base64"),
        (b'{"archive": "\\u0059Q=="}', ConstraintViolated, "no base64"),
        (b'{"archive": "YQ==", "archive": "YQ=="}', ConstraintViolated, "twice"),
        (b'{"archive": "YQ=="', Malformed, "not JSON"),
        (b'"archive": "YQ=="', Malformed, "not JSON"),
        (b"[" * 5000, Malformed, "not JSON"),
        (b'{"a": "\xff"}', Malformed, "not JSON"),
        (b'{"a": "\\ud800"}', Malformed, "not JSON"),
        (b'{"a": NaN}', Malformed, "not JSON"),
        (b'{"a": "%s"}' % (b"x" * MOST_TEXT), TooLarge, "longer than"),
    ],
)
def test_what_is_wrong_is_named(raw: bytes, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        taken(raw)


def test_a_large_file_is_not_in_memory() -> None:
    piece = base64.b64encode(bytes(3 << 16))
    tracemalloc.start()
    try:
        with closing(Body(Room())) as body:
            body.write(b'{"archive": "')
            for _ in range(256):
                body.write(piece)
            body.write(b'"}')
            assert asyncio.run(body.value())["archive"].size == 48 << 20
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_long_text_is_not_in_memory() -> None:
    tracemalloc.start()
    try:
        with closing(Body(Room())) as body:
            for _ in range(256):
                body.write(b'"' * (1 << 18))
            with pytest.raises(TooLarge):
                asyncio.run(body.value())
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_files_share_a_room_and_leave_it() -> None:
    room = Room(10)
    first = Body(room)
    first.write(b'{"archive": "%s"}' % base64.b64encode(bytes(9)))
    with pytest.raises(Unavailable, match="too much is being sent"):
        taken(b'{"archive": "%s"}' % base64.b64encode(bytes(3)), room=room)
    first.close()
    assert taken(b'{"archive": "%s"}' % base64.b64encode(bytes(9)), room=room)


@pytest.mark.parametrize("length", [4000, 400_000])
def test_a_disk_that_is_full_leaves_the_room_as_it_was(length: int) -> None:
    room = Room()
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most))
    try:
        with closing(Body(room)) as body:
            body.write(b'{"archive": "')
            for _ in range(2 * (1 << 20) // length):
                body.write(b"A" * length)
            with pytest.raises(Unavailable, match="File too large"):
                asyncio.run(body.value())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    room.take(MOST_FILES)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 500_000])
async def test_an_answer_is_the_same_in_pieces(size: int) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    result = {"path": "a", "archive": Upload(content), "applied": True}
    with closing(Answer(result, Room())) as answer:
        sent = b"".join([piece async for piece in answer.pieces()])
        assert sent == answer.whole
    told = base64.b64encode(content).decode()
    assert json.loads(sent) == {"path": "a", "archive": told, "applied": True}


async def test_a_large_answer_is_not_in_memory() -> None:
    file = Upload()
    for _ in range(48):
        file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with closing(Answer({"archive": file}, Room())) as answer:
            assert sum([len(piece) async for piece in answer.pieces()]) > 64 << 20
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_answers_that_wait_share_the_room() -> None:
    room = Room(10)
    first = Answer({"archive": Upload(bytes(9))}, room)
    with pytest.raises(Unavailable, match="no room for the answer"):
        Answer({"archive": Upload(bytes(9))}, room)
    first.close()
    first.close()
    Answer({"archive": Upload(bytes(9))}, room).close()
    with pytest.raises(OSError, match="too much"):
        room.take(11)
