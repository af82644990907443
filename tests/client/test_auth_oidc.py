"""OpenID Connect logins, renewed at a provider that answers over real HTTP and kept on disk."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
import yaml

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.auth.interface import Credentials
from kvestigate.errors import ConfigError, ConnectionFailed
from tests.client.identities import SetClock, make_token

SECRET = "topsecret"


class Provider:
    """An identity provider. Tests say what it answers and see what it was asked."""

    def __init__(self) -> None:
        self.discovery: tuple[int, bytes] | None = None
        self.wants_secret_in_body = False
        self.answer: object = {}
        self.asked: list[dict[str, str]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def discover(self) -> tuple[int, bytes]:
        document = {"token_endpoint": f"{self.url}/token"}
        return self.discovery or (200, json.dumps(document).encode())

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, bytes]:
        self.asked.append({**form, "authorization": authorization})
        if self.wants_secret_in_body and "client_secret" not in form:
            return 401, b'{"error": "invalid_client"}'
        if form["refresh_token"] != f"{SECRET}-refresh-1":
            description = f"{form['refresh_token']} is unknown"
            error = {"error": "invalid_grant", "error_description": description}
            return 400, json.dumps(error).encode()
        return 200, json.dumps(self.answer).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path == "/.well-known/openid-configuration"
                self._send(*(provider.discover() if found else (404, b"")))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                form = dict(parse_qsl(body.decode()))
                self._send(*provider.token(form, self.headers.get("Authorization", "")))

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.server.serve_forever, args=(0.01,))
    thread.start()
    yield provider
    provider.server.shutdown()
    thread.join()
    provider.server.server_close()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config"


def login(file: Path, provider: Provider, clock: SetClock, **config: str) -> Credentials:
    """The credentials of a kubeconfig in `file` whose user logged in at `provider`."""
    values = {"idp-issuer-url": provider.url, "client-id": "kubectl"} | {
        key.replace("_", "-"): value for key, value in config.items()
    }
    auth = {"auth-provider": {"name": "oidc", "config": values}}
    document = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
        "users": [{"name": "other", "user": {"token": "x"}}, {"name": "u", "user": auth}],
    }
    file.write_text(yaml.safe_dump(document))
    file.chmod(0o640)
    return resolve(AccessOptions(kubeconfig=str(file)), {}, None, now=clock).credentials


def saved(file: Path) -> dict[str, str]:
    config: dict[str, str] = yaml.safe_load(file.read_text())["users"][1]["user"]["auth-provider"][
        "config"
    ]
    return config


def left_behind(file: Path) -> dict[str, int]:
    """The files beside the kubeconfig, with their permissions."""
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in file.parent.iterdir()}


async def test_a_token_that_is_good_is_sent_as_it_is(
    file: Path, provider: Provider, clock: SetClock
) -> None:
    token = make_token(sub="jane", expires_in=11)
    credentials = login(file, provider, clock, id_token=token)
    assert (await credentials.current()).token == token
    assert credentials.describe() == (
        f"OpenID Connect login at {provider.url}: "
        "bearer token of jane, expires 2030-01-01 12:00 UTC"
    )
    assert provider.asked == []


@pytest.mark.parametrize("old", [{"expires_in": 10}, {"expires_in": -5}, {}, None])
async def test_a_token_about_to_expire_is_renewed_and_saved(
    old: dict[str, float] | None, file: Path, provider: Provider, clock: SetClock
) -> None:
    new = make_token(sub="jane", expires_in=3600)
    provider.answer = {"id_token": new, "refresh_token": f"{SECRET}-refresh-2"}
    config = {} if old is None else {"id_token": make_token(**old)}
    credentials = login(file, provider, clock, refresh_token=f"{SECRET}-refresh-1", **config)
    found = await asyncio.gather(*(credentials.current() for _ in range(5)))
    assert {credential.token for credential in found} == {new}
    assert provider.asked == [
        {
            "grant_type": "refresh_token",
            "refresh_token": f"{SECRET}-refresh-1",
            "client_id": "kubectl",
            "authorization": "",
        }
    ]
    assert saved(file) == {
        "idp-issuer-url": provider.url,
        "client-id": "kubectl",
        "id-token": new,
        "refresh-token": f"{SECRET}-refresh-2",
    }
    assert left_behind(file) == {"config": 0o640}


@pytest.mark.parametrize(("in_body", "tries"), [(False, 1), (True, 2)])
async def test_the_secret_goes_where_the_provider_looks(
    in_body: bool, tries: int, file: Path, provider: Provider, clock: SetClock
) -> None:
    provider.wants_secret_in_body = in_body
    provider.answer = {"id_token": make_token(expires_in=60)}
    credentials = login(
        file, provider, clock, refresh_token=f"{SECRET}-refresh-1", client_secret="a:b"
    )
    await credentials.current()
    expected = base64.b64encode(b"kubectl:a%3Ab").decode()
    assert provider.asked[0]["authorization"] == f"Basic {expected}"
    assert "client_secret" not in provider.asked[0]
    assert len(provider.asked) == tries
    assert provider.asked[-1].get("client_secret") == ("a:b" if in_body else None)
    assert saved(file)["refresh-token"] == f"{SECRET}-refresh-1"


async def test_a_rejected_token_is_renewed(file: Path, provider: Provider, clock: SetClock) -> None:
    new = make_token(sub="jane", expires_in=7200)
    provider.answer = {"id_token": new}
    credentials = login(
        file,
        provider,
        clock,
        id_token=make_token(expires_in=3600),
        refresh_token=f"{SECRET}-refresh-1",
    )
    used = await credentials.current()
    assert all(await asyncio.gather(*(credentials.rejected(used) for _ in range(3))))
    assert (await credentials.current()).token == new
    assert len(provider.asked) == 1


async def test_without_a_refresh_token_a_rejection_is_final(
    file: Path, provider: Provider, clock: SetClock
) -> None:
    credentials = login(file, provider, clock, id_token=make_token(expires_in=3600))
    assert not await credentials.rejected(await credentials.current())


@pytest.mark.parametrize(
    ("config", "discovery", "answer", "message"),
    [
        ({}, None, {}, "its id-token has expired and there is no refresh-token"),
        ({"id_token": SECRET}, None, {}, "its id-token is not a JWT"),
        (
            {"refresh_token": f"{SECRET}-other"},
            None,
            {},
            "the provider refused to renew the login: 400 (invalid_grant)",
        ),
        (
            {"refresh_token": f"{SECRET}-refresh-1"},
            None,
            {"access_token": SECRET},
            "the provider renewed the login without an id_token",
        ),
        (
            {"refresh_token": f"{SECRET}-refresh-1"},
            None,
            [SECRET],
            "the provider renewed the login without an id_token",
        ),
        (
            {"refresh_token": f"{SECRET}-refresh-1"},
            (500, b"<html>"),
            {},
            "the provider answered 500 at {url}/.well-known/openid-configuration",
        ),
        (
            {"refresh_token": f"{SECRET}-refresh-1"},
            (200, b"<html>"),
            {},
            "the provider names no token_endpoint at {url}/.well-known/openid-configuration",
        ),
    ],
)
async def test_a_login_that_cannot_be_renewed_is_explained(
    config: dict[str, str],
    discovery: tuple[int, bytes] | None,
    answer: object,
    message: str,
    file: Path,
    provider: Provider,
    clock: SetClock,
) -> None:
    provider.discovery, provider.answer = discovery, answer
    credentials = login(file, provider, clock, **config)
    with pytest.raises(ConfigError) as caught:
        await credentials.current()
    expected = message.replace("{url}", provider.url)
    assert caught.value.message == f'OpenID Connect login of user "u": {expected}'
    assert SECRET not in f"{caught.value!r} {caught.value.hint}"


async def test_a_provider_that_is_not_there_is_named(
    file: Path, provider: Provider, clock: SetClock
) -> None:
    credentials = login(
        file, provider, clock, refresh_token="x", idp_issuer_url="http://127.0.0.1:1/realm/"
    )
    with pytest.raises(ConnectionFailed) as caught:
        await credentials.current()
    assert caught.value.message == (
        "the identity provider at http://127.0.0.1:1/realm/.well-known/openid-configuration "
        "did not answer: [Errno 111] Connection refused"
    )


async def test_a_link_to_the_kubeconfig_stays_a_link(
    provider: Provider, clock: SetClock, tmp_path: Path
) -> None:
    new = make_token(expires_in=3600)
    provider.answer = {"id_token": new}
    link, real = tmp_path / "config", tmp_path / "elsewhere"
    link.symlink_to(real)
    credentials = login(link, provider, clock, refresh_token=f"{SECRET}-refresh-1")
    await credentials.current()
    assert link.is_symlink()
    assert saved(real)["id-token"] == new


async def test_a_locked_kubeconfig_is_left_alone_and_the_new_token_still_serves(
    file: Path, provider: Provider, clock: SetClock
) -> None:
    new = make_token(expires_in=3600)
    provider.answer = {"id_token": new}
    credentials = login(file, provider, clock, refresh_token=f"{SECRET}-refresh-1")
    lock = file.with_name("config.lock")
    lock.touch()
    with pytest.raises(ConfigError) as caught:
        await credentials.current()
    assert caught.value.message == (
        f"{file}: the renewed login could not be saved: {lock} is there: another program is writing"
    )
    assert lock.exists()
    assert "id-token" not in saved(file)
    assert (await credentials.current()).token == new
