"""The data directory of a server: the planes, its CA and keys, and the owner's kubeconfig.

    DIR/planes.db           the planes
    DIR/pki/ca.crt, ca.key  the CA of the server's, the kubelets' and the clients' certificates
    DIR/pki/accounts.key    signs the tokens of service accounts
    DIR/pki/admin.token     the owner's bearer token
    DIR/admin.kubeconfig    written at every start, because the port may change

All other files are created at the first start. Only their owner can read them, also if the
directory or files in it were open to others before.
"""

from __future__ import annotations

import base64
import datetime
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from kvestigate.cluster.plane.model.user import MASTERS
from kvestigate.errors import InputError
from kvestigate.files import private_directory, private_file, replace_file
from kvestigate.http.certificates import CertificateAuthority, KeyPair

ADMIN = "kvestigate-admin"
_AUTHORITY = "kvestigate-ca"
_TOKEN_BYTES = 32


class DataDirectory:
    """A directory that belongs to one server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pki = path / "pki"

    def prepare(self) -> None:
        """Make the directories and see that all in them is private, whatever it was before.

        InputError if that is not possible.
        """
        try:
            private_directory(self.path)
            private_directory(self._pki)
            kept = [
                self.kubeconfig,
                *self.path.glob(f"{self.database.name}*"),
                *self._pki.iterdir(),
            ]
            for path in filter(Path.is_file, kept):
                os.close(private_file(path, os.O_RDONLY))
        except OSError as error:
            raise _unusable(self.path, error) from error

    @property
    def database(self) -> Path:
        return self.path / "planes.db"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "admin.kubeconfig"

    def authority(self, now: datetime.datetime) -> CertificateAuthority:
        """The CA, created at the first start."""
        certificate, key = self._pki / "ca.crt", self._pki / "ca.key"
        if not key.exists():
            authority = CertificateAuthority.create(_AUTHORITY, now=now)
            _write_private(key, authority.pair.key)
            _write_private(certificate, authority.pair.certificate)
            return authority
        try:
            return CertificateAuthority(KeyPair(_read(certificate), _read(key)))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"the CA cannot be used: {error}",
                where=str(certificate),
                hint=f"restore both files in {self._pki} from a backup, or remove both to have a "
                "new CA created",
            ) from error

    def admin_token(self) -> str:
        """The owner's bearer token, created at the first start."""
        return self.secret("admin.token", lambda: new_token().encode()).decode()

    def secret(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The content of a file in `pki`, created by `make` if it does not exist."""
        path = self._pki / name
        if not path.exists():
            _write_private(path, make())
        return _read(path)

    def write_kubeconfig(
        self, url: str, authority: CertificateAuthority, token: str, now: datetime.datetime
    ) -> None:
        """The owner's kubeconfig for the root plane at `url`."""
        pair = authority.issue_client(ADMIN, [MASTERS], now=now)
        user = {
            "client-certificate-data": _base64(pair.certificate),
            "client-key-data": _base64(pair.key),
            "token": token,
        }
        ca, name = _base64(authority.pair.certificate), "kvestigate"
        cluster = {"server": url, "certificate-authority-data": ca}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": ADMIN, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": ADMIN}}],
            "current-context": name,
        }
        # JSON is YAML, too.
        content = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
        _write_private(self.kubeconfig, content)


def new_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


def _write_private(path: Path, content: bytes) -> None:
    """Replace `path` atomically by a file that only its owner can read."""
    try:
        replace_file(path, content, mode=0o600)
    except OSError as error:
        raise _unusable(path, error) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be used: {error.strerror}",
        where=str(path),
        hint="give a directory that you may write to with --data DIR",
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
