"""`kubeconfig verify`: does each context work? Asks the servers, and changes nothing there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated

import msgspec

from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.client.api import Api
from kvestigate.client.auth.execplugin import ExecPlugin
from kvestigate.client.call import failure
from kvestigate.client.choice import load_config
from kvestigate.client.connect import connect
from kvestigate.client.kubeconfig import alternatives
from kvestigate.client.whoami import stranger, whoami
from kvestigate.errors import (
    EXIT_FAILED,
    EXIT_OK,
    ApiError,
    ConfigError,
    DeadlineExceeded,
    Forbidden,
    KvestigateError,
    NotFound,
    Unauthorized,
    UsageError,
)
from kvestigate.http.message import Headers, Request
from kvestigate.operation import duration, param

_TOGETHER = 16
"""Contexts under way at a time."""
SKEWED = 5.0
"""Seconds by which clocks may differ: beyond, tokens are refused as from the future."""

WORKS, DENIED, UNREACHABLE, UNUSABLE = "works", "denied", "unreachable", "unusable"

Progress = Callable[[str, int], None]
"""Called with `contexts` and how many have yet to answer."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    contexts: Annotated[
        tuple[str, ...],
        param("Contexts; all if none is given.", argument=True, metavar="[CONTEXT]..."),
    ] = ()
    timeout: Annotated[
        float, duration("How long one context may take, its credential plugin included.")
    ] = 10.0


@dataclass(frozen=True, slots=True)
class Check:
    """One context and what its server said."""

    context: str
    server: str = ""
    state: str = WORKS
    """`works`, `denied` by the server, `unreachable`, or `unusable` as it is written."""
    tls: str = ""
    """`authorities of the kubeconfig`, `authorities of the system`, `not verified`, `none`"""
    version: str = ""
    username: str = ""
    """Who the server thinks we are; empty if it does not say, as before 1.28."""
    groups: tuple[str, ...] = ()
    seconds: float | None = None
    """Until the first answer, connecting and logging in included."""
    skew: float | None = None
    """By how many seconds the server's clock is ahead of ours; to a second."""
    problem: str = ""
    hint: str = ""
    exit_code: int = EXIT_OK


@dataclass(frozen=True, slots=True)
class Verification:
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """0 if all work; what they have in common if they fail alike, else 1."""
        codes = {check.exit_code for check in self.checks} - {EXIT_OK}
        return EXIT_OK if not codes else codes.pop() if len(codes) == 1 else EXIT_FAILED


async def verify(
    access: AccessOptions,
    options: VerifyOptions,
    environ: Mapping[str, str],
    home: Path | None,
    progress: Progress | None = None,
) -> Verification:
    """The contexts of the kubeconfig that `access` means, at the same time."""
    config, _ = load_config(access, environ, home)
    names = options.contexts or tuple(config.contexts)
    if not names:
        raise ConfigError("there are no contexts to verify", hint="give --kubeconfig PATH")
    for name in names:
        if name not in config.contexts:
            raise UsageError(f'there is no context "{name}"', hint=_meant(name, config.contexts))
    room, terminal = asyncio.Semaphore(_TOGETHER), asyncio.Lock()
    left = len(names)

    async def one(name: str) -> Check:
        nonlocal left
        async with room:
            wanted = msgspec.structs.replace(access, context=name)
            check = await _check(wanted, options.timeout, environ, home, terminal)
        left -= 1
        if progress is not None:
            progress("contexts", left)
        return check

    return Verification(tuple(await asyncio.gather(*(one(name) for name in names))))


def _meant(name: str, contexts: Iterable[str]) -> str:
    if Path(name).is_file():
        return f"{name} is a file: `kvestigate --kubeconfig {name} kubeconfig verify`"
    return alternatives(name, contexts, "contexts")


async def _check(
    wanted: AccessOptions,
    timeout: float,
    environ: Mapping[str, str],
    home: Path | None,
    terminal: asyncio.Lock,
) -> Check:
    check = Check(wanted.context)
    try:
        access = resolve(wanted, environ, home)
    except KvestigateError as error:
        return _failed(check, error, UNUSABLE)
    check = replace(check, server=str(access.server), tls=_tls(access))
    try:
        async with AsyncExitStack() as stack:
            if isinstance(access.credentials, ExecPlugin):
                # Plugins may ask something: one at a time.
                await stack.enter_async_context(terminal)
            await stack.enter_async_context(asyncio.timeout(timeout))
            api = await stack.enter_async_context(connect(access))
            check = await _greeted(api, check, timeout)
            return await _recognised(api, check)
    except TimeoutError:
        late = DeadlineExceeded(f"no answer within {timeout:g} s", hint="try a longer --timeout")
        return _failed(check, late, UNREACHABLE)
    except ConfigError as error:
        return _failed(check, error, UNUSABLE)
    except KvestigateError as error:
        denied = isinstance(error, Unauthorized | Forbidden)
        return _failed(check, error, DENIED if denied else UNREACHABLE)


def _failed(check: Check, error: KvestigateError, state: str) -> Check:
    return replace(
        check,
        state=state,
        problem=error.message,
        hint=error.hint or "",
        exit_code=error.exit_code,
    )


async def _greeted(api: Api, check: Check, timeout: float) -> Check:
    """With version, time and clock. One attempt: retries would hide what is to be seen."""
    request = Request("GET", "/version", "", Headers([("accept", "application/json")]))
    started, sent = time.monotonic(), datetime.now(UTC)
    incoming = await api.exchange.transport.send(request, timeout=timeout)
    try:
        seconds = time.monotonic() - started
        body = await incoming.read()
    finally:
        await incoming.aclose()
    check = replace(check, seconds=seconds, skew=_skew(incoming.headers.get("date"), sent, seconds))
    if not 200 <= incoming.status < 300:
        raise failure(request, incoming.status, body)
    return replace(check, version=_version(body))


def _version(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["gitVersion"])
    except (msgspec.DecodeError, KeyError, TypeError) as odd:
        raise stranger(
            "the answer to GET /version does not come from a Kubernetes API server"
        ) from odd


def _skew(date: str | None, sent: datetime, seconds: float) -> float | None:
    try:
        server = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    if server.tzinfo is None:
        return None
    # The header has whole seconds: on average it is half a second old when it is written.
    return round((server - sent).total_seconds() + 0.5 - seconds / 2)


async def _recognised(api: Api, check: Check) -> Check:
    try:
        identity = await whoami(api)
    except NotFound:
        return check  # older than 1.28
    except ApiError as error:
        if isinstance(error, Unauthorized):
            raise
        return replace(check, problem=error.message)
    return replace(check, username=identity.username, groups=identity.groups)


def _tls(access: Access) -> str:
    if not access.server.secure:
        return "none"
    if access.tls.insecure:
        return "not verified"
    return "authorities of the system" if access.tls.ca is None else "authorities of the kubeconfig"
