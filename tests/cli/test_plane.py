"""`kvestigate plane`, from the command line to the output."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import MEANT, Invoke, Served, Start, answering, kubeconfig


def test_serving_says_where_and_what_next_and_ends_when_told(tmp_path: Path) -> None:
    server = Served(tmp_path)
    code = server.close()

    where, config, following = server.said
    assert where.startswith("serving 0 planes at https://127.0.0.1:")
    assert config == f"kubeconfig: {tmp_path / 'admin.kubeconfig'}\n"
    assert (
        following == f"next: kubectl --kubeconfig {tmp_path / 'admin.kubeconfig'} get namespaces\n"
    )
    assert code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--etcd", "127.0.0.1:2379"), "--etcd: '127.0.0.1:2379' is not the URL of an etcd"),
        (("--etcd", "http://127.0.0.1:1", "--memory"), "--memory and --etcd exclude each other"),
        (("--etcd", "https://127.0.0.1:1", "--etcd-ca", "none"), "--etcd-ca: none: No such file"),
        (
            ("--etcd", "http://127.0.0.1:1", "--controllers"),
            "cannot be used with --etcd",
        ),
        (("--allow-egress", "loopback"), "--allow-egress: 'loopback' is not CIDR[:PORT]"),
        (("--etcd", "http://127.0.0.1:99999"), "is not the URL of an etcd"),
        (("--listen", "6443"), "--listen: '6443' is not HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "--listen: '127.0.0.1:99999' is not HOST:PORT"),
        (("--listen", "0.0.0.0:0", "--auth", "none"), "--auth none on 0.0.0.0"),
        (("--listen", "127.0.0.1:0", "--token-file", "missing"), "missing: the file cannot be"),
    ],
)
def test_a_server_that_cannot_be(invoke: Invoke, flags: tuple[str, ...], message: str) -> None:
    outcome = invoke("plane", "serve", *flags)

    assert outcome.code == 2
    assert message in outcome.err


def test_planes_come_and_go(invoke: Invoke, served: Served) -> None:
    data = ("--data", str(served.data))

    made = invoke("plane", "create", "alpha", *data, *MEANT)
    listed = invoke("plane", "list", *data, "-o", "json")
    gone = invoke("plane", "delete", "alpha", *data, *MEANT)

    assert (made.code, listed.code, gone.code) == (0, 0, 0)
    assert "/clusters/alpha/control-plane" in made.out
    assert [each["id"] for each in json.loads(listed.out)["items"]] == ["alpha", "root"]
    assert gone.out == "plane alpha is deleted\n"
    assert "alpha" not in invoke("plane", "list", *data).out


@pytest.mark.parametrize("action", ["create", "delete"])
def test_nothing_changes_until_it_is_meant(invoke: Invoke, served: Served, action: str) -> None:
    outcome = invoke("plane", action, "beta", "--data", str(served.data))

    assert outcome.code == 0
    assert f"{action} plane beta at https://127.0.0.1:" in outcome.err
    assert "add --apply --i-understand-this-modifies-cluster" in outcome.err
    assert "beta" not in invoke("plane", "list", "--data", str(served.data)).out


def test_the_servers_refusals_are_exit_codes(invoke: Invoke, served: Served) -> None:
    data = ("--data", str(served.data))

    assert invoke("plane", "create", "root", *data, *MEANT).code == 6
    assert invoke("plane", "delete", "missing", *data, *MEANT).code == 5
    assert invoke("plane", "delete", "root", *data, *MEANT).code == 4


def test_a_planes_kubeconfig_works(invoke: Invoke, served: Served, tmp_path: Path) -> None:
    printed = invoke("plane", "kubeconfig", "alpha", "--data", str(served.data))
    path = tmp_path / "alpha"
    path.write_text(printed.out)

    assert printed.code == 0
    [cluster] = yaml.safe_load(printed.out)["clusters"]
    assert cluster["cluster"]["server"].endswith("/clusters/alpha/control-plane")
    outcome = invoke("debug", "api", "/api/v1/namespaces/default", "--kubeconfig", str(path))
    assert (outcome.code, "default" in outcome.out) == (0, True)


def test_a_kubelet_gets_certificates_of_its_plane(
    invoke: Invoke, served: Served, tmp_path: Path
) -> None:
    out = tmp_path / "kubelet"
    places = ("--data", str(served.data), "--out", str(out))
    outcome = invoke("plane", "kubelet-certificate", "alpha", "node-1", "10.0.0.21", *places)

    assert (outcome.code, outcome.err) == (0, "")
    names = ("ca.crt", "kubelet.crt", "kubelet.key")
    assert outcome.out.split() == [str(out / name) for name in names]
    assert (out / "kubelet.key").stat().st_mode & 0o777 == 0o600
    trust = ssl.create_default_context(cafile=str(out / "ca.crt"))
    assert trust.get_ca_certs()[0]["subject"] != server_ca(served)


def server_ca(served: Served) -> object:
    known = ssl.create_default_context(cafile=str(served.data / "pki" / "ca.crt"))
    return known.get_ca_certs()[0]["subject"]


@pytest.mark.parametrize("command", [("list",), ("kubeconfig", "alpha")])
def test_without_a_server_the_way_to_one_is_named(
    invoke: Invoke, tmp_path: Path, command: tuple[str, ...]
) -> None:
    outcome = invoke("plane", *command, "--data", str(tmp_path))

    assert outcome.code == 3
    assert f"no server of planes has used the data directory {tmp_path}" in outcome.err
    assert "`kvestigate plane serve` starts a server" in outcome.err


def test_another_kind_of_server_is_recognised(invoke: Invoke, start: Start, tmp_path: Path) -> None:
    server = start(answering(404, b"404 page not found\n", "text/plain"))
    (tmp_path / "config").write_text(kubeconfig(server.url))

    outcome = invoke("plane", "list", "--kubeconfig", str(tmp_path / "config"))

    assert outcome.code == 5
    assert f"{server.url} does not serve planes" in outcome.err
