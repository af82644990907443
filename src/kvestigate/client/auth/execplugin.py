"""Credentials from a plugin: a program that prints an `ExecCredential`.

The plugin runs when there is nothing cached, when what is cached has expired, and when the
server rejects it; one process at a time, however many requests are waiting for its answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from kvestigate.client.auth.identity import describe_certificate, describe_token
from kvestigate.client.auth.interface import Credential, Credentials, ExecCluster, Now, wall_now
from kvestigate.client.auth.process import Outcome, run
from kvestigate.client.kubeconfig import Exec
from kvestigate.errors import ConfigError, DeadlineExceeded

# A plugin that asks nobody talks to a cloud's API: a minute is generous. One that asks waits
# for a person who looks for a second factor.
TIMEOUT = 60.0
INTERACTIVE_TIMEOUT = 300.0

_STDERR_SHOWN = 2000
"""Characters of a failed plugin's last words."""


def stdin_is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


class _Status(msgspec.Struct, rename="camel"):
    """The part of an `ExecCredential` that is read."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class ExecPlugin:
    """Runs the plugin of one kubeconfig user."""

    def __init__(
        self,
        plugin: Exec,
        *,
        user: str,
        cluster: ExecCluster,
        environ: Mapping[str, str],
        now: Now = wall_now,
        is_terminal: Callable[[], bool] = stdin_is_terminal,
        timeout: float | None = None,
    ) -> None:
        self._plugin = plugin
        self._user = user
        self._cluster = cluster
        self._environ = environ
        self._now = now
        self._is_terminal = is_terminal
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._cached: Credential | None = None
        self._expires: datetime | None = None

    async def current(self) -> Credential:
        if (cached := self._fresh()) is not None:
            return cached
        async with self._lock:
            # Another caller may have run the plugin while this one waited.
            return self._fresh() or await self._renew()

    def _fresh(self) -> Credential | None:
        expired = self._expires is not None and self._now() > self._expires
        return None if expired else self._cached

    async def rejected(self, used: Credential) -> bool:
        async with self._lock:
            if self._cached is None or self._cached == used:
                self._cached = None
                await self._renew()
            return self._cached != used

    async def _renew(self) -> Credential:
        interactive = self._interactive()
        timeout = self._timeout or (INTERACTIVE_TIMEOUT if interactive else TIMEOUT)
        try:
            outcome = await run(
                (self._plugin.command, *self._plugin.args),
                env=self._child_environ(interactive),
                interactive=interactive,
                timeout=timeout,
            )
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self._name}: no answer within {timeout:g} s, so it was stopped",
                hint="run the plugin by hand to see what it waits for",
            ) from None
        except OSError as error:
            raise self._cannot_start(error) from None
        if outcome.code != 0:
            raise self._failed(outcome)
        self._cached, self._expires = self._read(outcome.stdout)
        return self._cached

    @property
    def _name(self) -> str:
        return f'credential plugin "{self._plugin.command}" of user "{self._user}"'

    def _interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        if mode == "Never":
            return False
        terminal = self._is_terminal()
        if mode == "Always" and not terminal:
            raise ConfigError(
                f"{self._name}: its interactiveMode is Always, but standard input is no terminal",
                hint="run the command in a terminal",
            )
        return terminal

    def _child_environ(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = self._cluster.as_json()
        info = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        return {**self._environ, **dict(self._plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _cannot_start(self, error: OSError) -> ConfigError:
        hint = printable(self._plugin.install_hint).strip()
        if isinstance(error, FileNotFoundError):
            return ConfigError(
                f"{self._name}: not found",
                hint=hint or f"install {self._plugin.command}, or put it on the PATH",
            )
        return ConfigError(f"{self._name}: cannot be run: {error.strerror}", hint=hint or None)

    def _failed(self, outcome: Outcome) -> ConfigError:
        words = printable(outcome.stderr.decode(errors="replace")).strip()[-_STDERR_SHOWN:]
        return ConfigError(
            f"{self._name}: failed with exit code {outcome.code}" + (f": {words}" if words else ""),
            hint="log in again, or run the plugin by hand to see more",
        )

    def _read(self, stdout: bytes) -> tuple[Credential, datetime | None]:
        try:
            answer = msgspec.json.decode(stdout)
            self._check_kind(answer)
            status = msgspec.convert(answer.get("status"), _Status | None)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # What it printed may be a secret: say only that it cannot be read.
            raise self._bad_answer("it did not print an ExecCredential as JSON") from None
        if status is None:
            raise self._bad_answer("the ExecCredential has no status")
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key):
            raise self._bad_answer("the status has a certificate or a key, but not both")
        if not (status.token or certificate):
            raise self._bad_answer("the status has neither a token nor a certificate and key")
        credential = Credential(
            token=status.token or None,
            certificate=certificate.encode() if certificate else None,
            key=key.encode() if key else None,
        )
        return credential, status.expiration_timestamp

    def _check_kind(self, answer: object) -> None:
        if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
            raise self._bad_answer("it did not print an ExecCredential as JSON")
        version = answer.get("apiVersion")
        if version != self._plugin.api_version:
            raise self._bad_answer(
                f"the kubeconfig says {self._plugin.api_version}, it answered {version}",
                hint=f"set exec.apiVersion of the user to {version}",
            )

    def _bad_answer(self, problem: str, hint: str | None = None) -> ConfigError:
        return ConfigError(f"{self._name}: {problem}", hint=hint)

    def describe(self) -> str:
        text = f"credential plugin {self._plugin.command}"
        if self._cached and self._cached.token:
            text += f": {describe_token(self._cached.token, self._now())}"
        elif self._cached and self._cached.certificate:
            text += f": {describe_certificate(self._cached.certificate, self._now())}"
        return text


def printable(text: str) -> str:
    """`text` without control characters, which could play tricks on a terminal."""
    return "".join(
        character
        if character in "\n\t" or not unicodedata.category(character).startswith("C")
        else f"U+{ord(character):04X}"
        for character in text.replace("\r\n", "\n")
    )


_exec_plugin: type[Credentials] = ExecPlugin
