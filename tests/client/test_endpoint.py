"""Server URLs and proxies, read as kubectl and Go read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.client.endpoint import Endpoint, check_proxy, parse_endpoint, proxy_from_environment


@pytest.mark.parametrize(
    ("server", "endpoint", "text"),
    [
        ("https://h", Endpoint("https", "h", 443), "https://h"),
        ("https://h/", Endpoint("https", "h", 443), "https://h"),
        ("https://H:6443", Endpoint("https", "h", 6443), "https://h:6443"),
        ("http://h:80", Endpoint("http", "h", 80), "http://h"),
        ("https://[::1]:6443", Endpoint("https", "::1", 6443), "https://[::1]:6443"),
        (
            "https://h/clusters/x/control-plane/?a=b#c",
            Endpoint("https", "h", 443, "/clusters/x/control-plane"),
            "https://h/clusters/x/control-plane",
        ),
        ("localhost:8080", Endpoint("http", "localhost", 8080), "http://localhost:8080"),
    ],
)
def test_a_server_url_is_taken_apart(server: str, endpoint: Endpoint, text: str) -> None:
    assert parse_endpoint(server) == endpoint
    assert str(endpoint) == text


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("ftp://h", 'the scheme is "ftp", it must be https or http'),
        ("https://", "it names no host"),
        ("https://a b", "it names no host"),
        ("https://h:x", "the port is not a number from 0 to 65535"),
        ("https://h:70000", "the port is not a number from 0 to 65535"),
        ("https://[::1", "it is not a URL"),
        ("h:1/path", "it has a path but no scheme; write https://HOST/PATH"),
        (
            "https://u:secret@h",
            "it must not carry a user name or password; put them into the user entry",
        ),
    ],
)
def test_a_bad_server_url_says_what_is_wrong(server: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # compared in full below
        parse_endpoint(server)
    assert str(caught.value) == problem


@given(st.text())
def test_any_text_is_a_url_or_a_value_error(server: str) -> None:
    try:
        endpoint = parse_endpoint(server)
    except ValueError:
        return
    assert endpoint.host


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("http://p:3128", None),
        ("https://u:p@p", None),
        ("socks5://p", None),
        ("ftp://p", 'the scheme is "ftp", it must be http, https or socks5'),
        ("p:3128", 'the scheme is "p", it must be http, https or socks5'),
        ("http://", "it names no host"),
        ("http://p:secret", "the port is not a number from 0 to 65535"),
    ],
)
def test_a_proxy_url_is_checked(proxy: str, problem: str | None) -> None:
    assert check_proxy(proxy) == problem


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://api.example.com", "", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("https://api.example.com", "*", False),
        ("https://api.example.com", "example.com", False),
        ("https://example.com", "example.com", False),
        ("https://notexample.com", "example.com", True),
        ("https://example.com", ".example.com", True),
        ("https://api.example.com", ".example.com", False),
        ("https://example.com", "*.example.com", True),
        ("https://api.example.com", "*.example.com", False),
        ("https://API.example.com", "other, Example.COM ", False),
        ("https://api.example.com", "example.com:443", False),
        ("https://api.example.com:6443", "example.com:443", True),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://[fd00::1]", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]", "fd00::1", False),
        ("https://10.1.2.3", "not/a/network,:80", True),
    ],
)
def test_the_exceptions_are_those_of_go(server: str, no_proxy: str, proxied: bool) -> None:
    environ = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": no_proxy}
    found = proxy_from_environment(parse_endpoint(server), environ)
    assert found == ("http://p:3128" if proxied else None)


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://h", {"https_proxy": "http://p"}, "http://p"),
        ("https://h", {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ("https://h", {"HTTPS_PROXY": "http://a", "https_proxy": "http://b"}, "http://a"),
        ("https://h", {"HTTP_PROXY": "http://p"}, None),
        ("http://h", {"HTTP_PROXY": "http://p"}, "http://p"),
        ("http://h", {"HTTP_PROXY": "http://p", "no_proxy": "h"}, None),
        ("https://h", {}, None),
    ],
)
def test_the_variable_goes_by_the_scheme(
    server: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert proxy_from_environment(parse_endpoint(server), environ) == proxy
