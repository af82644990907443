"""Assembles the API server with its store, TLS and fleets, and runs it until it is stopped."""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import enum
import gc
import ipaddress
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    closing,
    nullcontext,
)
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from kvestigate.aio.clock import WALL
from kvestigate.aio.loops import fast_loop, told_to_stop
from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.token_file import digest, read_tokens
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.access.interface import AllowAll, Authenticator, Authorizer
from kvestigate.cluster.plane.egress.addresses import Allowance
from kvestigate.cluster.plane.egress.credentials import kubelet_authority, kubelet_credentials
from kvestigate.cluster.plane.egress.dialer import Dialer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.data_directory import ADMIN, DataDirectory
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, Insider, User
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.fleets.calls import Calls
from kvestigate.cluster.plane.tenancy.fleets.controller import FleetController
from kvestigate.cluster.plane.tenancy.fleets.leadership import Leadership
from kvestigate.cluster.plane.tenancy.fleets.seeding import Scenarios, no_scenarios
from kvestigate.cluster.plane.verbs.lookup import Aggregation
from kvestigate.errors import RequestEntityTooLarge, UsageError
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.intake import Unserved
from kvestigate.http.limits import Limits
from kvestigate.http.message import Handler, Request, Response, Upgrade
from kvestigate.http.server import Server, serve
from kvestigate.http.tls import client_context, server_context

_IN_CLUSTER = (
    "10.0.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
"""The names of the server inside clusters: the Service `kubernetes` of every plane."""

_LIMITS = Limits()


class Auth(enum.Enum):
    """Who may use the server."""

    RBAC = "rbac"
    """Clients with credentials may do what the plane's RBAC allows."""
    NONE = "none"
    """Everyone may do everything."""


@dataclass(frozen=True, slots=True)
class Listen:
    host: str = "127.0.0.1"
    port: int = 6443

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def reachable(self) -> str:
        """The address for clients on this machine."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def url_host(self) -> str:
        """The address as it is written in a URL."""
        return f"[{self.reachable}]" if ":" in self.reachable else self.reachable


StartWorkers: TypeAlias = Callable[
    [ApiServer, CertificateAuthority], AbstractAsyncContextManager[object]
]
"""Starts the controllers and nodes of a server with its CA, for the length of the context."""


def no_workers(
    api: ApiServer, authority: CertificateAuthority
) -> AbstractAsyncContextManager[object]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    endpoints: tuple[str, ...]
    """`http://127.0.0.1:2379`, or https: one member of the etcd cluster, better all."""
    prefix: str = "/kvestigate"
    """Servers with the same prefix serve the same planes."""
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class ServeOptions:
    data: Path
    listen: Listen = Listen()
    memory: bool = False
    """Keep the planes in memory only; keys and kubeconfig are still in `data`."""
    etcd: EtcdOptions | None = None
    """Keep the planes in etcd, which other servers may share."""
    auth: Auth = Auth.RBAC
    token_file: Path | None = None
    """Tokens of further users, in the format of kube-apiserver's `--token-auth-file`."""
    audit_log: Path | None = None
    """The file of the audit log; None: no audit log."""
    scenarios: Scenarios = no_scenarios
    """Scenarios that the members of a Fleet can start with, by name."""
    workers: StartWorkers = no_workers
    """Starts the controllers and nodes of the planes."""
    allow_egress: tuple[Allowance, ...] = ()
    """Addresses that tenants may have the server connect to, although they are this machine's."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that is listening."""

    url: str
    """The URL of the root plane."""
    kubeconfig: Path
    planes: int
    """The number of planes at the start."""
    handler: Handler
    """Answers requests of callers in this process."""
    authority: CertificateAuthority
    """Signs the certificates of the server and of its clients; never those of kubelets."""
    backends: Backends
    """Takes the kubelets that run in this process."""
    token: str
    """The owner's bearer token."""
    aggregation: Aggregation
    """Takes aggregated APIs."""
    act: Callable[[Insider, Request], Awaitable[Response | Upgrade]]
    """Answers requests of parts of the server, each of which acts on one plane."""

    def kubelet_authority(self, plane: str) -> CertificateAuthority:
        """Signs the certificates of a plane's kubelets, and is their client CA."""
        return kubelet_authority(self.authority, plane, datetime.datetime.now(datetime.UTC))


def run(options: ServeOptions, announce: Callable[[Serving], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called when the server is listening."""
    _keep_large_blocks()
    _tune_garbage_collector()
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(_until_stopped(options, announce))
    # The process ends: a last garbage collection would take longer than the shutdown did.
    gc.freeze()


@asynccontextmanager
async def serving(options: ServeOptions) -> AsyncIterator[Serving]:
    """A running server for the length of the block."""
    check(options)
    directory = DataDirectory(options.data)
    directory.prepare()
    now = datetime.datetime.now(datetime.UTC)
    authority = directory.authority(now)
    token = directory.admin_token()
    issuer = TokenIssuer(
        SigningKey(directory.secret("accounts.key", lambda: SigningKey.generate().pem))
    )
    local = (options.listen.reachable, "localhost", "127.0.0.1", "::1")
    names = list(dict.fromkeys((*local, *_IN_CLUSTER)))
    pair = authority.issue_server("kvestigate", names, now=now)
    tls = server_context(
        certificate=pair.certificate, key=pair.key, client_ca=authority.pair.certificate
    )
    dialer = Dialer(options.allow_egress, _members(options.etcd))
    backends = Backends(kubelet_credentials(authority, now), dialer)
    async with (
        Store(_backend(options, directory)) as store,
        aclosing(backends),
        _audit(options.audit_log) as audit,
    ):
        authenticator, authorizer = _access(options, token, issuer)
        api = ApiServer(
            store, authenticator, authorizer, backends=backends, issuer=issuer, audit=audit
        )
        planes = len(store.planes())
        calls = Calls(api.act)
        leadership = None if options.etcd is None else Leadership(calls, WALL)
        fleets = FleetController(api.planes, calls, authorizer, WALL, options.scenarios, leadership)
        async with (
            options.workers(api, authority),
            fleets.running(),
            await _listening(api.handle, options.listen, tls) as server,
        ):
            dialer.protect(server.address[1])
            url = f"https://{options.listen.url_host}:{server.address[1]}"
            directory.write_kubeconfig(url, authority, token, now)
            yield Serving(
                url,
                directory.kubeconfig,
                planes,
                api.handle,
                authority,
                backends,
                token,
                api.aggregation,
                api.act,
            )


def check(options: ServeOptions) -> None:
    if options.memory and options.etcd is not None:
        raise UsageError("--memory and --etcd exclude each other", hint="leave out one of the two")
    if options.auth is Auth.NONE and not options.listen.loopback:
        raise UsageError(
            f"--auth none on {options.listen.host}: everyone who can reach that address would "
            "have full access",
            hint="listen on 127.0.0.1, or leave out --auth none",
        )


async def _until_stopped(options: ServeOptions, announce: Callable[[Serving], None]) -> None:
    stopped = told_to_stop()
    types.prepare()
    async with serving(options) as started:
        _tune_garbage_collector()
        announce(started)
        await stopped.wait()


async def _listening(handler: Handler, listen: Listen, tls: ssl.SSLContext) -> Server:
    try:
        return await serve(
            handler, host=listen.host, port=listen.port, limits=_LIMITS, tls=tls, refusal=_refusal
        )
    except OSError as error:
        raise UsageError(
            f"--listen: cannot listen on {listen.host}:{listen.port}: {_reason(error)}",
            hint="if another process uses the port, choose another one, or 0 for a free port",
        ) from error


async def _refusal(unserved: Unserved) -> Response:
    """The response to a request that cannot be parsed; a Status if its body is too large."""
    if unserved.status != RequestEntityTooLarge.code:
        return answer.plain(unserved.reason, unserved.status)
    limit = f"limit is {_LIMITS.body_bytes}"
    return answer.failure(RequestEntityTooLarge(f"Request entity too large: {limit}"))


def _reason(error: OSError) -> str:
    """The system's message, without the text that asyncio adds."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _members(etcd: EtcdOptions | None) -> list[tuple[str, int]]:
    """Host and port of every member of etcd, to which no tenant gets the server to connect."""
    try:
        urls = [] if etcd is None else [urlsplit(endpoint) for endpoint in etcd.endpoints]
        return [(url.hostname or "", url.port or 2379) for url in urls]
    except ValueError:
        return []  # no URL: the backend says so


def _backend(options: ServeOptions, directory: DataDirectory) -> Backend:
    if options.memory:
        return MemoryBackend()
    if options.etcd is not None:
        return _etcd(options.etcd)
    from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend

    return SqliteBackend(directory.database)


def _etcd(options: EtcdOptions) -> Backend:
    from kvestigate.cluster.plane.store.etcd.backend import EtcdBackend

    tls = None
    if any(url.startswith("https://") for url in options.endpoints):
        tls = client_context(
            ca=_pem("--etcd-ca", options.ca),
            certificate=_pem("--etcd-cert", options.certificate),
            key=_pem("--etcd-key", options.key),
        )
    return EtcdBackend(options.endpoints, tls, options.prefix)


def _pem(option: str, path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise UsageError(f"{option}: {path}: {_reason(error)}") from error


@asynccontextmanager
async def _audit(path: Path | None) -> AsyncIterator[AuditLog | None]:
    if path is None:
        yield None
        return
    with closing(AuditLog(path)) as log:
        yield log


def _access(
    options: ServeOptions, token: str, issuer: TokenIssuer
) -> tuple[Authenticator, Authorizer]:
    owner = User(ADMIN, (MASTERS, AUTHENTICATED))
    if options.auth is Auth.NONE:
        return _AlwaysOwner(owner), AllowAll()
    users = read_tokens(options.token_file) if options.token_file is not None else {}
    users[digest(token)] = owner
    return Credentials(users, issuer), Rbac()


class _AlwaysOwner:
    """An authenticator that takes every client for the owner."""

    def __init__(self, owner: User) -> None:
        self._owner = owner

    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> User:
        return self._owner


_NEW_CONTAINERS, _YOUNG_COLLECTIONS, _MIDDLE_COLLECTIONS = 5_000, 2, 80
"""The thresholds of Python's three generations. 5,000 containers are about what the requests
under way hold together; with half as many, a write takes 4% more instructions. A collection of
the middle generation takes two milliseconds at most."""


def _tune_garbage_collector() -> None:
    """Exempt the objects that exist now from garbage collection, and collect less often.

    A request makes hundreds of dicts and lists that are not in cycles; with Python's defaults
    the collector would traverse them several times before the request is over. Called again
    when the server is ready: what it has made until then stays until it ends.
    """
    gc.freeze()
    gc.set_threshold(_NEW_CONTAINERS, _YOUNG_COLLECTIONS, _MIDDLE_COLLECTIONS)


_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
"""Parameters of glibc's mallopt (malloc.h)."""
_LARGE_BLOCK_BYTES, _TOP_PAD_BYTES = 256 * 1024 * 1024, 16 * 1024 * 1024


def _keep_large_blocks() -> None:
    """Let malloc keep the freed memory of large answers for the next ones, where it is glibc's.

    By default glibc maps every block over 128 KB anew and returns it at once, so that each
    LIST of a megabyte pays for hundreds of page faults: a large LIST takes four times as long.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _LARGE_BLOCK_BYTES)
    mallopt(_M_TOP_PAD, _TOP_PAD_BYTES)
