"""Contexts are tried on servers that work, refuse, lie, or are not there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import AccessOptions
from kvestigate.errors import EXIT_FAILED, EXIT_NO_CLUSTER, EXIT_OK, ConfigError, UsageError
from kvestigate.kubeconfigs.verify import (
    DENIED,
    UNREACHABLE,
    UNUSABLE,
    WORKS,
    Verification,
    VerifyOptions,
    verify,
)
from tests.conftest import Cluster
from tests.kubeconfigs.conftest import Json, Write, config

Serve = Callable[..., Awaitable[str]]
VERSION = json.dumps({"gitVersion": "v1.27.0"})


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`await serve(body, date)`: the URL of a server that says the same to all GETs."""
    async with AsyncExitStack() as stack:

        async def call(body: str = VERSION, date: str = "", status: str = "200 OK") -> str:
            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                asked = await reader.readuntil(b"\r\n\r\n")
                line, said = (status, body) if asked.startswith(b"GET") else ("404 Not Found", "")
                head = f"HTTP/1.1 {line}\r\nContent-Length: {len(said)}\r\nConnection: close\r\n"
                head += f"Date: {date}\r\n" if date else ""
                writer.write(f"{head}\r\n{said}".encode())
                await writer.drain()
                writer.close()
                await writer.wait_closed()

            server = await stack.enter_async_context(
                await asyncio.start_server(answer, "127.0.0.1", 0)
            )
            return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        yield call


async def run(path: Path, *contexts: str, timeout: float = 10.0) -> Verification:
    options = VerifyOptions(contexts, timeout)
    return await verify(AccessOptions(kubeconfig=str(path)), options, {}, None)


def contexts(**servers: str) -> Json:
    names = list(servers)
    return {
        "clusters": [{"name": n, "cluster": {"server": servers[n]}} for n in names],
        "contexts": [{"name": n, "context": {"cluster": n}} for n in names],
    }


async def test_a_context_that_works(cluster: Cluster) -> None:
    (check,) = (await run(cluster.admin_kubeconfig())).checks
    assert (check.state, check.problem, check.tls) == (WORKS, "", "authorities of the kubeconfig")
    assert check.version.startswith("v1.")
    assert check.username
    assert check.skew is not None
    assert abs(check.skew) <= 2


async def test_a_context_that_is_not_let_in(cluster: Cluster, write: Write) -> None:
    authority = {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}
    (check,) = (await run(write(config(authority, {"token": "wrong"})))).checks
    assert (check.state, check.exit_code) == (DENIED, 4)


async def test_each_fails_in_its_own_way_and_none_hides_another(serve: Serve, write: Write) -> None:
    path = write(
        contexts(
            old=await serve(),
            page=await serve("<html>hello</html>"),
            nobody="https://127.0.0.1:9",
            broken="ftp://x",
        )
    )
    found = await run(path)
    states = {it.context: it.state for it in found.checks}
    assert states == {
        "old": WORKS,
        "page": UNREACHABLE,
        "nobody": UNREACHABLE,
        "broken": UNUSABLE,
    }
    checks = {it.context: it for it in found.checks}
    assert (checks["old"].version, checks["old"].username) == ("v1.27.0", "")
    assert "does not come from a Kubernetes API server" in checks["page"].problem
    assert "127.0.0.1:9" in checks["nobody"].problem
    assert found.exit_code == EXIT_NO_CLUSTER
    assert (await run(path, "old")).exit_code == EXIT_OK


async def test_a_clock_that_is_wrong_is_told(serve: Serve, write: Write) -> None:
    url = await serve(date="Thu, 01 Jan 2099 00:00:00 GMT")
    (check,) = (await run(write(contexts(a=url)))).checks
    assert check.skew is not None
    assert check.skew > 3600


async def test_a_date_that_is_none_is_no_clock(serve: Serve, write: Write) -> None:
    (check,) = (await run(write(contexts(a=await serve(date="soon"))))).checks
    assert (check.state, check.skew) == (WORKS, None)


async def test_one_that_never_answers_ends_at_the_deadline(write: Write) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        path = write(contexts(slow=f"http://127.0.0.1:{port}", gone="https://127.0.0.1:9"))
        found = await run(path, timeout=1.0)
    assert [it.state for it in found.checks] == [UNREACHABLE, UNREACHABLE]
    assert found.checks[0].problem == "no answer within 1 s"
    assert found.exit_code == EXIT_FAILED


async def test_progress_counts_down(serve: Serve, write: Write) -> None:
    path = write(contexts(a=await serve(), b=await serve()))
    told: list[tuple[str, int]] = []
    await verify(
        AccessOptions(kubeconfig=str(path)),
        VerifyOptions(),
        {},
        None,
        lambda name, left: told.append((name, left)),
    )
    assert told == [("contexts", 1), ("contexts", 0)]


@pytest.mark.parametrize(
    ("content", "names", "error"),
    [(contexts(prod="https://x"), ("prud",), UsageError), ({}, (), ConfigError)],
)
async def test_contexts_that_are_not_there(
    write: Write, content: Any, names: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await run(write(content), *names)


async def test_a_file_that_is_taken_for_a_context_gets_a_hint(write: Write) -> None:
    path = write(config({"server": "https://x.test"}, {}))
    with pytest.raises(UsageError, match="there is no context") as caught:
        await run(path, str(path))
    assert f"--kubeconfig {path} kubeconfig verify" in (caught.value.hint or "")
