"""A gateway from start to stop, behind either of its fronts."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kvestigate.aio.clock import WallClock
from kvestigate.client.access import Access
from kvestigate.cybernet.audit_log import AuditLog
from kvestigate.cybernet.entries import Entry
from kvestigate.cybernet.gateway import Caller, Gateway
from kvestigate.cybernet.http import listening
from kvestigate.cybernet.inquiries import ledger_of, lift_left_cordons
from kvestigate.cybernet.loading import Loaded, read_file
from kvestigate.cybernet.quotas import Usage
from kvestigate.cybernet.spec import QuotaSpec, TokenSpec
from kvestigate.cybernet.tokens import Tokens
from kvestigate.errors import KvestigateError, UsageError
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import DEFAULT

_log = logging.getLogger(__name__)

_UPKEEP = 60.0
"""Seconds from one comparison of the ledger with the hosts to the next."""
GRACE = 10.0
"""Seconds for what is being carried out when the gateway is told to stop."""


@asynccontextmanager
async def gateway(
    loaded: Loaded, access: Access, via: NodeAccess = DEFAULT
) -> AsyncIterator[Gateway]:
    """A gateway that is open for the length of the block."""
    audit = AuditLog(loaded.space.audit)
    opened = Gateway(
        loaded.space, loaded.operations, access, audit, WallClock(), via, _tokens(loaded)
    )
    upkeep = asyncio.ensure_future(_look_after(opened))
    try:
        yield opened
    finally:
        upkeep.cancel()
        await asyncio.wait({upkeep})
        await opened.close(GRACE)


def _tokens(loaded: Loaded) -> Tokens:
    path = loaded.path

    def read() -> tuple[TokenSpec, ...]:
        assert path is not None
        return read_file(path).tokens

    return Tokens(loaded.space.tokens, path, read)


async def _look_after(opened: Gateway) -> None:
    """Keep the ledger in line with the hosts, and remove what agents have abandoned."""
    if not any(name.startswith("workspace.") for name in opened.operations):
        return
    while True:
        try:
            done = await opened.upkeep()
            for line in (*done.repairs, *done.expired):
                _log.warning("%s", line)
        except KvestigateError as error:
            _log.warning("the ledger could not be compared with the hosts: %s", error.message)
        await asyncio.sleep(_UPKEEP)


@dataclass(frozen=True, slots=True)
class Accounts:
    """What a cyberspace holds, by its ledger, once that was compared with the hosts."""

    cyberspace: str
    holdings: tuple[Entry, ...]
    usage: Usage | None
    quotas: QuotaSpec
    repairs: tuple[str, ...]
    """What was wrong in the ledger, and has been put right."""
    unreachable: Mapping[str, str]
    """Node -> why it could not be asked; what is counted there is believed."""
    unknown: tuple[str, ...]
    """What is not known, a sentence each: the usage may be higher."""


async def accounts(loaded: Loaded, access: Access, via: NodeAccess = DEFAULT) -> Accounts:
    """Compare the ledger with the hosts, and put it right."""
    ledger = ledger_of(loaded.space, access, via)
    entries, repairs, found = await ledger.reconcile()
    repairs += await lift_left_cordons(access, via)
    held = tuple(sorted(entries.values(), key=lambda entry: entry.place))
    name = loaded.space.metadata.name
    unknown = [
        f"{what}: {why.message}"
        for what, why in (("no host was asked", found.no_way), ("Apps in pods", found.uncounted))
        if why is not None
    ]
    return Accounts(
        name,
        held,
        ledger.known,
        loaded.space.quotas,
        repairs,
        found.unreachable,
        tuple(unknown),
    )


async def serve_http(
    loaded: Loaded,
    access: Access,
    stop: asyncio.Event,
    announce: Callable[[str], None],
    via: NodeAccess = DEFAULT,
) -> None:
    """Serve until `stop` is set; `announce` is told the URL once agents can call."""
    listen = loaded.space.listen.http
    if listen is None:
        raise UsageError(
            "listen.http is missing: this cyberspace is not served over HTTP",
            hint="add listen.http.address, or run `kvestigate cybernet mcp-server`",
        )
    async with gateway(loaded, access, via) as opened, await listening(opened, listen) as server:
        host, port = server.address
        scheme = "http" if listen.tls is None else "https"
        # What is there now stays. Garbage collections that look at all of it take 30 ms, and a
        # request with thousands of values causes some.
        gc.freeze()
        announce(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        await stop.wait()


async def serve_mcp(
    loaded: Loaded,
    access: Access,
    identity: str,
    pieces: AsyncIterator[bytes],
    write: Callable[[bytes], None],
    via: NodeAccess = DEFAULT,
) -> None:
    """Serve one client until what it says ends."""
    from kvestigate.cybernet.mcp import McpFront  # a second and 35 MB, for nobody else

    async with gateway(loaded, access, via) as opened:
        await McpFront(opened).serve_lines(Caller(identity, "stdio"), pieces, write)


def identity_for_mcp(loaded: Loaded, wanted: str) -> str:
    """In whose name requests over stdio are made: whoever starts us has the file, and so may say.

    Without a word it is the only identity that there is.
    """
    if not loaded.space.listen.mcp_stdio:
        raise UsageError(
            "listen.mcp.stdio is not true: this cyberspace is not served over MCP",
            hint="write listen: {mcp: {stdio: true}}",
        )
    return identity_of(loaded, wanted)


def identity_of(loaded: Loaded, wanted: str) -> str:
    """The one that is wanted; without a word, the only one that there is."""
    known = list(dict.fromkeys(it.identity for it in loaded.space.tokens))
    if wanted:
        if wanted not in known:
            raise UsageError(
                f"--identity: {wanted!r} is not in auth.tokens",
                hint=f"there are: {', '.join(known) or 'none'}",
            )
        return wanted
    if len(known) != 1:
        raise UsageError(
            f"auth.tokens has {len(known)} identities, so --identity must name one",
            hint=f"there are: {', '.join(known) or 'none'}",
        )
    return known[0]
