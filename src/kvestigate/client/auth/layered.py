"""A client certificate for the connection together with something for the Authorization header."""

from __future__ import annotations

from dataclasses import replace

from kvestigate.client.auth.interface import Credential, Credentials


class Layered:
    """Sends both, as kubectl does; the server believes the certificate first."""

    def __init__(self, certificate: Credentials, header: Credentials) -> None:
        self._certificate = certificate
        self._header = header
        self._last: tuple[Credential, Credential, Credential] | None = None

    async def current(self) -> Credential:
        certificate = await self._certificate.current()
        header = await self._header.current()
        if self._last is None or self._last[:2] != (certificate, header):
            both = replace(header, certificate=certificate.certificate, key=certificate.key)
            self._last = (certificate, header, both)
        return self._last[2]

    async def rejected(self, used: Credential) -> bool:
        certificate = Credential(certificate=used.certificate, key=used.key)
        header = replace(used, certificate=None, key=None)
        renewed = [
            await self._certificate.rejected(certificate),
            await self._header.rejected(header),
        ]
        return any(renewed)

    def describe(self) -> str:
        return f"{self._certificate.describe()} and {self._header.describe()}"


_layered: type[Credentials] = Layered
