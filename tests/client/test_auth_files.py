"""Credentials that stand still, and those in files that something else rotates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kvestigate.client.auth.files import CertificateFiles, TokenFile
from kvestigate.client.auth.interface import Credential, Credentials
from kvestigate.client.auth.selection import Layered
from kvestigate.client.auth.static import Anonymous, Static
from kvestigate.errors import ConfigError
from tests.client.identities import SetClock, make_certificate, make_token


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


async def test_a_token_file_is_read_again_after_fifty_seconds(
    tmp_path: Path, clock: SetClock
) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = TokenFile(str(file), now=clock)
    assert (await credentials.current()).token == "one"
    file.write_text("two\n")
    clock.advance(49)
    assert (await credentials.current()).token == "one"
    clock.advance(1)
    assert (await credentials.current()).token == "two"


async def test_a_rejected_token_is_read_again_at_once(tmp_path: Path, clock: SetClock) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = TokenFile(str(file), now=clock)
    used = await credentials.current()
    assert not await credentials.rejected(used)
    file.write_text("two")
    assert await credentials.rejected(used)
    assert (await credentials.current()).token == "two"


async def test_the_last_token_serves_while_the_file_is_away(
    tmp_path: Path, clock: SetClock
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = TokenFile(str(file), now=clock)
    await credentials.current()
    file.unlink()
    clock.advance(3600)
    assert (await credentials.current()).token == "one"
    file.write_text("two")
    assert (await credentials.current()).token == "two"


async def test_the_file_wins_over_the_token_beside_it(tmp_path: Path, clock: SetClock) -> None:
    file = tmp_path / "token"
    credentials = TokenFile(str(file), fallback="inline", now=clock)
    assert (await credentials.current()).token == "inline"
    file.write_text("from-file")
    assert (await credentials.current()).token == "from-file"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "token file {file}: cannot be read: No such file or directory"),
        (b" \n", "token file {file}: it is empty"),
        ("tökén".encode(), "token file {file}: not a token: it is not ASCII text"),
    ],
)
async def test_a_first_token_that_cannot_be_read_is_an_error(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        await TokenFile(str(file)).current()
    assert caught.value.message == message.format(file=file)


async def test_certificates_are_read_again_when_replaced(tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    first, second = make_certificate("a"), make_certificate("b")
    certificate.write_bytes(first[0])
    key.write_bytes(first[1])
    credentials = CertificateFiles(str(certificate), str(key))
    used = await credentials.current()
    assert used == Credential(certificate=first[0], key=first[1])
    assert await credentials.current() is used
    assert not await credentials.rejected(used)
    for path, pem in zip((certificate, key), second, strict=True):
        path.with_suffix(".new").write_bytes(pem)
        path.with_suffix(".new").replace(path)
    assert await credentials.rejected(used)
    assert await credentials.current() == Credential(certificate=second[0], key=second[1])


async def test_certificates_are_read_again_when_rewritten_in_place(tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    first = make_certificate("a")
    certificate.write_bytes(first[0])
    key.write_bytes(first[1])
    credentials = CertificateFiles(str(certificate), str(key))
    await credentials.current()
    certificate.write_bytes(first[0][::-1])
    os.utime(certificate, ns=(1, 1))  # not left to the clock's grain
    assert (await credentials.current()).certificate == first[0][::-1]


async def test_the_old_pair_serves_while_a_file_is_away(tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    with pytest.raises(ConfigError, match=r"client certificate .*crt: cannot be read"):
        await CertificateFiles(str(certificate), str(key)).current()
    pair = make_certificate("a")
    certificate.write_bytes(pair[0])
    key.write_bytes(pair[1])
    credentials = CertificateFiles(str(certificate), str(key))
    used = await credentials.current()
    key.unlink()
    assert await credentials.current() == used


async def test_a_certificate_and_a_token_go_together(tmp_path: Path) -> None:
    certificate, key = make_certificate("a")
    file = tmp_path / "token"
    file.write_text("one")
    both = Layered(Static(Credential(certificate=certificate, key=key)), TokenFile(str(file)))
    used = await both.current()
    assert used == Credential(token="one", certificate=certificate, key=key)
    assert await both.current() is used
    assert not await both.rejected(used)
    file.write_text("two")
    assert await both.rejected(used)
    assert (await both.current()).token == "two"


async def test_what_stands_still_cannot_be_renewed() -> None:
    for credentials in (Anonymous(), Static(Credential(token="x"))):
        assert not await credentials.rejected(await credentials.current())


def test_descriptions_say_who_and_until_when(tmp_path: Path, clock: SetClock) -> None:
    certificate, key = make_certificate("jane")
    token = make_token(sub="system:serviceaccount:web:bot", expires_in=-60)
    file, crt = tmp_path / "token", tmp_path / "crt"
    file.write_text(token)
    crt.write_bytes(certificate)
    cases: dict[Credentials, str] = {
        Anonymous(): "no credentials",
        Static(Credential(token="opaque")): "bearer token",
        Static(Credential(token="a.b.c")): "bearer token",
        Static(Credential(basic=("me", "topsecret"))): "password of me",
        Static(Credential(token=token), now=clock): (
            "bearer token of system:serviceaccount:web:bot, expired 2030-01-01 11:59 UTC"
        ),
        Static(Credential(certificate=certificate, key=key), now=clock): (
            "client certificate O=system:masters,CN=jane, expires 2031-01-01 00:00 UTC"
        ),
        Static(Credential(certificate=b"junk", key=b"junk")): (
            "client certificate that cannot be parsed"
        ),
        TokenFile(str(file), now=clock): (
            "bearer token of system:serviceaccount:web:bot, expired 2030-01-01 11:59 UTC, "
            f"from {file}"
        ),
        TokenFile("/nowhere/token"): "token file /nowhere/token, unreadable",
        CertificateFiles(str(crt), "/nowhere/key", now=clock): (
            f"client certificate O=system:masters,CN=jane, expires 2031-01-01 00:00 UTC, from {crt}"
        ),
        CertificateFiles("/nowhere/crt", "/nowhere/key"): (
            "client certificate /nowhere/crt, unreadable"
        ),
    }
    assert [credentials.describe() for credentials in cases] == list(cases.values())


def test_a_credential_shows_what_it_has_and_not_its_value() -> None:
    credential = Credential("topsecret", ("me", "topsecret"), b"topsecret", b"topsecret")
    assert repr(credential) == str(credential) == "Credential(token, basic, certificate, key)"
    assert repr(Credential()) == "Credential()"
