"""A certificate authority of our own: ECDSA P-256, PEM in and out.

Importing `cryptography` takes a while, so only what makes or reads certificates does.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_CA_DAYS = 3650
_LEAF_DAYS = 365
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# Machines' clocks differ: a certificate made now must be valid on one that is behind.
_BACKDATE = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    """Issues certificates; `pair` is its own, to be kept and loaded again."""

    def __init__(self, pair: KeyPair) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = load_pem_private_key(pair.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the CA's key is not an elliptic-curve key")
        self._key = key

    @classmethod
    def create(cls, common_name: str, *, now: datetime.datetime) -> CertificateAuthority:
        return cls._of(_new_key(), _name(common_name, ()), now)

    def derive(
        self, common_name: str, organizations: Sequence[str], *, now: datetime.datetime
    ) -> CertificateAuthority:
        """Another CA, whose key follows from this one's and the new name.

        Whoever has this CA's key arrives at the same one; nobody else does, nor can the derived
        key be followed back.
        """
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        secret = self._key.private_numbers().private_value.to_bytes(32, "big")
        purpose = "\0".join((common_name, *organizations)).encode()
        material = HKDF(hashes.SHA256(), 48, None, purpose).derive(secret)
        number = int.from_bytes(material, "big") % (_P256_ORDER - 1) + 1
        key = ec.derive_private_key(number, ec.SECP256R1())
        return self._of(key, _name(common_name, organizations), now)

    def intermediate(
        self, common_name: str, organizations: Sequence[str], *, now: datetime.datetime
    ) -> CertificateAuthority:
        """Like `derive`, but whoever trusts this CA trusts what the other one issues, too."""
        derived = self.derive(common_name, organizations, now=now)
        return self._of(derived._key, derived._certificate.subject, now, self)

    @classmethod
    def _of(
        cls,
        key: ec.EllipticCurvePrivateKey,
        name: x509.Name,
        now: datetime.datetime,
        above: CertificateAuthority | None = None,
    ) -> CertificateAuthority:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        issuer = name if above is None else above._certificate.subject
        builder = _builder(name, issuer, key.public_key(), now, _CA_DAYS)
        length = None if above is None else 0
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=length), True)
        builder = builder.add_extension(_usage(sign_certificates=True), True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False
        )
        if above is not None:
            builder = builder.add_extension(above._identifier(), False)
        signing = key if above is None else above._key
        return cls(_pair(builder.sign(signing, hashes.SHA256()), key))

    def _identifier(self) -> x509.AuthorityKeyIdentifier:
        from cryptography import x509

        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    @property
    def expires(self) -> datetime.datetime:
        return self._certificate.not_valid_after_utc

    def certify(
        self,
        request: x509.CertificateSigningRequest,
        extensions: Sequence[tuple[x509.ExtensionType, bool]],
        *,
        begin: datetime.datetime,
        end: datetime.datetime,
    ) -> bytes:
        """The PEM of a certificate for a request, with the CA's own if it is an intermediate.

        Nothing of the request but its subject and key is taken over: `extensions`, each with
        whether it is critical, are the others.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding

        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(self._identifier(), False)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        issued = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        own = self._certificate
        return issued if own.issuer == own.subject else issued + self.pair.certificate

    def issue_server(
        self, common_name: str, names: Sequence[str], *, now: datetime.datetime
    ) -> KeyPair:
        """For a server that is reached by `names`: DNS names and IP addresses."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._issue(
            _name(common_name, ()), ExtendedKeyUsageOID.SERVER_AUTH, now, alternatives
        )

    def issue_client(
        self, common_name: str, organizations: Sequence[str] = (), *, now: datetime.datetime
    ) -> KeyPair:
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._issue(_name(common_name, organizations), ExtendedKeyUsageOID.CLIENT_AUTH, now)

    def _issue(
        self,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        now: datetime.datetime,
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        key = _new_key()
        builder = _builder(subject, self._certificate.subject, key.public_key(), now, _LEAF_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_usage(sign_certificates=False), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), False)
        builder = builder.add_extension(self._identifier(), False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


class DistinguishedName(NamedTuple):
    common_name: str
    organizations: tuple[str, ...]


def subject_of(certificate_der: bytes) -> DistinguishedName:
    """Whom a certificate was issued to."""
    from cryptography import x509

    return _distinguished(x509.load_der_x509_certificate(certificate_der).subject)


def issuer_of(certificate_der: bytes) -> DistinguishedName:
    """Which CA issued a certificate."""
    from cryptography import x509

    return _distinguished(x509.load_der_x509_certificate(certificate_der).issuer)


def _distinguished(name: x509.Name) -> DistinguishedName:
    from cryptography.x509.oid import NameOID

    names = [str(attribute.value) for attribute in name.get_attributes_for_oid(NameOID.COMMON_NAME)]
    organizations = name.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return DistinguishedName(
        names[0] if names else "", tuple(str(attribute.value) for attribute in organizations)
    )


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    return x509.Name(parts)


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return KeyPair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
