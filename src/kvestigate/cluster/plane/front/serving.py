"""Assembles a server of planes and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import enum
import gc
import ipaddress
import os
import sys
from collections.abc import AsyncIterator, Callable
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

from kvestigate.aio.clock import WALL
from kvestigate.aio.loops import fast_loop, told_to_stop
from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.token_file import digest, read_tokens
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.access.interface import AllowAll, Authenticator, Authorizer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.aggregation import Aggregation
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.data_directory import ADMIN, DataDirectory, new_token
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.fleets.calls import Calls
from kvestigate.cluster.plane.tenancy.fleets.controller import USER, FleetController
from kvestigate.cluster.plane.tenancy.fleets.leadership import Leadership
from kvestigate.cluster.plane.tenancy.fleets.seeding import Scenarios, no_scenarios
from kvestigate.errors import RequestEntityTooLarge, UsageError
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.channel import ServerContext, server_context
from kvestigate.http.limits import Limits
from kvestigate.http.message import Handler, Request, Response
from kvestigate.http.server import Server, serve
from kvestigate.http.tls import client_context

_IN_CLUSTER = (
    "10.0.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
"""What pods call the server: the Service that every plane starts with."""

_LIMITS = Limits()


class Auth(enum.Enum):
    """Who gets in."""

    RBAC = "rbac"
    """Only who has credentials, to do what the plane's RBAC allows."""
    NONE = "none"
    """Everyone, to do everything."""


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
        """The address for those on this machine."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def shown(self) -> str:
        """As it stands in a URL."""
        return f"[{self.reachable}]" if ":" in self.reachable else self.reachable


Hiring: TypeAlias = Callable[[ApiServer], AbstractAsyncContextManager[object]]
"""Makes the workforce of a server, there for the length of the context."""


def nobody(api: ApiServer) -> AbstractAsyncContextManager[object]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    endpoints: tuple[str, ...]
    """`http://127.0.0.1:2379`, or https: any member of the cluster, better all."""
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
    """Keep the planes in memory only; keys and kubeconfig are in `data` all the same."""
    etcd: EtcdOptions | None = None
    """Keep the planes in an etcd, which other servers may share."""
    auth: Auth = Auth.RBAC
    token_file: Path | None = None
    """Tokens of further users, in the format of kube-apiserver's `--token-auth-file`."""
    audit_log: Path | None = None
    """Where every request is noted; None: nowhere."""
    scenarios: Scenarios = no_scenarios
    """What members of Fleets can start with, by name."""
    hire: Hiring = nobody
    """Who works on the planes."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that is listening."""

    url: str
    """Of the root plane."""
    kubeconfig: Path
    planes: int
    """How many there were at the start."""
    handler: Handler
    """The same server for callers in this process."""
    authority: CertificateAuthority
    """Signs the kubelets' certificates."""
    token: str
    """The owner's."""
    aggregation: Aggregation
    """Where whoever makes up more groups hands them in."""


def run(options: ServeOptions, announce: Callable[[Serving], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called once when requests are taken."""
    _keep_large_blocks()
    _tune_garbage_collector()
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(_until_stopped(options, announce))
    # What is left is dropped with the process: looking through it for cycles takes far longer
    # than the ending did.
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
    issuer = TokenIssuer(SigningKey(directory.secret("accounts.key", _new_signing_key)))
    local = (options.listen.reachable, "localhost", "127.0.0.1", "::1")
    names = list(dict.fromkeys((*local, *_IN_CLUSTER)))
    pair = authority.issue_server("kvestigate", names, now=now)
    tls = server_context(
        certificate=pair.certificate, key=pair.key, client_ca=authority.pair.certificate
    )
    backends = _backends(options, authority, now)
    async with (
        Store(_backend(options, directory)) as store,
        aclosing(backends),
        _audit(options.audit_log) as audit,
    ):
        fleets_token = new_token()
        authenticator, authorizer = _guards(options, token, fleets_token, issuer)
        api = ApiServer(
            store, authenticator, authorizer, backends=backends, issuer=issuer, audit=audit
        )
        planes = len(store.planes())
        calls = Calls(api.handle, fleets_token)
        leadership = None if options.etcd is None else Leadership(calls, WALL)
        fleets = FleetController(api.planes, calls, WALL, options.scenarios, leadership)
        async with (
            options.hire(api),
            fleets.running(),
            await _listening(api.handle, options.listen, tls) as server,
        ):
            url = f"https://{options.listen.shown}:{server.address[1]}"
            directory.write_kubeconfig(url, authority, token, now)
            yield Serving(
                url,
                directory.kubeconfig,
                planes,
                api.handle,
                authority,
                token,
                api.aggregation,
            )


def check(options: ServeOptions) -> None:
    if options.memory and options.etcd is not None:
        raise UsageError("--memory and --etcd exclude each other", hint="leave out one of the two")
    if options.auth is Auth.NONE and not options.listen.loopback:
        raise UsageError(
            f"--auth none on {options.listen.host}: anyone who reaches that address could do "
            "everything",
            hint="listen on 127.0.0.1, or leave out --auth none",
        )


async def _until_stopped(options: ServeOptions, announce: Callable[[Serving], None]) -> None:
    stopped = told_to_stop()
    types.prepare()
    async with serving(options) as started:
        _tune_garbage_collector()
        announce(started)
        await stopped.wait()


async def _listening(handler: Handler, listen: Listen, tls: ServerContext) -> Server:
    try:
        return await serve(
            handler, host=listen.host, port=listen.port, limits=_LIMITS, tls=tls, refusal=_refusal
        )
    except OSError as error:
        raise UsageError(
            f"--listen: cannot listen on {listen.host}:{listen.port}: {_reason(error)}",
            hint="another server may have it: choose another port, or 0 for one that is free",
        ) from error


def _refusal(status: int, reason: str) -> Response:
    """The answer to what never became a request; the API has words for one that is too large."""
    if status != RequestEntityTooLarge.code:
        return answer.plain(reason, status)
    limit = f"limit is {_LIMITS.body_bytes}"
    return answer.failure(RequestEntityTooLarge(f"Request entity too large: {limit}"))


def _reason(error: OSError) -> str:
    """asyncio wraps the system's words in its own."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _backends(
    options: ServeOptions, authority: CertificateAuthority, now: datetime.datetime
) -> Backends:
    """Kubelets are trusted by our CA and know us by our certificate."""
    pair = authority.issue_client("kube-apiserver-kubelet-client", [MASTERS], now=now)
    tls = client_context(ca=authority.pair.certificate, certificate=pair.certificate, key=pair.key)
    # Who can reach a server on loopback can reach everything else on loopback, too.
    return Backends(tls, loopback=options.listen.loopback)


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


def _new_signing_key() -> bytes:
    return SigningKey.generate().pem


def _guards(
    options: ServeOptions, token: str, fleets_token: str, issuer: TokenIssuer
) -> tuple[Authenticator, Authorizer]:
    owner = User(ADMIN, (MASTERS, AUTHENTICATED))
    if options.auth is Auth.NONE:
        return _Everyone(owner), AllowAll()
    others = read_tokens(options.token_file) if options.token_file is not None else {}
    fleets = User(USER, (MASTERS, AUTHENTICATED))
    ours = {digest(token): owner, digest(fleets_token): fleets}
    return Credentials({**others, **ours}, issuer), Rbac()


class _Everyone:
    """Takes whoever asks for the owner."""

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
