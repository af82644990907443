"""Credentials in files that something else rotates: tokens, certificates and keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from kvestigate.client.auth.identity import describe_certificate, describe_token
from kvestigate.client.auth.interface import Credential, Credentials, Now, wall_now
from kvestigate.errors import ConfigError

# kubectl takes a token read from a file to be good for a minute and renews it ten seconds
# early; the kubelet replaces projected tokens long before the old one expires.
REREAD_AFTER = timedelta(seconds=50)


class TokenFile:
    """A bearer token in a file, read again every 50 seconds and after a 401."""

    def __init__(self, path: str, *, fallback: str = "", now: Now = wall_now) -> None:
        self._path = Path(path)
        self._now = now
        self._credential = Credential(token=fallback) if fallback else None
        self._read_at: datetime | None = None

    async def current(self) -> Credential:
        now = self._now()
        if self._credential and self._read_at and now - self._read_at < REREAD_AFTER:
            return self._credential
        return self._reread(now)

    async def rejected(self, used: Credential) -> bool:
        return self._reread(self._now()) != used

    def _reread(self, now: datetime) -> Credential:
        try:
            self._credential = Credential(token=_read_token(self._path))
            self._read_at = now
        except ConfigError:
            # The old token may still be good while the file is being replaced.
            if self._credential is None:
                raise
        return self._credential

    def describe(self) -> str:
        try:
            token = _read_token(self._path)
        except ConfigError:
            return f"token file {self._path}, unreadable"
        return f"{describe_token(token, self._now())}, from {self._path}"


def _read_token(path: Path) -> str:
    text = read_file(path, "token file").strip()
    try:
        token = text.decode("ascii")
    except UnicodeDecodeError:
        raise ConfigError(f"token file {path}: not a token: it is not ASCII text") from None
    if not token:
        raise ConfigError(f"token file {path}: it is empty")
    return token


def read_file(path: Path, content: str) -> bytes:
    """The bytes of a file that a kubeconfig names; `content` says in errors what it holds."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{content} {path}: cannot be read: {error.strerror}",
            hint=f"check it with: ls -l {path}",
        ) from None


class CertificateFiles:
    """A client certificate and key in two files, read again when either has changed."""

    def __init__(self, certificate: str, key: str, *, now: Now = wall_now) -> None:
        self._certificate, self._key = Path(certificate), Path(key)
        self._now = now
        self._credential: Credential | None = None
        self._stamp: tuple[object, ...] = ()

    async def current(self) -> Credential:
        stamp = (*_stamp(self._certificate), *_stamp(self._key))
        if self._credential is None or stamp != self._stamp:
            self._read(stamp)
        assert self._credential is not None
        return self._credential

    def _read(self, stamp: tuple[object, ...]) -> None:
        try:
            certificate = read_file(self._certificate, "client certificate")
            key = read_file(self._key, "client key")
        except ConfigError:
            # Half way through a rotation the old pair still works.
            if self._credential is None:
                raise
            return
        self._credential = Credential(certificate=certificate, key=key)
        self._stamp = stamp

    async def rejected(self, used: Credential) -> bool:
        return await self.current() != used

    def describe(self) -> str:
        try:
            pem = read_file(self._certificate, "client certificate")
        except ConfigError:
            return f"client certificate {self._certificate}, unreadable"
        return f"{describe_certificate(pem, self._now())}, from {self._certificate}"


def _stamp(path: Path) -> tuple[object, ...]:
    """Changes whenever the file does, be it rewritten or replaced."""
    try:
        status = path.stat()
    except OSError:
        return (None,)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


_token_file: type[Credentials] = TokenFile
_certificate_files: type[Credentials] = CertificateFiles
