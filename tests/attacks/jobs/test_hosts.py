"""A name that an attacker lets point to this machine is no name of the server: DNS rebinding."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from kvestigate.client.api import Api
from kvestigate.jobs.server.serve import bound, serving
from kvestigate.jobs.server.settings import read_settings

UPGRADE = (
    "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def answer(url: str, target: str, *hosts: str, more: str = "") -> str:
    """What the server answers to a request with these Host headers."""
    port = urlsplit(url).port or 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = "".join(f"host: {host.replace('PORT', str(port))}\r\n" for host in hosts)
    writer.write(f"GET {target} HTTP/1.1\r\n{lines}x-user: jane\r\n{more}".encode())
    writer.write(b"" if more else b"connection: close\r\n")
    writer.write(b"\r\n")
    try:
        return (await asyncio.wait_for(reader.read(), 10)).decode()
    finally:
        writer.close()


FOREIGN = [
    "evil.example.com:PORT",
    "evil.example.com",
    "127.0.0.1.evil.example.com:PORT",
    "localhost.evil.example.com:PORT",
    "evil.localhost:PORT",
    "localhost",
    "localhost:1",
    "127.0.0.1:1",
    "localhost:PORT0",
    "localhost:PORT@evil.example.com",
    "evil.example.com#@localhost:PORT",
    "localhost:PORT, evil.example.com",
    "localhost:PORT/",
    "localhost :PORT",
    "192.0.2.1:PORT",
    "[::2]:PORT",
    "[::1:PORT",
    "::1:PORT",
    "jobs.example.com.evil.example.com",
    "xjobs.example.com",
    "jobs.example.com:",
    "jobs.example.com:x",
    "jobs.example.com:99999",
    "2130706433:PORT",
    "",
]


@pytest.mark.parametrize("host", FOREIGN)
async def test_a_foreign_host_is_refused(url: str, host: str) -> None:
    for target in ("/", "/tasks", "/openapi.json", "/nowhere"):
        told = await answer(url, target, host)
        assert told.startswith("HTTP/1.1 421 "), told
        assert '"detail":"Host: ' in told
        assert "x-hint: " in told.lower()


@pytest.mark.parametrize("host", ["evil.example.com:PORT", "localhost:1"])
async def test_nor_does_it_get_a_websocket(url: str, host: str) -> None:
    told = await answer(url, "/tasks/abc12345/exec?command=id", host, more=UPGRADE)
    assert told.startswith("HTTP/1.1 421 "), told
    told = await answer(url, "/tasks/abc12345/exec?command=id", "localhost:PORT", more=UPGRADE)
    assert told.startswith("HTTP/1.1 404 "), told


@pytest.mark.parametrize(
    "hosts", [(), ("localhost:PORT", "evil.example.com"), ("evil.example.com", "localhost:PORT")]
)
async def test_no_host_and_two_hosts_are_refused(url: str, hosts: tuple[str, ...]) -> None:
    assert (await answer(url, "/tasks", *hosts)).split()[1] in ("400", "421")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:PORT",
        "127.0.0.5:PORT",
        "localhost:PORT",
        "LocalHost:PORT",
        "localhost.:PORT",
        "[::1]:PORT",
        "[0:0:0:0:0:0:0:1]:PORT",
        # Listed by the operator: whatever port a proxy before the server has.
        "jobs.example.com",
        "Jobs.Example.com:443",
        "jobs.example.com:PORT",
        "192.0.2.7:8443",
    ],
)
async def test_its_own_names_are_served(url: str, host: str) -> None:
    assert (await answer(url, "/tasks", host)).startswith("HTTP/1.1 200 ")


async def test_a_server_for_all_addresses_is_reached_by_the_one_that_was_dialled(api: Api) -> None:
    settings = read_settings({"tokens": [{"user": "jane", "sha256": "0" * 64}]})
    async with serving(api, bound("0.0.0.0", 0, settings), settings) as url:
        for host in ("0.0.0.0:PORT", "127.0.0.1:PORT"):
            assert (await answer(url, "/", host)).startswith("HTTP/1.1 200 ")
        for host in ("192.0.2.1:PORT", "evil.example.com:PORT"):
            assert (await answer(url, "/", host)).startswith("HTTP/1.1 421 ")
