"""From flags, environment and files to one access."""

from __future__ import annotations

import base64
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kvestigate.client.access import Access, AccessOptions, Impersonation, resolve
from kvestigate.client.auth.interface import Credential
from kvestigate.client.connect import connect
from kvestigate.client.endpoint import Endpoint
from tests.client.identities import SetClock, make_certificate, make_token

SECRET = "topsecret"
CERTIFICATE, KEY = make_certificate("jane")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def entry(
    name: str,
    cluster: Mapping[str, object] | None = None,
    *,
    namespace: str = "",
    user: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A kubeconfig with a cluster, a user and a current context of the same name."""
    return {
        "current-context": name,
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}
        ],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}", **(cluster or {})}}],
        "users": [{"name": name, "user": {"token": f"{name}-token"} if user is None else user}],
    }


def write(path: Path, config: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return path


def access_of(tmp_path: Path, config: dict[str, object], **options: object) -> Access:
    file = write(tmp_path / "config", config)
    chosen = AccessOptions(kubeconfig=str(file), **options)  # type: ignore[arg-type]  # a table's row
    return resolve(chosen, {"PATH": os.environ["PATH"]}, None, now=SetClock())


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """The directory of a pod's service account."""
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("pod-token")
    (directory / "ca.crt").write_bytes(CERTIFICATE)
    (directory / "namespace").write_text("pods\n")
    return directory


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def test_the_flag_comes_before_the_variable_before_home_before_the_pod(
    tmp_path: Path, pod: Path
) -> None:
    flag, variable = (write(tmp_path / name, entry(name)) for name in ("flag", "variable"))
    home = write(tmp_path / ".kube" / "config", entry("home"))
    environ = {**IN_POD, "KUBECONFIG": str(variable)}

    def found(options: AccessOptions, environ: dict[str, str]) -> tuple[str, str]:
        access = resolve(options, environ, tmp_path, service_account=pod)
        return str(access.server), access.source

    flagged = AccessOptions(kubeconfig=str(flag))
    assert found(flagged, environ) == ("https://flag", f"flag --kubeconfig {flag}")
    assert found(AccessOptions(), environ) == ("https://variable", "KUBECONFIG")
    assert found(AccessOptions(), IN_POD) == ("https://home", "default path")
    home.unlink()
    assert found(AccessOptions(), IN_POD) == ("https://10.0.0.1", "in-cluster")


async def test_a_pod_uses_its_service_account(tmp_path: Path, pod: Path) -> None:
    access = resolve(AccessOptions(as_user="alice"), IN_POD, tmp_path, service_account=pod)
    assert (await access.credentials.current()).token == "pod-token"
    assert access.tls.ca == CERTIFICATE
    assert access.namespace == "pods"
    assert access.impersonate == Impersonation("alice")
    access = resolve(
        AccessOptions(), {**IN_POD, "POD_NAMESPACE": "mine"}, tmp_path, service_account=pod
    )
    assert access.namespace == "mine"
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    access = resolve(AccessOptions(), environ, tmp_path, service_account=pod)
    assert access.server == Endpoint("https", "fd00::1", 6443)


async def test_several_files_are_one_kubeconfig(tmp_path: Path) -> None:
    one = write(tmp_path / "one", entry("one"))
    two = write(tmp_path / "two", entry("two"))
    paths = os.pathsep.join([str(tmp_path / "none"), str(one), str(two)])
    access = resolve(AccessOptions(), {"KUBECONFIG": paths}, None)
    assert (access.context, str(access.server)) == ("one", "https://one")
    access = resolve(AccessOptions(context="two", user="one"), {"KUBECONFIG": paths}, None)
    assert (access.context, access.cluster, access.user) == ("two", "two", "one")
    assert (await access.credentials.current()).token == "one-token"


async def test_a_server_alone_needs_no_kubeconfig(tmp_path: Path) -> None:
    options = AccessOptions(server="https://h/clusters/x", token="t", insecure_skip_tls_verify=True)
    access = resolve(options, {}, tmp_path)
    assert access.server == Endpoint("https", "h", 443, "/clusters/x")
    assert await access.credentials.current() == Credential(token="t")
    assert (access.tls.insecure, access.source) == (True, "flag --server")
    assert (access.context, access.namespace) == ("", "default")


def test_flags_override_the_cluster(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(CERTIFICATE)
    config = entry(
        "c",
        {"tls-server-name": "api", "certificate-authority-data": encoded(b"x" + CERTIFICATE)},
        namespace="web",
    )
    plain = access_of(tmp_path, config)
    assert (plain.namespace, plain.tls.server_name) == ("web", "api")
    assert plain.tls.ca == b"x" + CERTIFICATE
    assert access_of(tmp_path, config, namespace="n").namespace == "n"
    assert access_of(tmp_path, config, server="https://other").tls.server_name is None
    assert access_of(tmp_path, config, tls_server_name="b").tls.server_name == "b"
    assert access_of(tmp_path, config, ca_file=str(ca)).tls.ca == CERTIFICATE
    insecure = access_of(tmp_path, config, insecure_skip_tls_verify=True).tls
    assert (insecure.insecure, insecure.ca) == (True, None)
    assert access_of(tmp_path, config, request_timeout=5.0).request_timeout == 5.0


@pytest.mark.parametrize(
    ("user", "options", "impersonate"),
    [
        ({}, {}, None),
        ({"as": "alice"}, {}, Impersonation("alice")),
        (
            {"as": "a", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}},
            {},
            Impersonation("a", "1", ("g",), {"k": ("v",)}),
        ),
        ({}, {"as_user": "bob", "as_groups": ("x", "y")}, Impersonation("bob", "", ("x", "y"))),
        ({"as": "alice", "as-groups": ["g"]}, {"as_user": "b"}, Impersonation("b", "", ("g",))),
        ({"as": "alice"}, {"as_groups": ("x",)}, Impersonation("alice", "", ("x",))),
    ],
)
def test_impersonation_is_never_dropped(
    user: dict[str, object],
    options: dict[str, object],
    impersonate: Impersonation | None,
    tmp_path: Path,
) -> None:
    assert access_of(tmp_path, entry("c", user=user), **options).impersonate == impersonate


def test_impersonation_headers_escape_what_a_header_name_cannot_hold() -> None:
    extra = {"example.com/scope": ("view", "edit"), "50%": ("x",), "é": ("y",)}
    assert Impersonation("alice", "7", ("a", "b"), extra).headers() == [
        ("Impersonate-User", "alice"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fscope", "view"),
        ("Impersonate-Extra-example.com%2Fscope", "edit"),
        ("Impersonate-Extra-50%25", "x"),
        ("Impersonate-Extra-%C3%A9", "y"),
    ]


PLUGIN: dict[str, object] = {
    "command": "/nowhere/plugin",
    "apiVersion": "client.authentication.k8s.io/v1",
    "interactiveMode": "Never",
}
INLINE: dict[str, object] = {
    "client-certificate-data": encoded(CERTIFICATE),
    "client-key-data": encoded(KEY),
}
PAIR = Credential(certificate=CERTIFICATE, key=KEY)


@pytest.mark.parametrize(
    ("user", "options", "credential"),
    [
        ({}, {}, Credential()),
        ({"token": "t"}, {}, Credential(token="t")),
        ({"username": "me", "password": "p"}, {}, Credential(basic=("me", "p"))),
        (INLINE, {}, PAIR),
        ({"client-certificate": "crt", "client-key": "key"}, {}, PAIR),
        ({"client-certificate": "crt", "client-key-data": encoded(KEY)}, {}, PAIR),
        ({"client-key-data": encoded(KEY), "token": "t"}, {}, Credential(token="t")),
        ({"tokenFile": "token"}, {}, Credential(token="from-file")),
        ({"token": "t", "tokenFile": "token"}, {}, Credential(token="from-file")),
        ({"token": "t", "tokenFile": "none"}, {}, Credential(token="t")),
        ({"token": "t", **INLINE}, {}, Credential("t", None, CERTIFICATE, KEY)),
        ({"token": "t", "exec": PLUGIN}, {}, Credential(token="t")),
        ({"exec": PLUGIN, **INLINE}, {}, PAIR),
        ({"exec": PLUGIN}, {"token": "flag"}, Credential(token="flag")),
        ({"tokenFile": "token"}, {"token": "flag"}, Credential(token="flag")),
        ({"username": "me", "password": "p"}, {"token": "flag"}, Credential(token="flag")),
        ({"auth-provider": {"name": "gcp"}}, {"token": "flag"}, Credential(token="flag")),
        (INLINE, {"token": "flag"}, Credential("flag", None, CERTIFICATE, KEY)),
    ],
)
async def test_what_is_sent_follows_kubectls_precedence(
    user: dict[str, object], options: dict[str, object], credential: Credential, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("from-file")
    (tmp_path / "crt").write_bytes(CERTIFICATE)
    (tmp_path / "key").write_bytes(KEY)
    access = access_of(tmp_path, entry("c", user=user), **options)
    assert await access.credentials.current() == credential


async def test_a_plugin_is_told_what_the_kubeconfig_says(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text(
        f"#!{sys.executable}\nimport json, os\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "info['status'] = {'token': json.dumps(info['spec']['cluster'])}\n"
        "print(json.dumps(info))\n"
    )
    script.chmod(0o755)
    plugin = {**PLUGIN, "command": "./plugin", "provideClusterInfo": True}
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    (tmp_path / "ca").write_bytes(CERTIFICATE)
    cluster = {
        "certificate-authority": "ca",
        "tls-server-name": "api",
        "extensions": [{"name": "other", "extension": 1}, extension],
    }
    access = access_of(tmp_path, entry("c", cluster, user={"exec": plugin}))
    token = (await access.credentials.current()).token
    assert token is not None
    assert json.loads(token) == {
        "server": "https://c",
        "tls-server-name": "api",
        "certificate-authority-data": encoded(CERTIFICATE),
        "config": {"audience": "x"},
    }


async def test_nothing_secret_goes_over_plain_http(tmp_path: Path) -> None:
    access = access_of(
        tmp_path, entry("c", {"server": "http://c"}, user={"token": "t", "as": "alice"})
    )
    assert await access.credentials.current() == Credential()
    assert access.credentials.describe() == ("no credentials, which are never sent over plain http")


@pytest.mark.parametrize(
    ("cluster", "environ", "proxy"),
    [
        ({"proxy-url": "socks5://p"}, {"HTTPS_PROXY": "http://q"}, "socks5://p"),
        ({}, {"HTTPS_PROXY": "http://q"}, "http://q"),
        ({}, {"HTTPS_PROXY": "http://q", "NO_PROXY": "c"}, None),
        ({"server": "https://127.0.0.1:6443"}, {"HTTPS_PROXY": "http://q"}, None),
        ({"server": "https://127.0.0.1", "proxy-url": "http://p"}, {}, "http://p"),
    ],
)
def test_the_kubeconfigs_proxy_comes_before_the_environments(
    cluster: dict[str, object], environ: dict[str, str], proxy: str | None, tmp_path: Path
) -> None:
    file = write(tmp_path / "config", entry("c", cluster))
    assert resolve(AccessOptions(kubeconfig=str(file)), environ, None).proxy_url == proxy


@pytest.mark.parametrize(
    ("user", "described"),
    [
        ({}, "no credentials"),
        (INLINE, "client certificate O=system:masters,CN=jane, expires 2031-01-01 00:00 UTC"),
        (
            {"token": make_token(sub="bot", expires_in=60)},
            "bearer token of bot, expires 2030-01-01 12:01 UTC",
        ),
        ({"username": "me", "password": SECRET}, "password of me"),
        ({"exec": PLUGIN}, "credential plugin /nowhere/plugin"),
        (
            {"token": SECRET, **INLINE},
            "client certificate O=system:masters,CN=jane, expires 2031-01-01 00:00 UTC "
            "and bearer token",
        ),
    ],
)
def test_credentials_describe_themselves(
    user: dict[str, object], described: str, tmp_path: Path
) -> None:
    assert access_of(tmp_path, entry("c", user=user)).credentials.describe() == described


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    user = {"token": SECRET, "client-key-data": encoded(KEY)}
    access = access_of(tmp_path, entry("c", {"proxy-url": f"http://me:{SECRET}@p"}, user=user))
    options = AccessOptions(token=SECRET)
    told = access.credentials.describe()
    assert SECRET not in f"{access!r} {access} {told} {options!r} {options}"
    assert access.proxy_url == f"http://me:{SECRET}@p"


@pytest.mark.parametrize(("asked", "seconds"), [(None, 60.0), (5.0, 5.0), (0.0, math.inf)])
async def test_no_time_means_any_time(tmp_path: Path, asked: float | None, seconds: float) -> None:
    access = access_of(tmp_path, entry("c"), request_timeout=asked)
    async with connect(access) as api:
        assert api.exchange.timeout == seconds
