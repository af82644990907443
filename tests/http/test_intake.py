"""What is a request and what is refused, whatever the segments it arrives in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.http.intake import Intake
from kvestigate.http.limits import Limits
from kvestigate.http.message import Headers, Peer, Request

LIMITS = Limits(header_count=5, header_bytes=200, body_bytes=10)
HOST = b"Host: a\r\n"

Seen = tuple[list[tuple[str, str, str, list[tuple[str, str]], bytes]], int | None]


def seen(intake: Intake) -> Seen:
    requests = [shown(arrival.request) for arrival in intake.ready]
    return requests, intake.refusal.status if intake.refusal else None


def shown(request: Request) -> tuple[str, str, str, list[tuple[str, str]], bytes]:
    return request.method, request.path, request.query, list(request.headers), request.body


def take(*segments: bytes) -> Seen:
    intake = Intake(LIMITS, Peer())
    for segment in segments:
        intake.feed(segment)
    return seen(intake)


ACCEPTED = {
    "get": (b"GET /a?b=c HTTP/1.1\r\n" + HOST + b"\r\n", ("GET", "/a", "b=c", b"")),
    "encoded path": (b"GET /a%2Fb HTTP/1.1\r\n" + HOST + b"\r\n", ("GET", "/a%2Fb", "", b"")),
    "absolute form": (
        b"GET http://h:1/a?b HTTP/1.1\r\n" + HOST + b"\r\n",
        ("GET", "/a", "b", b""),
    ),
    "absolute form without a path": (
        b"GET http://h:1?b HTTP/1.1\r\n" + HOST + b"\r\n",
        ("GET", "/", "b", b""),
    ),
    "absolute form of a host": (
        b"GET http://h HTTP/1.1\r\n" + HOST + b"\r\n",
        ("GET", "/", "", b""),
    ),
    "asterisk form": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", ("OPTIONS", "*", "", b"")),
    "HTTP/1.0 without a host": (b"GET / HTTP/1.0\r\n\r\n", ("GET", "/", "", b"")),
    "empty lines before": (b"\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", ("GET", "/", "", b"")),
    "content length": (
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
        ("POST", "/", "", b"hello"),
    ),
    "chunked": (
        b"PUT / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: Chunked\r\n\r\n"
        b"2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: dropped\r\n\r\n",
        ("PUT", "/", "", b"hello"),
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    data, (method, path, query, body) = ACCEPTED[name]
    requests, refused = take(data)
    assert refused is None
    assert [(m, p, q, b) for m, p, q, _, b in requests] == [(method, path, query, body)]


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + HOST + b"".join(f + b"\r\n" for f in fields) + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked"

REFUSED = {
    "length and coding": (post(b"Content-Length: 3", CHUNKED, body=b"0\r\n\r\n"), 400),
    "coding and length": (post(CHUNKED, b"Content-Length: 3", body=b"0\r\n\r\n"), 400),
    "two lengths": (post(b"Content-Length: 1", b"Content-Length: 2", body=b"ab"), 400),
    "two equal lengths": (post(b"Content-Length: 1", b"Content-Length: 1", body=b"a"), 400),
    "list of lengths": (post(b"Content-Length: 1, 1", body=b"a"), 400),
    "signed length": (post(b"Content-Length: +1", body=b"a"), 400),
    "negative length": (post(b"Content-Length: -1", body=b"a"), 400),
    "hexadecimal length": (post(b"Content-Length: 0x1", body=b"a"), 400),
    "huge length": (post(b"Content-Length: 99999999999999999999999"), 400),
    "two codings": (post(CHUNKED, CHUNKED, body=b"0\r\n\r\n"), 400),
    "stacked codings": (post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 501),
    "stacked codings in two fields": (
        post(b"Transfer-Encoding: gzip", CHUNKED, body=b"0\r\n\r\n"),
        501,
    ),
    "chunked not last": (post(b"Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n"), 400),
    "misspelt coding": (post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), 501),
    "coding in HTTP/1.0": (
        b"POST / HTTP/1.0\r\n" + CHUNKED + b"\r\n\r\n0\r\n\r\n",
        400,
    ),
    "bad chunk size": (post(CHUNKED, body=b"g\r\n"), 400),
    "chunk longer than said": (post(CHUNKED, body=b"1\r\nab\r\n0\r\n\r\n"), 400),
    "overflowing chunk size": (post(CHUNKED, body=b"fffffffffffffffff\r\n"), 400),
    "bare line feeds in chunks": (post(CHUNKED, body=b"1\na\n0\n\n"), 400),
    "folded field": (post(b"X: a\r\n b"), 400),
    "space before the colon": (post(b"X : a"), 400),
    "field without a colon": (post(b"nonsense"), 400),
    "NUL in a field": (post(b"X: a\0b"), 400),
    "bare line feed": (b"GET / HTTP/1.1\n" + HOST + b"\r\n", 400),
    "bare line feed in fields": (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400),
    "bare carriage return": (b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "control character in the path": (b"GET /\x01 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "raw UTF-8 in the path": (b"GET /\xc3\xa4 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "connect": (b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "other scheme": (b"GET ftp://a/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "unknown method": (b"FROB / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 505),
    "HTTP/1.7": (b"GET / HTTP/1.7\r\n" + HOST + b"\r\n", 400),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "TLS to a plain port": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "too many fields": (post(*[b"X: y"] * 5), 431),
    "too large a field": (post(b"X: " + b"y" * 200), 431),
    "a field that never ends": (post(b"X: " + b"y" * 500)[:-4], 431),
    "too long a target": (b"GET /" + b"a" * 300, 431),
    "too long a body": (post(b"Content-Length: 11"), 413),
    "too long in chunks": (post(CHUNKED, body=b"6\r\naaaaaa\r\n5\r\naaaaa\r\n"), 413),
    "too large trailers": (post(CHUNKED, body=b"0\r\nX: " + b"y" * 300 + b"\r\n\r\n"), 431),
    "unknown expectation": (post(b"Expect: miracles", b"Content-Length: 1"), 417),
    "upgrade with a body": (
        post(b"Connection: upgrade", b"Upgrade: websocket", b"Content-Length: 1", body=b"a"),
        400,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, status = REFUSED[name]
    single = [data[i : i + 1] for i in range(len(data))]
    assert take(*single) == ([], status)


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_taken_after_a_refusal(name: str) -> None:
    data, status = REFUSED[name]
    good = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
    single = [data[i : i + 1] for i in range(len(data))]
    assert take(*single, good) == ([], status)


PIPELINES = st.lists(st.sampled_from(sorted(ACCEPTED)), min_size=1, max_size=4)


@given(PIPELINES, st.sampled_from([None, *sorted(REFUSED)]), st.data())
def test_segments_do_not_matter(names: list[str], last: str | None, data: st.DataObject) -> None:
    stream = b"".join(ACCEPTED[name][0] for name in names)
    if last is not None:
        stream += REFUSED[last][0]
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    segments = [stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]
    single = [stream[i : i + 1] for i in range(len(stream))]
    requests, refused = take(*segments)
    assert requests == take(*single)[0]
    # A field that never ends is refused once enough of it was waited for, and what came in one
    # segment with the request before it does not count.
    if last != "a field that never ends":
        assert refused == take(*single)[1]


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_garbage_never_escapes_as_an_exception(segments: list[bytes]) -> None:
    take(*segments)


def test_nothing_is_taken_after_a_request_that_closes() -> None:
    closing = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    requests, refused = take(closing + b"GET /more HTTP/1.1\r\n" + HOST + b"\r\n", b"junk")
    assert ([path for _, path, _, _, _ in requests], refused) == (["/"], None)


class Bucket:
    """Holds three bytes."""

    def __init__(self) -> None:
        self.taken = b""
        self.closed = False

    def write(self, piece: bytes) -> None:
        if len(self.taken + piece) > 3:
            raise OSError(28, "it is full")
        self.taken += piece

    def close(self) -> None:
        self.closed = True


def with_buckets(*segments: bytes) -> tuple[Intake, list[Bucket]]:
    buckets: list[Bucket] = []

    def bucket(headers: Headers) -> Bucket | None:
        if "x" not in headers:
            return None
        buckets.append(Bucket())
        return buckets[-1]

    intake = Intake(Limits(body_bytes=10, sink_of=bucket), Peer())
    for segment in segments:
        intake.feed(segment)
    return intake, buckets


LONG = b"POST / HTTP/1.1\r\n" + HOST + b"X: 1\r\nContent-Length: %d\r\n\r\n"


def test_a_sink_takes_the_body_as_it_comes() -> None:
    intake, [bucket] = with_buckets(LONG % 3, b"a", b"b")
    assert (bucket.taken, intake.sink) == (b"ab", bucket)
    intake.feed(b"c")
    [arrival] = intake.ready
    assert (arrival.request.body, arrival.request.sink, bucket.taken) == (b"", bucket, b"abc")
    assert intake.sink is None
    assert not bucket.closed


def test_without_a_sink_the_body_is_bytes() -> None:
    intake, buckets = with_buckets((LONG % 3).replace(b"X: 1\r\n", b"") + b"abc")
    assert (intake.ready[0].request.body, buckets) == (b"abc", [])


@pytest.mark.parametrize(("length", "status"), [(4, 507), (11, 413)])
def test_a_sink_that_is_full_refuses(length: int, status: int) -> None:
    intake, _ = with_buckets(LONG % length, b"abcd")
    assert intake.refusal is not None
    assert intake.refusal.status == status


@pytest.mark.parametrize("sent", [b"", b"a", b"abc"])
def test_what_nobody_will_answer_is_closed(sent: bytes) -> None:
    intake, [bucket] = with_buckets(LONG % 3, sent)
    intake.abandon()
    assert bucket.closed


PLAIN = st.sampled_from(
    [b"GET /a HTTP/1.1", b"GET /b?c=d HTTP/1.1", b"POST /a HTTP/1.1", b"PATCH /%41 HTTP/1.1"]
)
ODD = st.one_of(
    st.from_regex(rb"(GET|HEAD|DELETE|POST) /[!-~]{0,8} HTTP/1\.[01]", fullmatch=True),
    st.binary(max_size=20),
    st.builds(
        b"%bGET /%b HTTP/1.1".__mod__, st.tuples(st.binary(max_size=2), st.binary(max_size=5))
    ),
)
FIELDS = st.sampled_from(
    [
        HOST,
        HOST + b"A: b\r\n",
        b"",
        HOST + b"Content-Length: %d\r\n",
        b"content-length: %d\r\n" + HOST,
        HOST + b"content-length: 0%d\r\n",
        HOST + b"content-length: %d\r\nContent-Length: 1\r\n",
        HOST + b"Connection: close\r\n",
    ]
)
BODIES = st.sampled_from([b"", b"a", b"ab", b"0123456789"])


@given(
    FIELDS, st.lists(st.tuples(PLAIN, BODIES), max_size=4), ODD | PLAIN, FIELDS, st.integers(0, 2)
)
def test_repeating_the_fields_does_not_matter(
    fields: bytes, alike: list[tuple[bytes, bytes]], last: bytes, its: bytes, length: int
) -> None:
    whole = [_sent(line, fields, body, len(body)) for line, body in alike]
    whole += [_sent(last, fields, b"a", length), _sent(last, its, b"", 0)]
    bytewise = [bytes([byte]) for byte in b"".join(whole)]
    assert take(*whole) == take(*bytewise)


def _sent(line: bytes, fields: bytes, body: bytes, length: int) -> bytes:
    told = fields.replace(b"%d", b"%d" % length)
    return line + b"\r\n" + told + b"\r\n" + (body if told != fields else b"")
